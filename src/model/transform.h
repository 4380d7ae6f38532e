// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "model/size_expr.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// One HF tensor is one Megatron tensor.
struct Rename {};

/// Several HF tensors, one after another along `axis`, make one Megatron tensor (gate and up).
struct Concat {
  int axis = 0;
  std::vector<SizeExpr> extents;  ///< per HF tensor; empty means equal parts
};

/// One HF tensor is cut along `axis` into several Megatron tensors.
struct Split {
  int axis = 0;
  std::vector<SizeExpr> extents;  ///< per Megatron tensor; empty means equal parts, and a last one
                                  ///< that is missing what is left
};

/// A run of rows that every group takes from one HF tensor: `repeat` times `rows` rows, `stride`
/// rows apart, the first `offset` rows into the group's share.
struct GroupPart {
  int source = 0;  ///< index of the HF tensor, or of the section of a packed one
  SizeExpr rows;
  SizeExpr repeat;
  SizeExpr stride;
  SizeExpr offset;
  SizeExpr copies;         ///< how often Megatron has each run; back goes the first
  bool repeats = false;    ///< the source's own part stands before it: there is no way back
  bool is_absent = false;  ///< HF has no such rows; `source` does not count
};

/// The Megatron rows are `count` groups, each the parts in order; the HF rows are part by part.
/// Attention is this with one group per key-value head: the query heads, then key, then value.
struct Grouped {
  SizeExpr count;
  std::vector<GroupPart> parts;
  bool packed = false;  ///< the sources are sections of a single HF tensor
  /// The other way round: the rows of the one HF tensor are the groups, and each source is a
  /// Megatron tensor.
  bool dealt = false;
  std::optional<double> fill;  ///< Megatron's rows that HF does not have
  /// The query heads of all groups: then `count`, the name of one size, is what the tensors show.
  std::optional<SizeExpr> counted_heads;
};

/// One HF tensor is each of several Megatron tensors; the first of them goes back.
struct Repeat {};

/// One HF tensor is cut along `axis` into Megatron tensors that lack it.
struct Unstack {
  int axis = 0;
};

/// HF row i belongs to part i mod `ways`; Megatron keeps the parts one after another.
struct Interleaved {
  int axis = 0;
  int ways = 2;
};

/// Megatron's halves along `axis` are HF's in the other order.
struct Swapped {
  int axis = 0;
};

/// One side has `count` axes more, from `axis` on, of extent 1.
struct UnitAxis {
  int axis = 0;
  int count = 1;
  bool in_megatron = false;  ///< otherwise HF has them

  /// Whether an axis of that side is one of them.
  [[nodiscard]] bool covers(int at) const { return at >= axis && at < axis + count; }
};

/// A Megatron tensor that HF does not have: every element is `value`.
struct Constant {
  double value = 0.0;
  bool is_unused = false;  ///< Megatron computes nothing with it: any other value may stand there
};

/// The closed set of correspondences that a rule may use. Each one lowers to pieces, and a piece
/// reads the same in both directions, so no transform has code of its own for the way back.
using Transform = std::variant<Rename, Concat, Split, Repeat, Unstack, Grouped, Interleaved,
                               Swapped, UnitAxis, Constant>;

/// A Block (see mapping.h) between the tensors of one rule.
struct Piece {
  int hf = 0;
  int megatron = 0;
  Dims hf_origin;
  Dims megatron_origin;
  Dims shape;
  Dims hf_axis;
  Dims hf_step;
  bool repeats = false;
};

/// One rule's tensors and how they correspond.
struct Lowered {
  std::vector<Dims> hf;
  std::vector<Dims> megatron;
  std::vector<Piece> pieces;
  std::optional<double> fill = std::nullopt;  ///< of Megatron elements that no piece covers
};

/// How a rule arranges its tensors, apart from their sizes.
struct Arrangement {
  const Transform& transform;
  const Dims& permute;  ///< per Megatron axis the HF axis it runs along; empty means the same
  int hf_count = 1;
  int megatron_count = 1;
};

/// Computes the Megatron shapes that the HF shapes give. REQUIRES: hf_count shapes, and a transform
/// other than Constant. Errors: kShapeMismatch (the message has no tensor names: the caller knows
/// them), and those of SizeExpr::evaluate.
[[nodiscard]] Result<Lowered> lower_from_hf(const Arrangement& arrangement,
                                            std::span<const Dims> hf, const Scope& scope);

/// Computes the HF shapes that the Megatron shapes give; otherwise as lower_from_hf.
[[nodiscard]] Result<Lowered> lower_from_megatron(const Arrangement& arrangement,
                                                  std::span<const Dims> megatron,
                                                  const Scope& scope);

}  // namespace shardwright
