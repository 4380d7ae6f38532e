// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_file.h"

#include <algorithm>

namespace shardwright {

Result<TorchFile> TorchFile::open(const ReadableFile& file, const pickle::Limits& limits) {
  constexpr std::uint64_t kHeadBytes = 64;
  std::string head(static_cast<std::size_t>(std::min(kHeadBytes, file.size())), '\0');
  SW_TRY(file.read_at(0, std::as_writable_bytes(std::span(head))));
  if (TorchStream::begins(head)) return TorchFile(SW_TRY(TorchStream::open(file, limits)));
  return TorchFile(SW_TRY(TorchArchive::open(file, {0, file.size()}, limits)));
}

pickle::Value TorchFile::root() const {
  return std::visit([](const auto& form) { return form.document().root(); }, form_);
}

std::string_view TorchFile::saved_as() const {
  const auto* archive = std::get_if<TorchArchive>(&form_);
  return archive == nullptr ? std::string_view() : archive->prefix();
}

Result<std::string> TorchFile::pickle(std::uint64_t limit_bytes) const {
  if (const auto* stream = std::get_if<TorchStream>(&form_)) return stream->pickle();
  const auto& archive = std::get<TorchArchive>(form_);
  return archive.zip().read(*archive.record("data.pkl"), limit_bytes);
}

Result<LocatedTensor> TorchFile::locate(pickle::Value tensor) const {
  return std::visit([&](const auto& form) { return form.locate(tensor); }, form_);
}

}  // namespace shardwright
