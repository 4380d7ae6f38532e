// SPDX-License-Identifier: Apache-2.0
#include "dcp/item_places.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/fail.h"
#include "dcp/torch_items.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostShared = 20;

// Where an item begins, and whose it is: of a tensor, or behind these of an object. Small, for
// there may be millions; the rest is looked up.
struct ItemPlace {
  std::uint64_t offset;
  std::uint32_t file;
  std::uint32_t owner;
  std::uint32_t chunk;  // 0 for objects

  [[nodiscard]] auto order() const { return std::tuple(file, offset, owner, chunk); }
};

class ItemPlaces {
 public:
  explicit ItemPlaces(const Catalog& catalog) : catalog_(catalog) {}

  Status check(Defects& defects) {
    collect();
    std::ranges::sort(places_, {}, &ItemPlace::order);
    const ItemPlace* widest = nullptr;  // what reaches furthest of all before
    std::size_t shared = 0;
    for (const ItemPlace& place : places_) {
      const bool is_apart = widest == nullptr || widest->file != place.file ||
                            place.offset - widest->offset >= length_of(*widest);
      if (!is_apart && !may_share(*widest, place)) {
        SW_TRY(defects.report(shared_place(*widest, place)));
        if (++shared == kMostShared) return {};
      }
      if (is_apart || end_of(place) > end_of(*widest)) widest = &place;
    }
    return {};
  }

 private:
  void collect() {
    std::size_t count = catalog_.objects.size();
    for (const StoredTensor& tensor : catalog_.tensors) count += tensor.chunks.size();
    places_.reserve(count);
    std::uint32_t owner = 0;
    for (const StoredTensor& tensor : catalog_.tensors) {
      for (std::uint32_t c = 0; c < tensor.chunks.size(); ++c) {
        add({tensor.chunks.range(c).offset, tensor.chunks.file(c), owner, c});
      }
      ++owner;
    }
    for (const StoredObject& object : catalog_.objects) {
      add({object.range.offset, object.file, owner++, 0});
    }
  }

  void add(const ItemPlace& place) {
    if (length_of(place) > 0) places_.push_back(place);
  }

  [[nodiscard]] const StoredTensor* tensor_of(const ItemPlace& place) const {
    const std::size_t tensors = catalog_.tensors.size();
    return place.owner < tensors ? &catalog_.tensors[place.owner] : nullptr;
  }
  [[nodiscard]] const StoredObject& object_of(const ItemPlace& place) const {
    return catalog_.objects[place.owner - catalog_.tensors.size()];
  }
  [[nodiscard]] std::uint64_t length_of(const ItemPlace& place) const {
    const StoredTensor* tensor = tensor_of(place);
    return tensor ? tensor->chunks.range(place.chunk).length : object_of(place).range.length;
  }
  [[nodiscard]] std::uint64_t end_of(const ItemPlace& place) const {
    return place.offset + length_of(place);
  }

  [[nodiscard]] bool may_share(const ItemPlace& one, const ItemPlace& other) const {
    const StoredTensor* a = tensor_of(one);
    const StoredTensor* b = tensor_of(other);
    if (a == nullptr || b == nullptr) return false;
    if (a != b) {
      // Such a file is written as a whole, with all tensors that a rank has.
      return is_safetensors_item(*a, one.chunk) && is_safetensors_item(*b, other.chunk);
    }
    return one.offset == other.offset &&
           std::ranges::equal(a->chunks.origin(one.chunk), a->chunks.origin(other.chunk));
  }

  [[nodiscard]] std::string text_of(const ItemPlace& place) const {
    const StoredTensor* tensor = tensor_of(place);
    if (tensor == nullptr) return translated("object {}", object_of(place).name);
    return translated("tensor {}: chunk {}", tensor->desc.name,
                      to_string(tensor->chunks.box(place.chunk)));
  }

  [[nodiscard]] std::unexpected<Error> shared_place(const ItemPlace& one,
                                                    const ItemPlace& other) const {
    return fail(Code::kMetadataCorrupt,
                ".metadata: {} and {} share bytes of {} from byte {} on, expected each in a place "
                "of its own; the file was damaged, restore it",
                text_of(one), text_of(other), catalog_.files[other.file], other.offset);
  }

  const Catalog& catalog_;
  std::vector<ItemPlace> places_;
};

}  // namespace

Status check_item_places(const Catalog& catalog, Defects& defects) {
  return ItemPlaces(catalog).check(defects);
}

}  // namespace shardwright
