// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/prepared_conversion.h"

namespace shardwright {

class TensorSource;

/// In which names a checkpoint's tensors are seen.
enum class Naming : std::uint8_t {
  kCanonical,  ///< Megatron's, one tensor per layer; Hugging Face's through its mapping
  kStored,     ///< as they are stored
  kHf,         ///< Hugging Face's: what a conversion to `hf` writes, computed when it is read
};

/// How a checkpoint is opened for reading.
struct ReadOptions {
  Naming naming = Naming::kStored;
  FormatChoice format = {};  ///< which checkpoint at a path that has two
  /// For names that are not stored. `hf_config_dir` may name the config.json itself.
  FamilyChoice family = {};
  SourceOptions source = {};  ///< likewise
  /// With kHf: of tensors that may be cast, as a conversion would; absent: as they are stored.
  std::optional<DType> dtype = std::nullopt;
  MtpPolicy mtp = MtpPolicy::kDefault;  ///< with kHf: kDrop leaves prediction layers out
};

/// A checkpoint of any format, opened, whose tensors are read into the caller's memory box by box.
/// Whatever pieces a tensor is stored in are put together as they are read; records are compared
/// with their CRC-32s. Safe for concurrent use. Names and tensors stay the same for its life.
class TensorReader {
 public:
  /// Reads metadata and headers. `choice`: which checkpoint at a path that has two. Errors: those
  /// of open_checkpoint; with kCanonical also kNoFamily and its like, and kNoFamily for a
  /// checkpoint in which nothing of a model is known.
  [[nodiscard]] static Result<TensorReader> open(std::string_view path,
                                                 Naming naming = Naming::kStored,
                                                 const FormatChoice& choice = {});
  /// The same with all that a conversion can be told of its source. With kHf only what is beside
  /// the optimizer's states is seen, whole Hugging Face models as they are stored. Messages name
  /// options (`hf_config=`) where a conversion's name flags. Errors with kHf: those of
  /// prepare_conversion; kUsage for what
  /// the names have no use for.
  [[nodiscard]] static Result<TensorReader> open(std::string_view path, const ReadOptions& options);
  TensorReader(TensorReader&& other) noexcept;
  TensorReader& operator=(TensorReader&& other) noexcept;
  ~TensorReader();

  [[nodiscard]] const Location& location() const;
  /// Name, element type and whole shape of each tensor, in stored order (other names: sorted).
  [[nodiscard]] std::span<const TensorDesc> tensors() const;
  /// The numbers of tensors() in the order in which their bytes lie in the files, which is the
  /// fastest to read them in; names that are not the stored ones: as tensors() lists them.
  [[nodiscard]] std::vector<std::size_t> order() const;
  /// The number of a tensor, for read(). With kCanonical layers that torch_dist would stack are
  /// found by the stack's name too (`decoder.layers.mlp.linear_fc2.weight`). Of a tensor that is
  /// stored under several names each of them finds its own copy, though tensors() has the tensor
  /// only.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Name, element type and whole shape of a tensor that find() found.
  [[nodiscard]] const TensorDesc& desc(std::size_t tensor) const;
  /// With kStored: the tensors that are not read here, of types that only torch knows (its
  /// quantised ones), and why each is not. tensors() has none of them.
  [[nodiscard]] const std::map<std::string, Error, std::less<>>& unreadable() const;
  /// Whether the stored names are those of a Megatron model.
  [[nodiscard]] bool has_megatron_names() const;

  /// Fills `bytes` with a box of a tensor, row-major, in its element type. Errors: kOutOfBounds for
  /// no such tensor, a box that is not in it, or a size of `bytes` that is not the box's; kHole,
  /// kOverlap and their like where the tensor is not stored whole; those of reading.
  [[nodiscard]] Status read(std::size_t tensor, const Box& box, std::span<std::byte> bytes);

  /// The names of entries that are no tensors, in stored order.
  [[nodiscard]] std::span<const std::string> objects() const;
  /// The bytes of such an entry as they are stored. What is a pickle in them is never run.
  [[nodiscard]] Result<std::string> read_object(std::size_t object);

  /// With kHf: the files that a conversion would put beside the weights, config.json among them.
  [[nodiscard]] std::vector<std::string> documents() const;
  /// The bytes of such a file. Errors: kNotFound for no such name; those of reading.
  [[nodiscard]] Result<std::string> read_document(std::string_view name) const;

  /// Whether every file that was read is still what it was when it was opened. Error:
  /// kSourceChanged.
  [[nodiscard]] Status check_unchanged() const;
  /// What opening and reading had to say since it was last asked.
  [[nodiscard]] std::vector<std::string> take_notes();

 private:
  explicit TensorReader(std::unique_ptr<TensorSource> source);
  std::unique_ptr<TensorSource> source_;
};

}  // namespace shardwright
