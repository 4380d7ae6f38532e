// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/checkpoint.h"

namespace shardwright {

class TensorSource;

/// In which names a checkpoint's tensors are seen.
enum class Naming : std::uint8_t {
  kCanonical,  ///< Megatron's, one tensor per layer; Hugging Face's through its mapping
  kStored,     ///< as they are stored
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
  TensorReader(TensorReader&& other) noexcept;
  TensorReader& operator=(TensorReader&& other) noexcept;
  ~TensorReader();

  [[nodiscard]] const Location& location() const;
  /// Name, element type and whole shape of each tensor, in stored order (kCanonical: by name).
  [[nodiscard]] std::span<const TensorDesc> tensors() const;
  /// The number of a tensor, for read(). Of a tensor that is stored under several names each of
  /// them finds its own copy, though tensors() has the tensor only.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Name, element type and whole shape of a tensor that find() found.
  [[nodiscard]] const TensorDesc& desc(std::size_t tensor) const;
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
