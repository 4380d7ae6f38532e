// SPDX-License-Identifier: Apache-2.0
#include "base/translated.h"
#include "format/attention_kinds.h"
#include "format/carried_files.h"
#include "format/formats.h"
#include "format/lone_file.h"
#include "format/refused_format.h"
#include "io/file_limit.h"
#include "io/source_files.h"
#include "io/watched_directory.h"
#include "remote/open_path.h"

namespace shardwright {
namespace {

// Files that a process holds open beside the sources: outputs, libraries, the terminal.
constexpr std::uint64_t kReservedFiles = 64;

// How many source files may stay open; as many again are left to the outputs.
std::size_t most_open_files() {
  const std::uint64_t limit = raise_open_file_limit();
  const std::uint64_t room = limit > 2 * kReservedFiles ? limit - kReservedFiles : kReservedFiles;
  return static_cast<std::size_t>(room / 2);
}

}  // namespace

Result<Checkpoint> open_checkpoint(std::string_view path, Defects& defects,
                                   const FormatChoice& choice) {
  Checkpoint checkpoint;
  Location& location = checkpoint.location;
  location = SW_TRY(locate_checkpoint(path, choice));
  checkpoint.notes = location.notes;
  std::unique_ptr<Directory> directory = SW_TRY(
      is_lone_file(location.path) ? open_lone_file(location.path) : open_directory(location.path));
  checkpoint.directory = std::make_unique<WatchedDirectory>(std::move(directory));
  checkpoint.files = std::make_shared<SourceFiles>(*checkpoint.directory,
                                                   std::vector<std::string>(), most_open_files());
  const SourceFormat& found = *find_source_format(location.format);
  Status status = found.open(checkpoint, defects);
  if (status) {
    const SourceFormat& format = refined_format(found, checkpoint);
    if (&format != &found) location.traits = format.traits_of(checkpoint);
    location.format = format.name();
    SW_TRY(check_opened(choice, found, location));
    status = format.settle(checkpoint, defects);
    tell_attention_kinds(checkpoint);
    if (!checkpoint.directory->lists_all()) {
      checkpoint.notes.push_back(
          translated("{}: the server shows no list of this folder, so only files of usual names "
                     "were asked for; others (a tokenizer's, code of the model's own) are left out",
                     location.path));
    }
    if (status) status = check_carried(checkpoint, defects);
  }
  if (!status) {
    Status located = std::unexpected(Error(status.error()).within(location.path));
    SW_TRY(defects.report(std::move(located)));
  }
  return checkpoint;
}

Result<Checkpoint> open_checkpoint(std::string_view path, const FormatChoice& choice) {
  Defects first;
  return open_checkpoint(path, first, choice);
}

}  // namespace shardwright
