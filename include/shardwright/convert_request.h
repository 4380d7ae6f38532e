// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The names of all formats that are written: `hf`, `torch_dist`, `legacy`, ...
[[nodiscard]] std::vector<std::string_view> target_names();

enum class OptimizerPolicy : std::uint8_t {
  kDefault,  ///< keep for torch_dist, legacy, fsdp_dtensor and DCP, drop otherwise
  kKeep,
  kDrop,
};

/// What becomes of the layers for multi-token prediction.
enum class MtpPolicy : std::uint8_t {
  kDefault,  ///< drop for a MIMO target, whose models have no place for them; keep otherwise
  kKeep,
  kDrop,
};

/// How a torch_dist target stores what all tensor ranks hold alike: norms, routers, biases of
/// row-parallel linears, and their optimizer states.
enum class TpReplicas : std::uint8_t {
  kCollapse,  ///< once, under the name that Megatron-Core gives it
  kExpand,    ///< once for each tensor rank, as `NAME.__tp_replica_RANK`
};

/// How the weights of a Hugging Face target are stored.
enum class WeightForm : std::uint8_t {
  kPlain,          ///< as floating point numbers; what is quantised and keeps its names stays so
  kFp8Block,       ///< e4m3 and a scale for each block, as DeepSeek-V3
  kFp8BlockUe8m0,  ///< the same with powers of two, as DeepSeek-V3.1
  kMxfp4,          ///< fp4 in blocks, as GPT-OSS
};

/// How a dense model becomes one of experts.
struct Upcycling {
  std::int64_t experts = 0;
  std::int64_t granularity = 1;     ///< into how many experts the dense MLP is cut
  std::int64_t top_k = 2;           ///< experts for each token
  bool softmax_before_top = false;  ///< Megatron's moe_router_pre_softmax
  std::int64_t seed = 1234;         ///< of the routers
};

/// How thoroughly chunks that claim the same box of a tensor are compared before one is taken.
enum class ReplicaCheck : std::uint8_t {
  kAll,
  kSample,  ///< the first and last block of each
  kNone,
};

/// How the family of a model is found, where the caller knows more than the checkpoint tells.
struct FamilyChoice {
  std::string family = {};                  ///< overrides detection
  std::string hf_config_dir = {};           ///< folder with config.json (and artifacts)
  std::vector<std::string> map_files = {};  ///< further mapping files
  std::string models_dir = {};              ///< folder with mapping files; empty: the built-in ones
};

/// What the caller says of a source that its files do not tell.
struct SourceOptions {
  /// Sizes of an MLite source: EP, ETP, TP.
  std::optional<std::int64_t> source_expert = std::nullopt;
  std::optional<std::int64_t> source_expert_tensor = std::nullopt;
  std::optional<std::int64_t> source_tensor = std::nullopt;
  /// Of tensors that each tensor rank stored under a name of its own (`NAME.__tp_replica_1`): the
  /// rank whose copies are taken, whatever the others hold. Else all must be equal.
  std::optional<std::int64_t> replica = std::nullopt;
  /// Takes what is there of a source that is known to have lost data or order; a note says what is
  /// lost.
  bool accept_loss = false;
};

/// Whose names an adapter in PEFT's files gets in a Megatron checkpoint.
enum class AdapterNames : std::uint8_t {
  kDefault,  ///< Megatron-Bridge's
  kBridge,
  kSwift,  ///< ms-swift's, which are mcore-bridge's
};

/// What a conversion is asked to do. Sizes mean the target.
struct ConvertRequest : FamilyChoice, SourceOptions {
  std::string input;
  std::string output;
  std::string adapter;  ///< folder of a PEFT adapter to merge; empty: none
  /// Checkpoints of the same model that are averaged with the input; empty: none.
  std::vector<std::string> averaged;
  /// Of the input and of each of those; they add up to 1. Empty: all weigh the same.
  std::vector<double> weights;
  std::string format = "torch_dist";  ///< that is written, see target_names()
  ParallelConfig parallel;
  TpReplicas tp_replicas = TpReplicas::kCollapse;  ///< of a torch_dist target
  /// Of a torch_dist target: data-parallel ranks (times context-parallel ones) of the job that will
  /// load it. Each file then holds what its rank will read; absent: what a job without data
  /// parallelism would write.
  std::optional<std::int64_t> data_ranks;
  std::vector<ComponentSpec> components;   ///< of a MIMO target, instead of `parallel`
  std::optional<std::int64_t> world_size;  ///< of a MIMO target: ranks of the run
  ModuleSpec spec = ModuleSpec::kKeep;     ///< of a Megatron target
  MtpPolicy mtp = MtpPolicy::kDefault;
  /// Folder of a Hugging Face checkpoint of the same model whose prediction layers are taken, for a
  /// source that has none; empty: none.
  std::string mtp_from;
  std::optional<DType> dtype;
  WeightForm quantise = WeightForm::kPlain;             ///< of a Hugging Face target
  AdapterNames adapter_names = AdapterNames::kDefault;  ///< of an input in PEFT's files
  std::uint64_t max_shard_bytes = 5'000'000'000;
  /// Of a DCP or fsdp_dtensor target: ranks that FSDP2 would share it out over.
  std::int64_t shards = 1;
  std::vector<std::string> include;  ///< globs over source tensor names; empty: all
  std::vector<std::string> exclude;
  OptimizerPolicy optimizer = OptimizerPolicy::kDefault;
  ReplicaCheck check_replicas = ReplicaCheck::kAll;
  bool names_all_coordinates = false;  ///< of a legacy target: tp, pp and ep wherever EP > 1
  std::optional<std::int64_t> make_vocab_size_divisible_by;
  /// Rows that the vocabulary gets; new ones are the mean of those that it has.
  std::optional<std::int64_t> extend_vocab;
  std::optional<Upcycling> upcycle;  ///< of a Megatron target
  /// Writes `shardwright-digests.jsonl` for verify: digests of tensors, pieces and files' rests.
  bool digests = false;
  /// Writes `integrity.json`: the SHA-256 of each file, for verify and for Megatron.
  bool sha256 = false;
  /// Writes `model.sig`: the SHA-256 of each file, signed with the private key (of a curve P-256,
  /// P-384 or P-521, PEM) in this file, for verify and for OpenSSF's model_signing. Empty: none.
  std::string sign;
  bool overwrite = false;
  /// Goes on with what an earlier run of the same conversion left unfinished, and leaves what is
  /// written for the next one when this one fails.
  bool resume = false;
  int threads = 0;  ///< 0: one per processor
  /// What the conversion may keep in memory. Less than it needs is refused; where nothing is asked
  /// for, its buffers are cut to fit 256 MiB as far as they can be.
  std::optional<std::uint64_t> max_memory_bytes;
  std::string as;  ///< the input's format, where it holds several checkpoints; empty: the only one
};

}  // namespace shardwright
