// SPDX-License-Identifier: Apache-2.0
#include "dcp/dcp_heap.h"

namespace shardwright::dcp {

std::uint32_t Heap::new_dict() {
  if (free_dicts_.empty()) {
    dicts_.emplace_back();
    return static_cast<std::uint32_t>(dicts_.size() - 1);
  }
  const std::uint32_t record = free_dicts_.back();
  free_dicts_.pop_back();
  DictRecord& dict = dicts_[record];
  dict.count = 0;
  dict.pairs = 0;
  dict.understood = 0;
  dict.stray = kNone32;
  return record;
}

std::uint32_t Heap::new_list() {
  if (free_lists_.empty()) {
    lists_.emplace_back();
    return static_cast<std::uint32_t>(lists_.size() - 1);
  }
  const std::uint32_t record = free_lists_.back();
  free_lists_.pop_back();
  ListRecord& list = lists_[record];
  list.mixed = false;
  list.chunks = ChunkList();
  list.strings.clear();
  list.integer_count = 0;
  return record;
}

void Heap::release_list(std::uint32_t record) {
  if (!lists_[record].pinned) free_lists_.push_back(record);
}

// One level only: a dict deeper inside stays until the end, which real files do not make.
void Heap::release_dict(std::uint32_t record) {
  const DictRecord& dict = dicts_[record];
  if (dict.pinned) return;
  for (std::size_t i = 0; i < dict.count; ++i) {
    const Cell& cell = dict.cells[i];
    if (cell.tag == Tag::kList) release_list(cell.a);
    if (cell.tag == Tag::kDict && !dicts_[cell.a].pinned) free_dicts_.push_back(cell.a);
  }
  free_dicts_.push_back(record);
}

void Heap::drop(const Cell& cell) {
  switch (cell.tag) {
    case Tag::kDict:
    case Tag::kTensor:
    case Tag::kRoot:
      release_dict(cell.a);
      return;
    case Tag::kList:
      release_list(cell.a);
      return;
    case Tag::kInfo:
      if (cell.c != kNone32) release_list(cell.c);
      return;
    default:
      return;
  }
}

bool Heap::needs_heap(const Cell& cell) {
  switch (cell.tag) {
    case Tag::kDims:
    case Tag::kArguments:
    case Tag::kDict:
    case Tag::kList:
    case Tag::kChunk:
    case Tag::kIndex:
    case Tag::kInfo:
    case Tag::kTensor:
    case Tag::kRoot:
      return true;
    default:
      return false;
  }
}

std::uint32_t Heap::keep_integers(std::uint32_t place, std::size_t count) {
  if ((place & kKept) != 0) return place;
  const auto kept = static_cast<std::uint32_t>(kept_.size());
  kept_.insert(kept_.end(), passing_.begin() + place,
               passing_.begin() + place + static_cast<std::ptrdiff_t>(count));
  return kept | kKept;
}

// Values within values are pinned from a list of things to do: nesting costs no call stack.
void Heap::pin_dict(std::uint32_t record) {
  std::vector<std::uint32_t> pending = {record};
  while (!pending.empty()) {
    DictRecord& dict = dicts_[pending.back()];
    pending.pop_back();
    if (dict.pinned) continue;
    dict.pinned = true;
    for (std::size_t i = 0; i < dict.count; ++i) {
      Cell& cell = dict.cells[i];
      if (cell.tag == Tag::kDict || cell.tag == Tag::kTensor || cell.tag == Tag::kRoot) {
        pending.push_back(cell.a);
      } else {
        cell = keep(cell);
      }
    }
  }
}

Cell Heap::keep(Cell cell) {
  switch (cell.tag) {
    case Tag::kDims:
    case Tag::kArguments:
      cell.a = keep_integers(cell.a, cell.n);
      break;
    case Tag::kChunk:
      cell.a = keep_integers(cell.a, cell.n);
      cell.b = keep_integers(cell.b, cell.n);
      break;
    case Tag::kIndex:
      if (cell.n != kNoOffset) cell.b = keep_integers(cell.b, cell.n);
      break;
    case Tag::kInfo:
      cell.b = keep_integers(cell.b, 2);
      if (cell.c != kNone32) lists_[cell.c].pinned = true;
      break;
    case Tag::kDict:
    case Tag::kTensor:
    case Tag::kRoot:
      pin_dict(cell.a);
      break;
    case Tag::kList:
      lists_[cell.a].pinned = true;
      break;
    case Tag::kNew:
      return share_object(cell);
    default:
      break;
  }
  return cell;
}

Cell Heap::share_object(const Cell& cell) {
  objects_.push_back(cell);
  Cell shared;
  shared.tag = Tag::kShared;
  shared.a = static_cast<std::uint32_t>(objects_.size() - 1);
  return shared;
}

std::uint32_t Heap::add_path(std::span<const Cell> steps) {
  const auto first = static_cast<std::uint32_t>(path_steps_.size());
  path_steps_.insert(path_steps_.end(), steps.begin(), steps.end());
  return first;
}

}  // namespace shardwright::dcp
