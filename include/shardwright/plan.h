// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright {

/// How a region of a target tensor reads a source tensor. Element box.origin + t of the target is
/// the source element whose coordinate on axis axis[a] is source_origin[axis[a]] + t[a] * step[a];
/// source axes that no target axis names stay at source_origin.
struct TensorView {
  Box box;                   ///< in the target tensor
  std::uint32_t source = 0;  ///< index into Plan::source.tensors
  Dims source_origin;        ///< one per source axis
  Dims axis;                 ///< per target axis: a source axis, or -1 where the extent is 1
  Dims step;                 ///< per target axis: source elements per step, positive
};

/// The views of one tensor, packed: a plan has one for each layer, expert and rank, and a view of
/// two axes takes 72 bytes here instead of 368.
class ViewList {
 public:
  ViewList() = default;
  ViewList(std::initializer_list<TensorView> views);

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] TensorView operator[](std::size_t index) const;
  void push_back(const TensorView& view);
  void set(std::size_t index, const TensorView& view);
  void shrink_to_fit() { words_.shrink_to_fit(); }
  /// What the list takes outside of itself.
  [[nodiscard]] std::size_t allocated_bytes() const {
    return words_.capacity() * sizeof(std::int64_t);
  }

  /// Gives views by value.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = TensorView;
    using difference_type = std::ptrdiff_t;
    using pointer = const TensorView*;
    using reference = TensorView;
    Iterator() = default;
    Iterator(const ViewList* list, std::size_t index) : list_(list), index_(index) {}
    TensorView operator*() const { return (*list_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++index_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    const ViewList* list_ = nullptr;
    std::size_t index_ = 0;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, count_}; }

 private:
  void make_room(std::size_t words_per_view);

  std::uint32_t count_ = 0;
  std::uint32_t stride_ = 0;         // words per view: those of the longest one
  std::vector<std::int64_t> words_;  // per view: source and sizes, then the dims one by one
};

/// A source tensor whose stored values mean something only together with another tensor's scales:
/// element c is the stored value times the scale number sum over axes a of (c[a] / block[a]) *
/// stride[a]. Of fp4 (`kF4E2M1X2`) the shape, the boxes and the strides of its chunks count values,
/// not the bytes that hold two of them.
struct QuantisedSource {
  std::uint32_t values = 0;  ///< index into Plan::source.tensors
  std::uint32_t scales = 0;  ///< likewise; one row-major chunk
  Dims block;                ///< per axis of the values: how many run on with one scale
  Dims stride;               ///< per axis of the values: scales from a block to the next
};

/// Everything that one target tensor is made of. The views are disjoint.
struct TensorRecipe {
  ViewList views;
  /// What no view covers becomes this value (vocabulary padding, constants); without it that is an
  /// error.
  std::optional<double> fill;
  /// Added to each element (zero-centred norms).
  double add = 0.0;
};

/// An opaque entry of the target: a copy of a source object's bytes, or new bytes.
struct ObjectRecipe {
  bool is_copy = false;
  std::uint32_t source = 0;  ///< index into Plan::source.objects, for copies
  /// Of new ones. Modules have states by the ten thousand that are all alike: those share theirs.
  std::shared_ptr<const std::string> bytes = nullptr;
};

/// A torch.save archive of the target with several storages: its pickle, and the tensors that are
/// its storages 0, 1, ...: each has one raw chunk, the storage's place.
struct TargetArchive {
  std::uint32_t file = 0;  ///< index into Plan::target.files; the archive is the whole file
  std::string prefix;      ///< the folder of its records
  std::string pickle;
  std::vector<std::uint32_t> storages;  ///< indices into Plan::target.tensors
};

/// How one catalog becomes another: every output byte is a literal, an object, a tensor element, or
/// the framing of a torch archive around it. Nothing of a plan is decided while it runs.
struct Plan {
  Catalog source;                          ///< located: Encoding::kRaw
  std::vector<QuantisedSource> quantised;  ///< source tensors that are multiplied as they are read
  Catalog target;
  std::vector<std::uint64_t> file_sizes;  ///< of target.files
  std::vector<TensorRecipe> tensors;      ///< of target.tensors
  std::vector<ObjectRecipe> objects;      ///< of target.objects
  std::vector<Literal> literals;
  std::vector<TargetArchive> archives;
};

/// What a plan costs, exact but for the few bytes of archive framing that are read to locate items.
struct PlanCost {
  std::uint64_t payload_bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t source_files = 0;
  std::uint64_t target_files = 0;
};

/// Proves a plan before a byte is moved: every element of every target tensor has exactly one
/// source and exactly one place, source chunks are disjoint and complete where they are read,
/// conversions exist. Errors name the tensor and the box.
[[nodiscard]] Status check_plan(const Plan& plan);

[[nodiscard]] PlanCost cost_of(const Plan& plan);

}  // namespace shardwright
