// SPDX-License-Identifier: Apache-2.0
#include "exec/target_writer.h"

#include <algorithm>
#include <array>

#include "base/crc32.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/torch_item.h"

namespace shardwright {

Status TargetWriter::create() {
  const std::vector<std::string>& paths = plan_->target.files;
  files_.reserve(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    files_.push_back(SW_TRY(directory_->create(paths[i], plan_->file_sizes[i])));
  }
  for (const Literal& literal : plan_->literals) {
    SW_TRY(files_[literal.file]->write_at(literal.offset, as_bytes(literal.bytes)));
  }
  for (std::size_t i = 0; i < plan_->objects.size(); ++i) {
    if (plan_->objects[i].is_copy) continue;
    const StoredObject& object = plan_->target.objects[i];
    SW_TRY(files_[object.file]->write_at(object.range.offset, as_bytes(*plan_->objects[i].bytes)));
  }
  SW_TRY(write_empty_items());
  return open_archives();
}

// No run will come for a chunk without elements, but its item is there.
Status TargetWriter::write_empty_items() {
  for (const StoredTensor& tensor : plan_->target.tensors) {
    if (tensor.encoding != Encoding::kTorchItem) continue;
    for (std::uint32_t chunk = 0; chunk < tensor.chunks.size(); ++chunk) {
      if (tensor.chunks.box(chunk).is_empty()) SW_TRY(write_item(tensor, chunk, {}));
    }
  }
  return {};
}

Status TargetWriter::open_archives() {
  for (const TargetArchive& archive : plan_->archives) SW_TRY(open_archive(archive));
  return {};
}

Status TargetWriter::open_archive(const TargetArchive& archive) {
  const Catalog& target = plan_->target;
  std::vector<std::uint64_t> sizes;
  for (const std::uint32_t tensor : archive.storages) {
    sizes.push_back(target.tensors[tensor].chunks.range(0).length);
  }
  TorchLayoutOptions options;
  options.prefix = archive.prefix;
  OpenArchive open{archive.file, SW_TRY(TorchLayout::make(archive.pickle, sizes, options)),
                   std::vector<std::uint32_t>(sizes.size(), 0), 0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t tensor = archive.storages[i];
    if (open.layout.storage(i).offset != target.tensors[tensor].chunks.range(0).offset) {
      return fail(Code::kPlanInvalid, "tensor {}: its storage lies elsewhere in the archive",
                  target.tensors[tensor].desc.name);
    }
    if (sizes[i] == 0) continue;  // no run will come
    ++open.missing;
    storages_.emplace(tensor, StorageOf{static_cast<std::uint32_t>(archives_.size()),
                                        static_cast<std::uint32_t>(i)});
  }
  SW_TRY(files_[archive.file]->write_at(0, as_bytes(open.layout.head())));
  if (open.missing == 0) SW_TRY(close_archive(open));
  archives_.push_back(std::move(open));
  return {};
}

Status TargetWriter::close_archive(const OpenArchive& archive) {
  const WritableFile& file = *files_[archive.file];
  for (std::size_t i = 0; i + 1 < archive.layout.storage_count(); ++i) {
    const ByteRange storage = archive.layout.storage(i);
    SW_TRY(file.write_at(storage.offset + storage.length,
                         as_bytes(archive.layout.between(i, archive.crcs[i]))));
  }
  const std::string tail = archive.layout.tail(archive.crcs);
  return file.write_at(archive.layout.total_bytes() - tail.size(), as_bytes(tail));
}

Status TargetWriter::write_storage_run(std::size_t tensor, const Run& run,
                                       std::span<const std::byte> bytes) {
  const StoredTensor& target = plan_->target.tensors[tensor];
  const ByteRange place = target.chunks.range(0);
  SW_TRY(write_raw(target.chunks.file(0), place.offset + run.offset, bytes));
  const auto crc = add_run(static_cast<std::uint64_t>(tensor) << 32, place.length, run);
  if (!crc) return {};
  const StorageOf storage = storages_.at(tensor);
  OpenArchive& archive = archives_[storage.archive];
  {
    const std::scoped_lock lock(mutex_);
    archive.crcs[storage.index] = *crc;
    if (--archive.missing > 0) return {};
  }
  return close_archive(archive);
}

std::optional<std::uint32_t> TargetWriter::add_run(std::uint64_t key, std::uint64_t payload,
                                                   const Run& run) {
  if (run.length == payload) return run.crc;
  std::vector<Run> runs;
  {
    const std::scoped_lock lock(mutex_);
    Pending& pending = pending_.try_emplace(key, Pending{payload, {}}).first->second;
    pending.missing -= run.length;
    pending.runs.push_back(run);
    if (pending.missing > 0) return std::nullopt;
    runs = std::move(pending.runs);
    pending_.erase(key);
  }
  std::sort(runs.begin(), runs.end(),
            [](const Run& a, const Run& b) { return a.offset < b.offset; });
  std::uint32_t crc = 0;
  for (const Run& part : runs) crc = crc32_combine(crc, part.crc, part.length);
  return crc;
}

Status TargetWriter::write_raw(std::uint32_t file, std::uint64_t offset,
                               std::span<const std::byte> bytes) {
  SW_TRY(files_[file]->write_at(offset, bytes));
  files_[file]->start_writeback(offset, bytes.size());
  return {};
}

Status TargetWriter::write_run(std::size_t tensor, std::uint32_t chunk, std::uint64_t run_offset,
                               std::span<const std::byte> bytes) {
  const StoredTensor& target = plan_->target.tensors[tensor];
  if (storages_.contains(tensor)) {
    return write_storage_run(tensor, {run_offset, bytes.size(), crc32(bytes)}, bytes);
  }
  if (target.encoding == Encoding::kRaw) {
    return write_raw(target.chunks.file(chunk), target.chunks.range(chunk).offset + run_offset,
                     bytes);
  }
  const std::int64_t payload = target.chunks.box(chunk).volume() * bytes_of(target.desc.dtype);
  if (bytes.size() == static_cast<std::uint64_t>(payload)) return write_item(target, chunk, bytes);
  return write_item_run(tensor, chunk, {run_offset, bytes.size(), crc32(bytes)}, bytes);
}

Status TargetWriter::write_item(const StoredTensor& tensor, std::uint32_t chunk,
                                std::span<const std::byte> payload) {
  const Chunk place = tensor.chunks[chunk];
  const TensorItem item =
      SW_TRY(TensorItem::make(tensor.desc.dtype, place.box.shape, place.range.offset));
  const std::string head = item.head();
  const std::string tail = item.tail(crc32(payload));
  const std::array<std::span<const std::byte>, 3> pieces = {as_bytes(head), payload,
                                                            as_bytes(tail)};
  SW_TRY(files_[place.file]->write_at(place.range.offset, pieces));
  files_[place.file]->start_writeback(place.range.offset, place.range.length);
  return {};
}

Status TargetWriter::write_item_run(std::size_t tensor, std::uint32_t chunk, const Run& run,
                                    std::span<const std::byte> bytes) {
  const StoredTensor& target = plan_->target.tensors[tensor];
  const Chunk place = target.chunks[chunk];
  const TensorItem item =
      SW_TRY(TensorItem::make(target.desc.dtype, place.box.shape, place.range.offset));
  SW_TRY(write_raw(place.file, place.range.offset + item.payload_offset() + run.offset, bytes));

  const std::uint64_t key = (static_cast<std::uint64_t>(tensor) << 32) | chunk;
  const std::uint64_t payload = static_cast<std::uint64_t>(place.box.volume()) *
                                static_cast<std::uint64_t>(bytes_of(target.desc.dtype));
  const auto crc = add_run(key, payload, run);
  if (!crc) return {};
  const std::string tail = item.tail(*crc);
  SW_TRY(files_[place.file]->write_at(place.range.offset, as_bytes(item.head())));
  return files_[place.file]->write_at(place.range.offset + place.range.length - tail.size(),
                                      as_bytes(tail));
}

}  // namespace shardwright
