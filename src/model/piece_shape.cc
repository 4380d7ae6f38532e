// SPDX-License-Identifier: Apache-2.0
#include "model/piece_shape.h"

#include "base/translated.h"

namespace shardwright {

std::unexpected<Error> mismatch(const std::string& found, const std::string& expected) {
  return fail(Code::kShapeMismatch,
              "found {}, expected {}; check that the configuration belongs to "
              "these tensors",
              found, expected);
}

Dims with_extent(Dims shape, int axis, std::int64_t extent) {
  shape[axis] = extent;
  return shape;
}

Status check_axis(const Dims& shape, int axis) {
  if (axis < shape.size()) return {};
  return mismatch(fmt::format("shape {}", to_string(shape)),
                  translated("at least {} axes", axis + 1));
}

Piece whole_piece(const Dims& shape) {
  Piece piece;
  piece.hf_origin = Dims::filled(shape.size(), 0);
  piece.megatron_origin = piece.hf_origin;
  piece.shape = shape;
  piece.hf_step = Dims::filled(shape.size(), 1);
  return piece;
}

}  // namespace shardwright
