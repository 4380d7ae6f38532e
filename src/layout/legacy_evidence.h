// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layout/tower_evidence.h"
#include "shardwright/diagnose.h"
#include "shardwright/tensor.h"

namespace shardwright {

struct ListedFile {
  std::string name;
  std::uint64_t bytes = 0;
};

/// A folder whose name begins with `mp_rank_`, as a listing shows it.
struct RankFolder {
  std::string name;
  std::vector<ListedFile> files;
};

/// How Megatron's tokenizer without words of its own counts the vocabulary.
enum class NullTokenizer : std::uint8_t {
  kNone,               ///< the run has another one
  kCountsOneMore,      ///< than `vocab_size`: up to Megatron-Core 0.16
  kCountsWhatItIsTold  ///< later: the end of a document is among them
};

/// In which order a run's layers go through the virtual stages of its pipeline stages.
enum class ChunkOrder : std::uint8_t {
  kInterleaved,  ///< through the first chunk of every stage, then through the second of every stage
  kFolded,       ///< there through the first chunks, back through the second ones: DualPipeV
  kTwoCopies     ///< the second chunks are a second model, whose stages count backwards: DualPipe
};

/// What a run's arguments say that matters here.
struct RecordedRun {
  bool is_present = false;
  AxisSizes sizes;  ///< as recorded; absent where there is no such argument or it is None
  std::optional<std::int64_t> experts;
  std::optional<std::int64_t> vocabulary;  ///< vocab_size; its words: see words_of()
  NullTokenizer null_tokenizer = NullTokenizer::kNone;
  std::optional<std::int64_t> vocabulary_divisor;  ///< make_vocab_size_divisible_by
  std::optional<std::int64_t> encoder_tensor;
  // Of the process that wrote the file.
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world;
  std::optional<std::int64_t> context;
  std::optional<bool> pipeline_before_data;  ///< use_tp_pp_dp_mapping
  /// Pipeline stages of encoders with ranks of their own, which sizes.pipeline does not count.
  std::int64_t encoder_stages = 0;
  ChunkOrder chunk_order = ChunkOrder::kInterleaved;  ///< by the schedule's name
  bool has_own_expert_order = false;  ///< experts are shared out as MindSpeed does it
};

struct SampledTensor {
  std::string name;
  Dims shape;
};

/// What the file of one rank holds, tensors by name.
struct RankSample {
  std::string folder;
  RecordedRun run;
  std::optional<std::int64_t> iteration;
  std::vector<std::vector<SampledTensor>> models;  ///< one, or one for each virtual stage
};

/// Whether two folders hold the same bytes under one name.
struct ReplicaVerdict {
  std::string first;
  std::string second;
  std::string tensor;
  std::string axis;  ///< along which the folders lie
  std::uint64_t bytes = 0;
  std::uint64_t differing = 0;
  std::uint64_t first_difference = 0;
};

/// A comparison of bytes that would settle what the names mean.
struct ReplicaQuestion {
  std::string first;
  std::string second;
  std::string tensor;
};

/// A tensor that every TP rank holds whole, though it should be cut.
struct RepeatedShard {
  std::string tensor;
  std::string joined_shape;  ///< what concatenation would give
};

struct UnreadableFile {
  std::string path;
  std::string error;
};

/// What the rows behind the vocabulary hold, judged by the last of them.
enum class PaddingPolicy : std::uint8_t {
  kUnread,   ///< no bytes were read
  kZero,     ///< Megatron-Bridge, mbridge and this program
  kLastRow,  ///< copies of the last row that means something: Megatron's own converters
  kOther,    ///< whatever training made of it
};

/// All that is known about a folder of the legacy format without running anything.
struct LegacyEvidence {
  std::string path;  ///< for commands, quoted as a shell needs it
  std::string flag;  ///< ` --as legacy` behind the path, where the folder holds others too
  std::vector<RankFolder> folders;
  std::vector<std::string> leftovers;  ///< `tmp`, `dones`: other folders that tools leave behind
  std::vector<RankSample> samples;
  std::vector<UnreadableFile> unreadable;
  std::optional<ReplicaVerdict> verdict;  ///< the answer to a ReplicaQuestion
  std::vector<ReplicaVerdict> differing;  ///< replicas that are not, where they were compared
  std::vector<RepeatedShard> repeated;
  /// Parts of the model with another tensor size than the language model's; absent where the files
  /// were not asked.
  std::optional<std::vector<SettledTower>> towers;
  std::string towers_error;  ///< why that could not be settled; may be empty
  PaddingPolicy padding = PaddingPolicy::kUnread;
  std::uint64_t bytes_compared = 0;
  AxisSizes believed;
};

}  // namespace shardwright
