// SPDX-License-Identifier: Apache-2.0
#include "format/common_state_file.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/fail.h"
#include "io/source_files.h"
#include "state/common_state.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostStateBytes = std::uint64_t{1} << 30;

}  // namespace

Status read_common_state(Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory;
  const Catalog& catalog = checkpoint.catalog;
  const bool has_file = directory.exists(kCommonStateFile);
  if (has_file) {
    checkpoint.common_state = SW_TRY(read_whole(directory, kCommonStateFile, kMostStateBytes));
  }
  const auto entry = std::find_if(
      catalog.objects.begin(), catalog.objects.end(),
      [](const StoredObject& object) { return object.name == "common_state/shard_0_1"; });
  const bool has_entry = entry != catalog.objects.end();
  if (!has_file && has_entry) {
    if (entry->range.length > kMostStateBytes) {
      return fail(Code::kLimit, "entry {}: {} bytes, limit {}", entry->name, entry->range.length,
                  kMostStateBytes);
    }
    checkpoint.common_state.resize(static_cast<std::size_t>(entry->range.length));
    SW_TRY(checkpoint.files->read_at(entry->file, entry->range.offset,
                                     std::as_writable_bytes(std::span(checkpoint.common_state))));
  }
  if (!has_file && !has_entry) return {};
  const Result<CommonState> state = CommonState::read(checkpoint.common_state);
  if (!state) {
    return std::unexpected(
        Error(state.error()).within(has_file ? kCommonStateFile : std::string_view(entry->name)));
  }
  checkpoint.arguments = state->arguments();
  return {};
}

}  // namespace shardwright
