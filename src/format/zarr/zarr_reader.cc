// SPDX-License-Identifier: Apache-2.0
#include "format/zarr/zarr_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "format/carried_files.h"
#include "format/common_state_file.h"
#include "format/zarr/zarr_array.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

constexpr std::string_view kArrayFile = ".zarray";
constexpr std::string_view kShardEnding = ".pt";
constexpr std::string_view kLocksEnding = ".sync";
constexpr std::uint64_t kMostArrayBytes = std::uint64_t{1} << 20;

// The chunks of an array whose files are there, row by row of its grid.
using StoredChunks = std::vector<std::pair<Dims, DirectoryEntry>>;

// Moves on to the next place of a grid, row by row.
void advance(Dims& place, const Dims& grid) {
  for (int axis = grid.size() - 1; axis >= 0; --axis) {
    if (++place[axis] < grid[axis]) return;
    place[axis] = 0;
  }
}

// What ranks that wrote to the same chunk left behind: locks, with the names of the files that they
// stood for. Source: zarr.ProcessSynchronizer.
bool are_locks(std::string_view folder, const std::vector<DirectoryEntry>& inside) {
  return folder.ends_with(kLocksEnding) &&
         std::ranges::all_of(inside, [](const auto& file) { return file.size_bytes == 0; });
}

bool is_of_chunk(const DirectoryEntry& file) {
  return !file.is_directory && file.name.find_first_not_of("0123456789.") == std::string::npos;
}

class ZarrReader {
 public:
  ZarrReader(Checkpoint& checkpoint, Defects& defects)
      : checkpoint_(checkpoint), defects_(defects) {}

  Status read() {
    for (const DirectoryEntry& entry : SW_TRY(checkpoint_.directory->list(""))) {
      if (!entry.is_directory || entry.name.starts_with('.')) continue;
      if (entry.problem) {
        SW_TRY(defects_.report(std::unexpected(*entry.problem)));
        continue;
      }
      const std::vector<DirectoryEntry> inside = SW_TRY(checkpoint_.directory->list(entry.name));
      if (are_locks(entry.name, inside)) continue;
      const bool is_array = std::ranges::any_of(
          inside, [](const DirectoryEntry& file) { return file.name == kArrayFile; });
      if (is_array) {
        SW_TRY(defects_.report(add_array(entry.name, inside)));
      } else {
        SW_TRY(defects_.report(check_no_array(entry.name, inside)));
        add_objects(entry.name, inside);
      }
    }
    SW_TRY(defects_.report(read_common_state(checkpoint_)));
    return read_carried(checkpoint_, defects_);
  }

 private:
  std::uint32_t add_file(const std::string& folder, const std::string& name) {
    const std::string path = folder + "/" + name;
    checkpoint_.files->add(path);
    checkpoint_.catalog.files.push_back(path);
    return static_cast<std::uint32_t>(checkpoint_.catalog.files.size() - 1);
  }

  Status add_array(const std::string& name, const std::vector<DirectoryEntry>& files) {
    const std::string path = fmt::format("{}/{}", name, kArrayFile);
    const std::string text = SW_TRY(read_whole(*checkpoint_.directory, path, kMostArrayBytes));
    const ZarrArray array = SW_TRY(parse_zarray(text, path));
    StoredChunks stored;
    for (const DirectoryEntry& file : files) {
      const auto place = file.is_directory ? std::nullopt : array.place_of(file.name);
      if (place) stored.emplace_back(*place, file);
    }
    std::ranges::sort(stored, std::ranges::lexicographical_compare,
                      &StoredChunks::value_type::first);
    StoredTensor tensor{{name, array.dtype, array.shape}, ChunkList(array.shape.size())};
    tensor.chunks.reserve(stored.size());
    for (const auto& [place, file] : stored) {
      SW_TRY(add_chunk(array, place, file, tensor));
    }
    const Status whole = check_whole(array, stored, name);
    checkpoint_.catalog.tensors.push_back(std::move(tensor));
    return whole;
  }

  // The grid of a hostile file may be of any size: what is there is counted, not what is not.
  static Status check_whole(const ZarrArray& array, const StoredChunks& stored,
                            const std::string& name) {
    const Dims grid = array.grid();
    const std::int64_t expected = SW_TRY(element_count(grid));
    if (std::cmp_equal(stored.size(), expected)) return {};
    Dims first = Dims::filled(grid.size(), 0);
    for (auto next = stored.begin(); next != stored.end() && next->first == first; ++next) {
      advance(first, grid);
    }
    return fail(Code::kHole,
                "{}: found files of {} chunks, expected {}; {} is the first that is missing: copy "
                "them again",
                name, stored.size(), expected, array.file_of(first));
  }

  Status add_chunk(const ZarrArray& array, const Dims& place, const DirectoryEntry& file,
                   StoredTensor& tensor) {
    const auto bytes = static_cast<std::uint64_t>(SW_TRY(byte_count(array.chunk, array.dtype)));
    const std::uint32_t number = add_file(tensor.desc.name, file.name);
    if (file.size_bytes != bytes) {
      SW_TRY(defects_.report(fail(Code::kShortRead,
                                  "{}/{}: found {} bytes, expected {}; it was cut or is no chunk "
                                  "of this array",
                                  tensor.desc.name, file.name, file.size_bytes, bytes)));
      defects_.lose(tensor.desc.name, tensor.chunks.size());
    }
    Chunk chunk{array.box_of(place), number, {0, bytes}, {}};
    // A chunk at the end has elements behind those that count.
    const Dims strides = array.strides();
    if (strides != row_major_strides(chunk.box.shape)) {
      chunk.strides = strides;
      std::int64_t last = 0;
      for (int axis = 0; axis < strides.size(); ++axis) {
        last += (chunk.box.shape[axis] - 1) * strides[axis];
      }
      chunk.range.length = static_cast<std::uint64_t>((last + 1) * bytes_of(array.dtype));
    } else {
      chunk.range.length = static_cast<std::uint64_t>(chunk.box.volume() * bytes_of(array.dtype));
    }
    tensor.chunks.push_back(chunk);
    return {};
  }

  static Status check_no_array(const std::string& name, const std::vector<DirectoryEntry>& files) {
    const auto chunk = std::ranges::find_if(files, is_of_chunk);
    if (chunk == files.end()) return {};
    return fail(Code::kHole, "{}: chunks are here ({} is the first), but no {}; copy it again",
                name, chunk->name, kArrayFile);
  }

  void add_objects(const std::string& name, const std::vector<DirectoryEntry>& files) {
    for (const DirectoryEntry& file : files) {
      if (file.is_directory || !file.name.starts_with("shard_") ||
          !file.name.ends_with(kShardEnding)) {
        continue;
      }
      const std::string stem = file.name.substr(0, file.name.size() - kShardEnding.size());
      checkpoint_.catalog.objects.push_back(
          {name + "/" + stem, add_file(name, file.name), {0, file.size_bytes}});
    }
  }

  Checkpoint& checkpoint_;
  Defects& defects_;
};

}  // namespace

Status read_zarr(Checkpoint& checkpoint, Defects& defects) {
  return ZarrReader(checkpoint, defects).read();
}

}  // namespace shardwright
