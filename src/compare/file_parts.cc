// SPDX-License-Identifier: Apache-2.0
#include "compare/file_parts.h"

#include <algorithm>
#include <tuple>

namespace shardwright {
namespace {

// Whether files have different boxes of a tensor.
bool is_shared_out(const StoredTensor& tensor) {
  if (tensor.encoding != Encoding::kRaw || tensor.chunks.size() < 2) return false;
  const ChunkList& chunks = tensor.chunks;
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    if (chunks.file(i) == chunks.file(0)) continue;
    if (!std::ranges::equal(chunks.origin(i), chunks.origin(0))) return true;
  }
  return false;
}

// What is strided lies between the runs of others.
void add_run(FileParts& file, ByteRange run) {
  FilePart& part = file.parts.back();
  const std::uint64_t run_end = run.offset + run.length;
  const std::uint64_t last_end =
      part.run_count == 0 ? 0 : file.runs.back().offset + file.runs.back().length;
  if (part.run_count == 0 || run.offset > last_end) {
    file.runs.push_back(run);
    ++part.run_count;
    part.bytes += run.length;
  } else if (run_end > last_end) {
    file.runs.back().length += run_end - last_end;
    part.bytes += run_end - last_end;
  }
}

}  // namespace

SharedFiles::SharedFiles(const Catalog& catalog) : catalog_(catalog) {
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    const ChunkList& chunks = catalog.tensors[t].chunks;
    if (!is_shared_out(catalog.tensors[t])) continue;
    for (std::uint32_t i = 0; i < chunks.size(); ++i) {
      if (chunks.range(i).length > 0) held_.push_back({chunks.file(i), t, i});
    }
  }
  held_.shrink_to_fit();
  std::ranges::sort(held_, {}, [&](const Held& held) {
    return std::tuple(held.file, held.tensor,
                      catalog.tensors[held.tensor].chunks.range(held.chunk).offset, held.chunk);
  });
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (i == 0 || held_[i].file != held_[i - 1].file) begins_.push_back(i);
  }
  begins_.push_back(held_.size());
}

FileParts SharedFiles::operator[](std::size_t index) const {
  const std::span<const Held> held =
      std::span(held_).subspan(begins_[index], begins_[index + 1] - begins_[index]);
  FileParts file{held.front().file, {}, {}};
  for (const Held& next : held) {
    if (file.parts.empty() || file.parts.back().tensor != next.tensor) {
      file.parts.push_back({.tensor = next.tensor,
                            .first_chunk = next.chunk,
                            .first_run = static_cast<std::uint32_t>(file.runs.size())});
    }
    add_run(file, catalog_.tensors[next.tensor].chunks.range(next.chunk));
  }
  return file;
}

}  // namespace shardwright
