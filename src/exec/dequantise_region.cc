// SPDX-License-Identifier: Apache-2.0
#include "exec/dequantise_region.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "tensor/bfloat16.h"
#include "tensor/dequantise.h"

namespace shardwright {
namespace {

constexpr std::int64_t kRunValues = 512;  // products on their way from float32 to the target's type

// The coordinate along a target axis, in steps of the source, of element `index` of the piece's
// space.
std::int64_t coordinate(const SourcePiece& piece, int axis, std::int64_t index) {
  const PieceScales& scales = *piece.scales;
  return scales.first[axis] + (index - piece.box.origin[axis]) * scales.step[axis];
}

std::int64_t scale_offset(const SourcePiece& piece, int axis, std::int64_t index) {
  const PieceScales& scales = *piece.scales;
  return coordinate(piece, axis, index) / scales.block[axis] * scales.stride[axis];
}

// One walk over a region: all axes but the last one by recursion, the last one in runs of equal
// scale.
class Walk {
 public:
  Walk(const LoadedRegion& loaded, const Conversion& conversion, const Dims& strides)
      : loaded_(loaded),
        piece_(loaded.piece),
        conversion_(conversion),
        strides_(strides),
        first_scale_(static_cast<std::int64_t>(piece_.scales->offset) -
                     static_cast<std::int64_t>(loaded.scales_begin)) {}

  Status visit(int axis, std::int64_t value, std::int64_t scale, std::byte* target) {
    const int axes = loaded_.region.axes();
    if (axis >= axes - 1) return visit_last(axis, value, scale, target);
    const std::int64_t origin = loaded_.region.origin[axis];
    for (std::int64_t i = 0; i < loaded_.region.shape[axis]; ++i) {
      SW_TRY(visit(axis + 1, value + i * piece_.strides[axis],
                   scale + scale_offset(piece_, axis, origin + i), target + i * strides_[axis]));
    }
    return {};
  }

  [[nodiscard]] std::int64_t first_scale() const { return first_scale_; }

 private:
  Status visit_last(int axis, std::int64_t value, std::int64_t scale, std::byte* target) {
    const PieceScales& scales = *piece_.scales;
    const auto load = [&](std::int64_t at) {
      return load_scale(scales.dtype, loaded_.scales + at);
    };
    if (loaded_.region.axes() == 0) {
      return write({piece_.dtype, loaded_.values, value, 1, load(scale)}, 1, target, 0);
    }
    const std::int64_t step = scales.step[axis];
    const std::int64_t count = loaded_.region.shape[axis];
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t at = coordinate(piece_, axis, loaded_.region.origin[axis] + done);
      const std::int64_t block = at / scales.block[axis];
      const std::int64_t rest = (block + 1) * scales.block[axis] - at;
      const std::int64_t equal = step == 0 ? count : ceil_div(rest, step);
      const std::int64_t run = std::min({count - done, equal, kRunValues});
      const QuantisedRun values{piece_.dtype, loaded_.values, value + done * piece_.strides[axis],
                                piece_.strides[axis], load(scale + block * scales.stride[axis])};
      SW_TRY(write(values, run, target + done * strides_[axis], strides_[axis]));
      done += run;
    }
    return {};
  }

  Status write(const QuantisedRun& values, std::int64_t count, std::byte* target,
               std::int64_t stride) {
    std::array<float, kRunValues> products;
    dequantise_run(values, count, products.data());
    if (conversion_.to == DType::kBF16 && conversion_.add == 0.0) {
      // Two loops, because compilers make vectors of the first only where it has no stride.
      std::array<std::uint16_t, kRunValues> rounded;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        rounded[i] = bf16_from_f32(products[i]);
      }
      if (stride == sizeof(std::uint16_t)) {
        std::memcpy(target, rounded.data(), static_cast<std::size_t>(count) * sizeof rounded[0]);
        return {};
      }
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        std::memcpy(target + static_cast<std::int64_t>(i) * stride, &rounded[i], sizeof rounded[i]);
      }
      return {};
    }
    return convert_run({DType::kF32, conversion_.to, conversion_.add}, count,
                       reinterpret_cast<const std::byte*>(products.data()), sizeof(float), target,
                       stride);
  }

  const LoadedRegion& loaded_;
  const SourcePiece& piece_;
  const Conversion& conversion_;
  const Dims& strides_;
  std::int64_t first_scale_;
};

}  // namespace

Window scale_window(const SourcePiece& piece, const Box& region) {
  Window window{piece.scales->offset, static_cast<std::uint64_t>(bytes_of(piece.scales->dtype))};
  for (int axis = 0; axis < region.axes(); ++axis) {
    const std::int64_t low = scale_offset(piece, axis, region.origin[axis]);
    const std::int64_t high = scale_offset(piece, axis, region.end(axis) - 1);
    window.begin += static_cast<std::uint64_t>(low);
    window.bytes += static_cast<std::uint64_t>(high - low);
  }
  return window;
}

Status dequantise_region(const LoadedRegion& loaded, const Conversion& conversion,
                         std::byte* target, const Dims& strides) {
  Walk walk(loaded, conversion, strides);
  return walk.visit(0, loaded.first_value, walk.first_scale(), target);
}

}  // namespace shardwright
