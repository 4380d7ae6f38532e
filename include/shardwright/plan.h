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
#include "shardwright/quantised.h"
#include "shardwright/quantising.h"

namespace shardwright {

/// How a region of a target tensor reads a source tensor. Element box.origin + t of the target is
/// the source element whose coordinate on axis axis[a] is source_origin[axis[a]] + t[a] * step[a];
/// source axes that no target axis names stay at source_origin.
struct TensorView {
  Box box;                   ///< in the target tensor
  std::uint32_t source = 0;  ///< index into Plan::source.tensors
  Dims source_origin;        ///< one per source axis
  Dims axis;                 ///< per target axis: a source axis, or -1 where all repeat the same
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

/// A matrix of the source to which a product of two small ones is added as it is read. Element c is
/// factor[c[out_axis]] * (value + scale * sum over k of out[c[out_axis]][k] * in[k][c[in_axis]]),
/// in float32 as add_low_rank() rounds. A vector has no in_axis and no `in`, and `out` is a vector
/// too. Of matrices that lie in one tensor (`each_axis` counts them) each has its own product: both
/// small tensors count them in front.
struct AdaptedSource {
  std::uint32_t values = 0;         ///< index into Plan::source.tensors
  std::uint32_t out = 0;            ///< likewise: [extent of out_axis, rank], one row-major chunk
  std::optional<std::uint32_t> in;  ///< likewise: [rank, extent of in_axis]
  int out_axis = 0;
  int in_axis = 1;
  float scale = 1.0F;
  /// One for each coordinate of out_axis; null: all are 1.
  std::shared_ptr<const std::vector<float>> factors = nullptr;
  std::optional<int> each_axis = {};  ///< of several matrices, which it counts
};

/// A tensor of the source that is multiplied as it is read, and added to others. What reads such
/// tensors reads nothing else; of each element those with the least term come first:
/// weight * (value + add), then each of the others added in the order of their terms. Values are
/// rounded to float32 once `add` is added (which is nothing where that is 0), and so is every
/// product and every sum; the last one is rounded to the target's type. Types that are not floating
/// point are not multiplied: all terms must be alike. A low half is behind a term of bfloat16
/// values with weight 1, whose float32 numbers it makes whole.
struct WeightedSource {
  std::uint32_t values = 0;  ///< index into Plan::source.tensors
  float weight = 1.0F;
  std::uint32_t term = 0;
  double add = 0.0;
  /// Its values are whole numbers that are not added: see join_low_halves().
  bool is_low_half = false;
};

/// Everything that one target tensor is made of. The views are disjoint, or those of one term are.
struct TensorRecipe {
  ViewList views;
  /// What no view covers becomes this value (vocabulary padding, constants); without it that is an
  /// error.
  std::optional<double> fill;
  /// Added to each element (zero-centred norms).
  double add = 0.0;
  /// Of a tensor that holds values or scales of a matrix: the recipe makes the matrix, in float32.
  std::shared_ptr<const Quantising> quantising = nullptr;
};

/// The shape of what a recipe makes for a tensor.
[[nodiscard]] inline const Dims& made_shape(const TensorRecipe& recipe, const TensorDesc& target) {
  return recipe.quantising == nullptr ? target.shape : recipe.quantising->shape;
}

/// An opaque entry of the target: a copy of a source object's bytes, or new bytes.
struct ObjectRecipe {
  bool is_copy = false;
  std::uint32_t source = 0;  ///< index into Plan::source.objects, for copies
  /// Of new ones. Modules have states by the ten thousand that are all alike: those share theirs.
  std::shared_ptr<const std::string> bytes = nullptr;
};

/// A torch.save archive of the target with several storages, which the raw chunks that lie in its
/// file fill. Archives of a thousand ranks differ in a few bytes, so they share the rest.
struct TargetArchive {
  std::uint32_t file = 0;  ///< index into Plan::target.files; the archive is the whole file
  std::string prefix;      ///< the folder of its records
  std::vector<std::shared_ptr<const std::string>> pickle;  ///< these, one behind the other
  std::shared_ptr<const std::vector<ByteRange>> storages;  ///< where 0, 1, ... lie in the file
};

/// How one catalog becomes another: every output byte is a literal, an object, a tensor element, or
/// the framing of a torch archive around it. Nothing of a plan is decided while it runs.
struct Plan {
  Catalog source;                          ///< located: Encoding::kRaw
  std::vector<QuantisedSource> quantised;  ///< source tensors that are multiplied as they are read
  std::vector<AdaptedSource> adapted;      ///< and such that something is added to then
  std::vector<WeightedSource> weighted;    ///< and such that are terms of sums
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
/// source (in sums one of each term) and exactly one place (in archives, which ranks read alone,
/// one or more), source chunks are disjoint and complete where they are read, conversions exist,
/// every byte of an archive's storages is filled once. Errors name the tensor and the box.
[[nodiscard]] Status check_plan(const Plan& plan);

[[nodiscard]] PlanCost cost_of(const Plan& plan);

}  // namespace shardwright
