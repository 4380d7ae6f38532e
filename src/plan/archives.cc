// SPDX-License-Identifier: Apache-2.0
#include "plan/archives.h"

#include <algorithm>

#include "base/fail.h"

namespace shardwright {

ArchiveStorages::ArchiveStorages(const Plan& plan)
    : plan_(&plan), archives_(plan.target.files.size(), 0) {
  for (std::uint32_t i = 0; i < plan.archives.size(); ++i) {
    archives_[plan.archives[i].file] = i + 1;
  }
}

std::optional<std::uint32_t> ArchiveStorages::archive_of(std::uint32_t file) const {
  if (file >= archives_.size() || archives_[file] == 0) return std::nullopt;
  return archives_[file] - 1;
}

std::optional<std::uint32_t> ArchiveStorages::storage_at(std::uint32_t archive,
                                                         std::uint64_t offset) const {
  const std::vector<ByteRange>& storages = *plan_->archives[archive].storages;
  const auto behind = std::ranges::upper_bound(storages, offset, {}, &ByteRange::offset);
  if (behind == storages.begin()) return std::nullopt;
  const auto storage = std::prev(behind);
  if (offset - storage->offset >= storage->length) return std::nullopt;
  return static_cast<std::uint32_t>(storage - storages.begin());
}

namespace {

// A chunk of the target, by numbers: plans have hundreds of thousands in archives.
struct ArchivedChunk {
  std::uint32_t tensor = 0;
  std::uint32_t chunk = 0;
};

// Those of each archive, by where they lie.
std::vector<std::vector<ArchivedChunk>> chunks_of_archives(const Plan& plan,
                                                           const ArchiveStorages& archives) {
  const std::vector<StoredTensor>& tensors = plan.target.tensors;
  std::vector<std::size_t> counts(plan.archives.size(), 0);
  std::vector<std::vector<ArchivedChunk>> chunks(plan.archives.size());
  for (const bool counting : {true, false}) {
    for (std::uint32_t t = 0; t < tensors.size(); ++t) {
      const ChunkList& list = tensors[t].chunks;
      for (std::uint32_t c = 0; c < list.size(); ++c) {
        if (list.range(c).length == 0) continue;
        const auto archive = archives.archive_of(list.file(c));
        if (!archive) continue;
        if (counting) {
          ++counts[*archive];
        } else {
          chunks[*archive].push_back({t, c});
        }
      }
    }
    for (std::size_t i = 0; counting && i < chunks.size(); ++i) chunks[i].reserve(counts[i]);
  }
  for (std::vector<ArchivedChunk>& of_archive : chunks) {
    std::ranges::sort(of_archive, {}, [&](const ArchivedChunk& each) {
      return tensors[each.tensor].chunks.range(each.chunk).offset;
    });
  }
  return chunks;
}

// The chunks of an archive, which are in order, against its storages.
Status check_archive(const Plan& plan, const TargetArchive& archive,
                     const std::vector<ArchivedChunk>& chunks) {
  auto next = chunks.begin();
  for (std::size_t s = 0; s < archive.storages->size(); ++s) {
    const ByteRange& storage = (*archive.storages)[s];
    std::uint64_t filled = 0;
    for (; next != chunks.end() && filled < storage.length; ++next) {
      const StoredTensor& tensor = plan.target.tensors[next->tensor];
      const ByteRange range = tensor.chunks.range(next->chunk);
      const Chunk chunk = tensor.chunks[next->chunk];
      const bool is_next =
          tensor.encoding == Encoding::kRaw && chunk.strides.empty() &&
          range.offset == storage.offset + filled && range.length <= storage.length - filled &&
          range.length == static_cast<std::uint64_t>(chunk.box.volume()) *
                              static_cast<std::uint64_t>(bytes_of(tensor.desc.dtype));
      if (!is_next) {
        return fail(Code::kPlanInvalid,
                    "tensor {}: its chunk {} does not fill storage {} of an archive",
                    tensor.desc.name, to_string(chunk.box), s);
      }
      filled += range.length;
    }
    if (filled < storage.length) {
      return fail(Code::kPlanInvalid, "plan: nothing fills storage {} of an archive", s);
    }
  }
  if (next == chunks.end()) return {};
  return fail(Code::kPlanInvalid, "tensor {}: a chunk lies outside of its archive's storages",
              plan.target.tensors[next->tensor].desc.name);
}

}  // namespace

Status check_archives(const Plan& plan) {
  if (plan.archives.empty()) return {};
  std::vector<bool> used(plan.target.files.size(), false);
  for (const TargetArchive& archive : plan.archives) {
    if (archive.file >= used.size() || used[archive.file] || archive.storages == nullptr) {
      return fail(Code::kPlanInvalid,
                  "plan: an archive is in a file that is not there, in that of another, or has no "
                  "storages");
    }
    used[archive.file] = true;
  }
  const ArchiveStorages archives(plan);
  const auto chunks = chunks_of_archives(plan, archives);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    SW_TRY(check_archive(plan, plan.archives[i], chunks[i]));
  }
  return {};
}

}  // namespace shardwright
