// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/rank_file_end.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/fail.h"
#include "codec/torch_file.h"
#include "codec/zip_reader.h"

namespace shardwright {

Status check_rank_file_end(const Directory& directory, const std::string& path) {
  const auto file = SW_TRY(directory.open(path));
  const Status end = zip::Archive::check_end(*file, {0, file->size()});
  if (end) return {};
  constexpr std::uint64_t kHeadBytes = 512;
  std::string head(std::min(kHeadBytes, file->size()), '\0');
  SW_TRY(file->read_at(0, std::as_writable_bytes(std::span(head))));
  if (!identify_no_zip(head)) return end;
  SW_TRY(TorchFile::open(*file));
  return {};
}

}  // namespace shardwright
