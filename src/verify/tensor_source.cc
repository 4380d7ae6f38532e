// SPDX-License-Identifier: Apache-2.0
#include "verify/tensor_source.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "exec/tile_reader.h"
#include "io/source_files.h"

namespace shardwright {

std::vector<std::size_t> TensorSource::order() const {
  std::vector<std::size_t> order(listed_);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

Result<std::string> TensorSource::read_document(std::string_view name) const {
  return fail(Code::kNotFound, "{}: there is no file {} beside tensors under these names",
              checkpoint().location.path, name);
}

Status TensorSource::read_checked(std::size_t tensor, const Box& box, std::span<std::byte> bytes) {
  if (tensor >= descs_.size()) {
    return fail(Code::kOutOfBounds, "there is no tensor {}: the checkpoint has {}", tensor,
                listed_);
  }
  const TensorDesc& desc = descs_[tensor];
  const Box checked = SW_TRY(make_box(box.origin, box.shape, desc.shape));
  const std::int64_t wanted = SW_TRY(byte_count(checked.shape, desc.dtype));
  if (std::cmp_not_equal(wanted, bytes.size())) {
    return fail(Code::kOutOfBounds, "{}: {} bytes of memory were given for {}, which has {}",
                desc.name, bytes.size(), to_string(checked), wanted);
  }
  return read(tensor, checked, bytes);
}

std::optional<std::size_t> TensorSource::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

Result<std::string> TensorSource::read_object(std::size_t index) const {
  if (index >= objects_.size()) {
    return fail(Code::kOutOfBounds, "there is no entry {} beside the tensors: there are {}", index,
                objects_.size());
  }
  return bytes_of(stored().objects[index]);
}

Result<std::string> TensorSource::bytes_of(const StoredObject& object) const {
  const auto file = SW_TRY(checkpoint().files->get(object.file));
  // Before memory is taken for what a hostile length says.
  if (object.range.offset > file->size() ||
      object.range.length > file->size() - object.range.offset) {
    return fail(Code::kShortRead, "{}: ends before entry {}, which lies at bytes {} to {}",
                file->name(), object.name, object.range.offset,
                object.range.offset + object.range.length);
  }
  std::string bytes(static_cast<std::size_t>(object.range.length), '\0');
  SW_TRY(file->read_at(object.range.offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

std::vector<std::string> TensorSource::take_notes() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(notes_, {});
}

void TensorSource::list(const Catalog& tensors, std::size_t listed) {
  listed_ = listed;
  for (const StoredTensor& tensor : tensors.tensors) descs_.push_back(tensor.desc);
  for (std::size_t i = 0; i < descs_.size(); ++i) numbers_.emplace(descs_[i].name, i);
  for (const StoredObject& object : stored().objects) objects_.push_back(object.name);
}

Status read_box(const Plan& plan, const Lowering& lowering, SourceFiles& files, std::size_t tensor,
                const Box& box, std::span<std::byte> bytes) {
  if (bytes.empty()) return {};
  constexpr std::size_t kScratchBytes = std::size_t{1} << 20;
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(kScratchBytes);
  TileReader reader(plan, lowering, files, std::span(scratch.get(), kScratchBytes));
  const TilePart part =
      dense_part(box, bytes.data(), bytes_of(plan.target.tensors[tensor].desc.dtype));
  return reader.read(tensor, box, bytes, std::span(&part, 1));
}

}  // namespace shardwright
