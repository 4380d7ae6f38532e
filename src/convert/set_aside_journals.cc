// SPDX-License-Identifier: Apache-2.0
#include "convert/set_aside_journals.h"

#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/endian.h"
#include "base/fail.h"
#include "convert/part_journals.h"
#include "exec/piece_journal.h"

namespace shardwright {
namespace {

// Of a journal that is remembered; those of a million pieces have some 30 MB.
constexpr std::uint64_t kMostBytes = std::uint64_t{128} << 20;

Status write_again(Directory& folder, const std::string& name, const std::string& text) {
  const auto file = SW_TRY(folder.create(name, text.size()));
  SW_TRY(file->write_at(0, as_bytes(text)));
  return file->sync();
}

}  // namespace

Status SetAsideJournals::take() {
  const Directory& folder = publication_.directory();
  for (const DirectoryEntry& entry : SW_TRY(folder.list(""))) {
    if (entry.name != kJournalName && !part_of_journal(entry.name)) continue;
    Result<std::string> text = read_whole(folder, entry.name, kMostBytes);
    if (text) journals_.emplace_back(entry.name, *std::move(text));
    const std::string journal = publication_.partial_path() + "/" + entry.name;
    if (::unlink(journal.c_str()) == 0 || errno == ENOENT) continue;
    return fail_errno(errno, journal + translated(": cannot remove"));
  }
  return {};
}

void SetAsideJournals::put_back() noexcept {
  try {
    for (const auto& [name, text] : journals_) {
      if (!write_again(publication_.directory(), name, text)) return;  // nor will the others be
    }
  } catch (const std::bad_alloc&) {
    return;
  }
}

}  // namespace shardwright
