// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// Element types of tensors on disk, by torch's meaning. `kF4E2M1X2` is torch's byte with two fp4
/// values: a shape counts bytes.
enum class DType : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kF8E4M3,
  kF8E5M2,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kF8E8M0,
  kF4E2M1X2,
  kC32,
  kC64,
  kC128,
};

inline constexpr int kDTypeCount = static_cast<int>(DType::kC128) + 1;

[[nodiscard]] int bits_of(DType dtype);
/// Whole bytes of one element; every DType above has some.
[[nodiscard]] int bytes_of(DType dtype);
/// Whether its elements count: whole numbers and truth values.
[[nodiscard]] bool is_integer(DType dtype);
/// torch's name: `bfloat16`.
[[nodiscard]] std::string_view torch_name(DType dtype);
[[nodiscard]] std::optional<DType> dtype_from_torch(std::string_view name);
/// safetensors' name: `BF16`; empty where that format has no such type.
[[nodiscard]] std::string_view safetensors_name(DType dtype);
[[nodiscard]] std::optional<DType> dtype_from_safetensors(std::string_view name);
/// Floating point types that a dtype conversion may change: f16, bf16, f32, f64.
[[nodiscard]] bool is_castable_float(DType dtype);

inline constexpr int kMaxAxes = 8;

/// Up to eight extents, offsets or strides, stored inline.
class Dims {
 public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<std::int64_t> values) {
    for (std::int64_t value : values) values_[size_++] = value;
  }
  /// `count` copies of `value`. REQUIRES: count <= kMaxAxes.
  [[nodiscard]] static constexpr Dims filled(int count, std::int64_t value) {
    Dims dims;
    for (int axis = 0; axis < count; ++axis) dims.push_back(value);
    return dims;
  }

  [[nodiscard]] constexpr int size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }
  constexpr std::int64_t& operator[](int axis) { return values_[static_cast<std::size_t>(axis)]; }
  constexpr std::int64_t operator[](int axis) const {
    return values_[static_cast<std::size_t>(axis)];
  }
  /// REQUIRES: size() < kMaxAxes.
  constexpr void push_back(std::int64_t value) { values_[size_++] = value; }
  [[nodiscard]] constexpr const std::int64_t* begin() const { return values_.data(); }
  [[nodiscard]] constexpr const std::int64_t* end() const { return values_.data() + size_; }
  [[nodiscard]] friend constexpr bool operator==(const Dims& a, const Dims& b) {
    if (a.size_ != b.size_) return false;
    for (int axis = 0; axis < a.size(); ++axis) {
      if (a[axis] != b[axis]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, kMaxAxes> values_{};
  std::uint8_t size_ = 0;
};

/// `(3, 64, 64)`.
[[nodiscard]] std::string to_string(const Dims& dims);
/// Elements of a shape, or an error if an extent is negative or the product overflows int64.
[[nodiscard]] Result<std::int64_t> element_count(const Dims& shape);
/// Bytes of a dense tensor, or an error as element_count.
[[nodiscard]] Result<std::int64_t> byte_count(const Dims& shape, DType dtype);
/// Strides in elements of a dense row-major tensor.
[[nodiscard]] Dims row_major_strides(const Dims& shape);
/// Strides in elements as strides in bytes. REQUIRES: these fit int64; a reader checks what a file
/// says.
[[nodiscard]] Dims byte_strides(Dims strides, std::int64_t element_bytes);

/// A half-open region of a tensor: [origin, origin + shape) on every axis.
struct Box {
  Dims origin;
  Dims shape;

  [[nodiscard]] int axes() const { return shape.size(); }
  /// REQUIRES: a validated box (see make_box): no sum overflows.
  [[nodiscard]] std::int64_t end(int axis) const { return origin[axis] + shape[axis]; }
  [[nodiscard]] bool is_empty() const;
  /// Number of elements. REQUIRES: a validated box.
  [[nodiscard]] std::int64_t volume() const;
  [[nodiscard]] friend bool operator==(const Box& a, const Box& b) = default;

  [[nodiscard]] static Box whole(const Dims& shape) {
    return Box{Dims::filled(shape.size(), 0), shape};
  }
};

/// `[0:3, 16:32]`.
[[nodiscard]] std::string to_string(const Box& box);
/// Checks a box that came from a file: same axis count, nothing negative, inside `outer`.
/// Error: kOutOfBounds. A zero-volume box may lie anywhere up to the end of `outer`.
[[nodiscard]] Result<Box> make_box(const Dims& origin, const Dims& shape, const Dims& outer);
/// The common region, or nullopt where there is none (an empty box meets nothing).
[[nodiscard]] std::optional<Box> intersect(const Box& a, const Box& b);
[[nodiscard]] bool contains(const Box& outer, const Box& inner);

/// Name, element type and global shape of a tensor.
struct TensorDesc {
  std::string name;
  DType dtype = DType::kU8;
  Dims shape;
};

}  // namespace shardwright
