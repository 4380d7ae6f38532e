// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "codec/torch_archive.h"

namespace shardwright {

/// A file in the form that torch.save had before 1.6 (and has with
/// _use_new_zipfile_serialization=False): five pickles one behind another (a magic number, the
/// protocol, the machine, the object, the storages' keys), then the storages in the keys' order,
/// each behind its number of elements. Immutable once opened; concurrent use of the const methods
/// is safe. Source: _legacy_save in torch/serialization.py.
class TorchStream {
 public:
  /// Whether the first bytes of a file (64 are enough) begin such a file.
  [[nodiscard]] static bool begins(std::string_view head);

  /// Reads the pickles, inertly, and the place of every storage. Errors: kTorchArchive (another
  /// magic number, big-endian, keys and storages that don't agree, storages beyond the file's end),
  /// those of pickle::decode_prefix.
  [[nodiscard]] static Result<TorchStream> open(const ReadableFile& file,
                                                const pickle::Limits& given = {});

  [[nodiscard]] const pickle::Document& document() const { return *document_; }
  /// The bytes of the object's pickle.
  [[nodiscard]] const std::string& pickle() const { return pickle_; }

  /// Finds the bytes of the tensor that a node of the document spells. Error: kTorchArchive.
  [[nodiscard]] Result<LocatedTensor> locate(pickle::Value tensor) const;

 private:
  TorchStream() = default;
  [[nodiscard]] Status read_keys(pickle::Value keys, const ReadableFile& file,
                                 std::uint64_t position);

  std::string name_;
  std::string pickle_;
  std::unique_ptr<pickle::Document> document_;  // in its own place: handles survive a move
  std::map<std::string, ByteRange, std::less<>> storages_;
};

}  // namespace shardwright
