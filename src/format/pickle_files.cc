// SPDX-License-Identifier: Apache-2.0
#include "format/pickle_files.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "codec/torch_stream.h"
#include "codec/zip_reader.h"
#include "format/folder.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

// Of one pickle; none that software writes is larger, and a file beyond is no object.
constexpr std::uint64_t kMostPickleBytes = std::uint64_t{256} << 20;
constexpr std::size_t kPickleHeadBytes = 64;

bool may_hold_pickles(std::string_view name) {
  constexpr std::array<std::string_view, 7> kEndings = {".pt",     ".pth",    ".bin", ".pkl",
                                                        ".pkl.gz", ".pickle", ".ckpt"};
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); });
}

Result<std::string> read_range(const ReadableFile& file, ByteRange range) {
  std::string bytes(static_cast<std::size_t>(range.length), '\0');
  SW_TRY(file.read_at(range.offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

// Every record that is a pickle by its name, wherever it lies: some loaders look for the first.
Result<pickle::Audit> audit_archive(const ReadableFile& file, ByteRange window) {
  const zip::Archive archive = SW_TRY(zip::Archive::open(file, window));
  pickle::Audit audit;
  for (const zip::Entry& entry : archive.entries()) {
    if (!entry.name.ends_with(".pkl") && !entry.name.ends_with(".pickle")) continue;
    const std::string bytes = SW_TRY(archive.read(entry, kMostPickleBytes));
    audit.merge(pickle::audit_pickle(as_bytes(bytes), {.file_bytes = window.length}));
  }
  return audit;
}

// Pickles one behind another. What follows the last one of a torch file are its storages.
pickle::Audit audit_stream(std::string_view bytes, bool has_storages, std::uint64_t file_bytes) {
  constexpr int kOfTorch = 5;
  constexpr int kMostAlone = 8;
  pickle::Audit audit;
  for (int i = 0; i < (has_storages ? kOfTorch : kMostAlone) && !bytes.empty(); ++i) {
    const pickle::Audit next = pickle::audit_pickle(as_bytes(bytes), {.file_bytes = file_bytes});
    audit.merge(next);
    audit.trailing_bytes = has_storages ? 0 : next.trailing_bytes;
    if (next.error) {
      // Of what follows a whole pickle the first one's reader sees nothing.
      audit.trailing_bytes = i > 0 && !has_storages ? bytes.size() : 0;
      if (i > 0) audit.error.reset();
      break;
    }
    bytes.remove_prefix(bytes.size() - static_cast<std::size_t>(next.trailing_bytes));
  }
  return audit;
}

void add_report(std::vector<PickleReport>& reports, std::string where, const pickle::Audit& audit) {
  if (audit.is_harmless() && audit.trailing_bytes == 0 && !audit.error) return;
  reports.push_back({std::move(where), audit});
}

// A file of no pickles or a damaged one is named by those who need it. What a disk didn't give was
// not judged, though it may be read a moment later.
void add_result(std::vector<PickleReport>& reports, std::string where,
                const Result<pickle::Audit>& audit) {
  if (audit) return add_report(reports, std::move(where), *audit);
  if (audit.error().code != Code::kIo) return;
  pickle::Audit unread;
  unread.error = audit.error();
  add_report(reports, std::move(where), unread);
}

class FolderAuditor {
 public:
  FolderAuditor(const Directory& directory, const std::string& root, std::size_t most_files)
      : directory_(directory), root_(root), most_files_(most_files) {}

  FolderAudit run() {
    look_into("");
    return std::move(found_);
  }

 private:
  void look_into(const std::string& inner) {
    const auto entries = directory_.list(path_in(root_, inner));
    if (!entries) return;
    for (const DirectoryEntry& entry : *entries) {
      const std::string name = path_in(inner, entry.name);
      if (entry.is_directory) {
        if (inner.empty() && entry.name.starts_with("mp_rank_")) look_into(name);
      } else if (may_hold_pickles(entry.name)) {
        judge(name);
      }
    }
  }

  void judge(const std::string& name) {
    if (found_.files == most_files_) {
      ++found_.left_out;
      return;
    }
    ++found_.files;
    const auto file = directory_.open(path_in(root_, name));
    if (!file) return;
    const auto audit = audit_file(**file, {0, (*file)->size()});
    add_result(found_.reports, name, audit);
  }

  const Directory& directory_;
  const std::string& root_;
  std::size_t most_files_;
  FolderAudit found_;
};

}  // namespace

std::vector<Error> PickleReport::errors() const {
  std::vector<Error> errors;
  if (!audit.runs.empty()) errors.push_back(pickle::refuse_code(audit, where));
  if (audit.error) {
    errors.push_back(
        {audit.error->code,
         translated("{}: {} (what comes behind was not judged)", where, audit.error->message), 0});
  }
  if (audit.trailing_bytes > 0) {
    errors.push_back({Code::kPickleCorrupt,
                      translated("{}: {} bytes follow the pickle's end, where no writer puts any; "
                                 "the file was damaged or made by hand",
                                 where, audit.trailing_bytes),
                      0});
  }
  return errors;
}

std::string PickleReport::warning() const {
  if (audit.unknown.empty()) return "";
  return translated(
      "{}: a loader imports {}, of software that is not known here; look at it before "
      "you load the file",
      where, pickle::listed(audit.unknown));
}

Result<pickle::Audit> audit_file(const ReadableFile& file, ByteRange window) {
  const ByteRange head_range{window.offset,
                             std::min<std::uint64_t>(kPickleHeadBytes, window.length)};
  const std::string head = SW_TRY(read_range(file, head_range));
  if (head.starts_with("PK\x03\x04")) return audit_archive(file, window);
  const bool is_torch = TorchStream::begins(head);
  if (!is_torch && window.length > kMostPickleBytes) return pickle::Audit();
  const bool may_be = head.starts_with('\x80') || head.find('\n') != std::string::npos ||
                      (!head.empty() && std::string_view("(]})cN").contains(head.front()));
  if (!may_be) return pickle::Audit();
  const std::string bytes = SW_TRY(
      read_range(file, {window.offset, std::min<std::uint64_t>(window.length, kMostPickleBytes)}));
  pickle::Audit audit = audit_stream(bytes, is_torch, window.length);
  // Text may begin like a pickle of before protocol 2.
  const bool says_so = head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
  const bool is_whole = !audit.error && audit.trailing_bytes == 0;
  if (!says_so && !is_whole && audit.runs.empty()) return pickle::Audit();
  return audit;
}

FolderAudit audit_folder(const Directory& directory, const std::string& folder,
                         std::size_t most_files) {
  return FolderAuditor(directory, folder, most_files).run();
}

std::vector<PickleReport> audit_pickles(const Checkpoint& checkpoint) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  std::vector<PickleReport> reports = audit_folder(*checkpoint.directory, "", kAll).reports;
  for (const StoredObject& object : checkpoint.catalog.objects) {
    if (object.range.length == 0) continue;
    const auto file = checkpoint.files->get(object.file);
    if (!file) continue;
    const auto audit = audit_file(**file, object.range);
    add_result(reports,
               fmt::format("{} entry {}", checkpoint.catalog.files[object.file], object.name),
               audit);
  }
  return reports;
}

Status judge_pickles(const ReadableFile& file, const std::string& path, Checkpoint& checkpoint,
                     Defects& defects) {
  const PickleReport report{path, SW_TRY(audit_file(file, {0, file.size()}))};
  for (const Error& error : report.errors()) {
    if (defects.collects()) {
      SW_TRY(defects.report(std::unexpected(error)));
    } else {
      checkpoint.notes.push_back(error.message);
    }
  }
  return {};
}

}  // namespace shardwright
