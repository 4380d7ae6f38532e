// SPDX-License-Identifier: Apache-2.0
#include "exec/target_framing.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/crc32.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/torch_item.h"
#include "codec/torch_layout.h"
#include "exec/payload_place.h"

namespace shardwright {
namespace {

std::uint64_t framing_key(std::uint32_t tensor, std::uint32_t chunk) {
  return (static_cast<std::uint64_t>(tensor) << 32) | chunk;
}

struct SummedRun {
  std::uint64_t offset;
  std::uint64_t length;
  std::uint32_t crc;
};

std::uint32_t combined_crc(std::vector<SummedRun>& runs) {
  std::ranges::sort(runs, {}, &SummedRun::offset);
  std::uint32_t crc = 0;
  for (const SummedRun& run : runs) crc = crc32_combine(crc, run.crc, run.length);
  return crc;
}

// A part of an archive's storage. Plans have hundreds of thousands.
struct StorageRun {
  std::uint32_t archive;
  std::uint32_t storage;
  SummedRun run;

  [[nodiscard]] bool is_before(const StorageRun& other) const {
    return std::tuple(archive, storage, run.offset) <
           std::tuple(other.archive, other.storage, other.run.offset);
  }
};

// Made when it is needed: those of a thousand archives would hold as many pickles.
Result<TorchLayout> layout_of(const TargetArchive& archive) {
  std::string pickle;
  for (const auto& piece : archive.pickle) pickle += *piece;
  std::vector<std::uint64_t> sizes;
  for (const ByteRange& storage : *archive.storages) sizes.push_back(storage.length);
  TorchLayoutOptions options;
  options.prefix = archive.prefix;
  return TorchLayout::make(std::move(pickle), sizes, options);
}

}  // namespace

Status TargetFraming::write(std::uint32_t file, std::uint64_t offset,
                            std::string_view bytes) const {
  const WritableFile& target = *SW_TRY(files_->get(file));
  return target.write_at(offset, as_bytes(bytes));
}

Status TargetFraming::begin_archive(const TargetArchive& archive) const {
  const TorchLayout layout = SW_TRY(layout_of(archive));
  for (std::size_t i = 0; i < layout.storage_count(); ++i) {
    if (layout.storage(i).offset == (*archive.storages)[i].offset) continue;
    return fail(Code::kPlanInvalid, "{}: storage {} lies elsewhere in the archive",
                plan_->target.files[archive.file], i);
  }
  return write(archive.file, 0, layout.head());
}

Status TargetFraming::end_archive(const TargetArchive& archive,
                                  std::span<const std::uint32_t> crcs) const {
  const TorchLayout layout = SW_TRY(layout_of(archive));
  for (std::size_t i = 0; i + 1 < layout.storage_count(); ++i) {
    const ByteRange storage = layout.storage(i);
    SW_TRY(write(archive.file, storage.offset + storage.length, layout.between(i, crcs[i])));
  }
  const std::string tail = layout.tail(crcs);
  return write(archive.file, layout.total_bytes() - tail.size(), tail);
}

Status TargetFraming::write_known() const {
  for (const Literal& literal : plan_->literals) {
    SW_TRY(write(literal.file, literal.offset, literal.bytes));
  }
  for (std::size_t i = 0; i < plan_->objects.size(); ++i) {
    if (plan_->objects[i].is_copy) continue;
    const StoredObject& object = plan_->target.objects[i];
    SW_TRY(write(object.file, object.range.offset, *plan_->objects[i].bytes));
  }
  for (const TargetArchive& archive : plan_->archives) SW_TRY(begin_archive(archive));
  for (std::uint32_t tensor = 0; tensor < plan_->target.tensors.size(); ++tensor) {
    if (!is_item(tensor)) continue;
    // No run will come for a chunk without elements, but its item is there.
    const ChunkList& chunks = plan_->target.tensors[tensor].chunks;
    for (std::uint32_t chunk = 0; chunk < chunks.size(); ++chunk) {
      if (chunks.box(chunk).is_empty()) SW_TRY(frame(tensor, chunk, 0));
    }
  }
  return {};
}

Status TargetFraming::frame(std::uint32_t tensor, std::uint32_t chunk, std::uint32_t crc) const {
  const StoredTensor& target = plan_->target.tensors[tensor];
  const Chunk place = target.chunks[chunk];
  const TensorItem item =
      SW_TRY(TensorItem::make(target.desc.dtype, place.box.shape, place.range.offset));
  const std::string tail = item.tail(crc);
  SW_TRY(write(place.file, place.range.offset, item.head()));
  return write(place.file, place.range.offset + place.range.length - tail.size(), tail);
}

Status TargetFraming::frame_all(const std::vector<WrittenRun>& runs) const {
  for (const WrittenRun& written : runs) {
    const PieceRun& run = written.run;
    if (written.is_framed || run.is_object() || !is_item(run.index)) continue;
    if (run.length != payload_bytes(plan_->target.tensors[run.index], run.chunk)) continue;
    SW_TRY(frame(run.index, run.chunk, written.crc));
  }
  return {};
}

Status TargetFraming::finish(const PieceList& pieces, const FinishedPieces& finished) const {
  std::unordered_map<std::uint64_t, std::vector<SummedRun>> items;
  std::vector<StorageRun> stored;
  for (std::uint32_t piece = 0; piece < pieces.size(); ++piece) {
    if (!finished[piece]) return fail(Code::kInternal, "piece {} is not finished", piece);
    const std::vector<PieceRun> runs = pieces.runs(piece);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const PieceRun& run = runs[i];
      if (run.is_object()) continue;
      const StoredTensor& tensor = plan_->target.tensors[run.index];
      const std::uint32_t crc = (*finished[piece])[i];
      if (is_item(run.index)) {
        if (run.length == payload_bytes(tensor, run.chunk)) continue;  // framed when it was written
        items[framing_key(run.index, run.chunk)].push_back({run.offset, run.length, crc});
        continue;
      }
      const auto archive = storages_.archive_of(tensor.chunks.file(run.chunk));
      if (!archive) continue;
      const std::uint64_t offset = tensor.chunks.range(run.chunk).offset + run.offset;
      const auto storage = storages_.storage_at(*archive, offset);
      if (storage) stored.push_back({*archive, *storage, {offset, run.length, crc}});
    }
  }
  for (auto& [key, runs] : items) {
    SW_TRY(frame(static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key),
                 combined_crc(runs)));
  }
  std::ranges::sort(stored,
                    [](const StorageRun& a, const StorageRun& b) { return a.is_before(b); });
  auto next = stored.begin();
  for (std::uint32_t i = 0; i < plan_->archives.size(); ++i) {
    const TargetArchive& archive = plan_->archives[i];
    std::vector<std::uint32_t> crcs(archive.storages->size(), 0U);
    for (; next != stored.end() && next->archive == i; ++next) {
      std::uint32_t& crc = crcs[next->storage];
      crc = crc32_combine(crc, next->run.crc, next->run.length);
    }
    SW_TRY(end_archive(archive, crcs));
  }
  return {};
}

}  // namespace shardwright
