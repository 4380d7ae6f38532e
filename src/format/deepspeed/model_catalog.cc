// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/model_catalog.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/fail.h"
#include "base/text.h"
#include "layout/state_name.h"
#include "plan/canonical.h"
#include "tensor/flat_chunks.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

// The name of the parameter that a tensor is, or that it is a state of.
std::string_view parameter_of(std::string_view name) {
  const auto state = split_state_name(name);
  return state && is_optimizer_name(name) ? state->tensor : name;
}

}  // namespace

Status ModelCatalog::take_name(const std::string& name) {
  if (name.empty()) return fail(Code::kZeroLayout, "found a tensor without a name");
  if (seen_.emplace(name, tensors_.tensors.size()).second) return {};
  return fail(Code::kDuplicateName, "tensor {}: found twice", printable(name));
}

const TensorDesc* ModelCatalog::find(std::string_view name) const {
  const auto found = seen_.find(std::string(name));
  return found == seen_.end() ? nullptr : &tensors_.tensors[found->second].desc;
}

Status ModelCatalog::add_whole(const std::string& name, std::uint32_t file,
                               const LocatedTensor& place) {
  SW_TRY(take_name(name));
  return add_replica(name, file, place);
}

Status ModelCatalog::add_replica(const std::string& name, std::uint32_t file,
                                 const LocatedTensor& place) {
  const LegacyPart whole{
      {name, place.dtype, place.shape}, Box::whole(place.shape), 0, row_major_strides(place.shape)};
  return chunks_.add("", {file, place, whole, true});
}

Status ModelCatalog::add_flat(TensorDesc desc, std::span<const FlatElements> pieces) {
  SW_TRY(take_name(desc.name));
  StoredTensor tensor{std::move(desc), ChunkList(0), Encoding::kRaw};
  const TensorDesc& wanted = tensor.desc;
  tensor.chunks = ChunkList(wanted.shape.size());
  for (const FlatElements& piece : pieces) {
    append_flat_piece(Box::whole(wanted.shape), {piece.from, piece.to, piece.file, piece.offset},
                      bytes_of(wanted.dtype), tensor.chunks);
  }
  tensors_.tensors.push_back(std::move(tensor));
  return {};
}

Status ModelCatalog::add_shared(const std::string& name, std::string_view other) {
  const auto found = seen_.find(std::string(other));
  if (found == seen_.end()) {
    return fail(Code::kZeroLayout, "parameter {}: it is shared with {}, which is not there",
                printable(name), printable(other));
  }
  const std::size_t index = found->second;
  SW_TRY(take_name(name));
  StoredTensor tensor = tensors_.tensors[index];
  tensor.desc.name = name;
  tensors_.tensors.push_back(std::move(tensor));
  return {};
}

std::string ModelCatalog::common_prefix() const {
  constexpr std::array<std::string_view, 2> kWrappers = {"module.", "_orig_mod."};
  std::string prefix;
  for (bool found = !tensors_.tensors.empty(); found;) {
    found = false;
    for (const std::string_view wrapper : kWrappers) {
      const std::string longer = prefix + std::string(wrapper);
      if (!std::ranges::all_of(tensors_.tensors, [&](const StoredTensor& tensor) {
            return parameter_of(tensor.desc.name).starts_with(longer);
          })) {
        continue;
      }
      prefix = longer;
      found = true;
    }
  }
  return prefix;
}

void ModelCatalog::finish(std::span<const std::string> names) {
  std::unordered_map<std::string_view, std::size_t> order;
  for (const std::string& name : names) order.emplace(name, order.size());
  const auto rank_of = [&](const StoredTensor& tensor) {
    const std::string_view name = tensor.desc.name;
    const auto known = order.find(parameter_of(name));
    const std::size_t place =
        known == order.end() ? std::numeric_limits<std::size_t>::max() : known->second;
    return std::pair(is_optimizer_name(name), place);
  };
  std::ranges::stable_sort(tensors_.tensors, {}, rank_of);
  const std::string prefix = common_prefix();
  if (!prefix.empty()) {
    for (StoredTensor& tensor : tensors_.tensors) {
      const auto at = tensor.desc.name.size() - parameter_of(tensor.desc.name).size();
      tensor.desc.name.erase(at, prefix.size());
    }
    checkpoint_.notes.push_back(
        translated("all names begin with {}, which is taken off: a wrapper gave it", prefix));
  }
  std::ranges::move(tensors_.tensors, std::back_inserter(checkpoint_.catalog.tensors));
  tensors_.tensors.clear();
}

}  // namespace shardwright
