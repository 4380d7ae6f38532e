// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "codec/torch_archive.h"
#include "codec/torch_stream.h"

namespace shardwright {

/// A file of torch.save in either of its forms: an archive (since 1.6) or a stream. Concurrent use
/// of the const methods is safe. The file must outlive it.
class TorchFile {
 public:
  /// Errors: those of TorchArchive::open and TorchStream::open.
  [[nodiscard]] static Result<TorchFile> open(const ReadableFile& file,
                                              const pickle::Limits& limits = {});

  [[nodiscard]] pickle::Value root() const;
  /// The folder of an archive's records, which torch.save calls as the file; empty for a stream.
  [[nodiscard]] std::string_view saved_as() const;
  /// The bytes of the pickle behind root(), at most `limit_bytes` of them.
  [[nodiscard]] Result<std::string> pickle(std::uint64_t limit_bytes) const;
  /// Finds the bytes of the tensor that a node of the pickle spells.
  [[nodiscard]] Result<LocatedTensor> locate(pickle::Value tensor) const;

 private:
  explicit TorchFile(TorchArchive archive) : form_(std::move(archive)) {}
  explicit TorchFile(TorchStream stream) : form_(std::move(stream)) {}

  std::variant<TorchArchive, TorchStream> form_;
};

}  // namespace shardwright
