// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "shardwright/plan.h"

namespace shardwright {
namespace {

// Word 0: the source, then how long each Dims is, then whether all steps are 1 and left out.
constexpr int kSourceBits = 32;
constexpr int kSizeBits = 4;
constexpr std::uint64_t kSizeMask = (1U << kSizeBits) - 1;
constexpr int kDims = 5;
constexpr int kUnitBit = kSourceBits + kDims * kSizeBits;
constexpr int kSteps = kDims - 1;  // which of them the steps are

static_assert(kMaxAxes <= static_cast<int>(kSizeMask));

std::array<const Dims*, kDims> dims_of(const TensorView& view) {
  return {&view.box.origin, &view.box.shape, &view.source_origin, &view.axis, &view.step};
}

std::array<Dims*, kDims> dims_of(TensorView& view) {
  return {&view.box.origin, &view.box.shape, &view.source_origin, &view.axis, &view.step};
}

bool has_unit_steps(const TensorView& view) {
  return std::ranges::all_of(view.step, [](std::int64_t step) { return step == 1; });
}

std::size_t words_for(const TensorView& view) {
  std::size_t words = 1;
  for (const Dims* dims : dims_of(view)) words += static_cast<std::size_t>(dims->size());
  return has_unit_steps(view) ? words - static_cast<std::size_t>(view.step.size()) : words;
}

}  // namespace

ViewList::ViewList(std::initializer_list<TensorView> views) {
  for (const TensorView& view : views) push_back(view);
}

TensorView ViewList::operator[](std::size_t index) const {
  const std::int64_t* word = words_.data() + index * stride_;
  const auto head = static_cast<std::uint64_t>(*word++);
  const bool is_unit = ((head >> kUnitBit) & 1) != 0;
  TensorView view;
  view.source = static_cast<std::uint32_t>(head);
  const std::array<Dims*, kDims> dims = dims_of(view);
  for (int i = 0; i < kDims; ++i) {
    const auto size = static_cast<int>((head >> (kSourceBits + i * kSizeBits)) & kSizeMask);
    Dims& values = *dims[static_cast<std::size_t>(i)];
    if (i == kSteps && is_unit) {
      values = Dims::filled(size, 1);
      continue;
    }
    for (int axis = 0; axis < size; ++axis) values.push_back(*word++);
  }
  return view;
}

void ViewList::make_room(std::size_t words_per_view) {
  if (words_per_view <= stride_) return;
  std::vector<std::int64_t> wider(words_per_view * count_, 0);
  for (std::size_t i = 0; i < count_; ++i) {
    std::copy_n(words_.data() + i * stride_, stride_, wider.data() + i * words_per_view);
  }
  words_ = std::move(wider);
  stride_ = static_cast<std::uint32_t>(words_per_view);
}

void ViewList::push_back(const TensorView& view) {
  make_room(words_for(view));
  words_.resize(words_.size() + stride_, 0);
  ++count_;
  set(count_ - 1, view);
}

void ViewList::set(std::size_t index, const TensorView& view) {
  make_room(words_for(view));
  const bool is_unit = has_unit_steps(view);
  std::uint64_t head = view.source;
  std::int64_t* word = words_.data() + index * stride_;
  std::int64_t* const first = word++;
  const std::array<const Dims*, kDims> dims = dims_of(view);
  for (int i = 0; i < kDims; ++i) {
    const Dims& values = *dims[static_cast<std::size_t>(i)];
    head |= static_cast<std::uint64_t>(values.size()) << (kSourceBits + i * kSizeBits);
    if (i == kSteps && is_unit) continue;
    word = std::ranges::copy(values, word).out;
  }
  if (is_unit) head |= std::uint64_t{1} << kUnitBit;
  *first = static_cast<std::int64_t>(head);
}

}  // namespace shardwright
