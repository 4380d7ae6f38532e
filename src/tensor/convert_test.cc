// SPDX-License-Identifier: Apache-2.0
#include "tensor/convert.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace shardwright {
namespace {

template <class To, class From>
Result<To> convert_one(DType from, DType to, From value, double add = 0.0) {
  To out{};
  const Status status = convert_run({from, to, add}, 1, reinterpret_cast<const std::byte*>(&value),
                                    sizeof value, reinterpret_cast<std::byte*>(&out), sizeof out);
  if (!status) return std::unexpected(status.error());
  return out;
}

TEST(Convert, EveryBf16SurvivesEveryWiderType) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint16_t value = static_cast<std::uint16_t>(bits);
    const bool is_nan = (value & 0x7fff) > 0x7f80;
    const float wide = convert_one<float>(DType::kBF16, DType::kF32, value).value();
    const std::uint16_t back = convert_one<std::uint16_t>(DType::kF32, DType::kBF16, wide).value();
    const double wider = convert_one<double>(DType::kBF16, DType::kF64, value).value();
    const std::uint16_t again =
        convert_one<std::uint16_t>(DType::kF64, DType::kBF16, wider).value();
    if (is_nan) {
      EXPECT_TRUE(std::isnan(wide)) << bits;
      EXPECT_GT(back & 0x7fff, 0x7f80) << bits;
      EXPECT_GT(again & 0x7fff, 0x7f80) << bits;
    } else {
      ASSERT_EQ(back, value);
      ASSERT_EQ(again, value);
    }
  }
}

TEST(Convert, EveryF16SurvivesF32) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint16_t value = static_cast<std::uint16_t>(bits);
    const float wide = convert_one<float>(DType::kF16, DType::kF32, value).value();
    _Float16 expected;
    std::memcpy(&expected, &value, sizeof value);
    if ((value & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(wide));
      continue;
    }
    ASSERT_EQ(wide, static_cast<float>(expected));
    ASSERT_EQ(convert_one<std::uint16_t>(DType::kF32, DType::kF16, wide).value(), value);
  }
}

RC_GTEST_PROP(Convert, RoundsF32ToF16AsTheCompilerDoes, ()) {
  const float value = std::bit_cast<float>(*rc::gen::arbitrary<std::uint32_t>());
  RC_PRE(!std::isnan(value));
  const _Float16 expected = static_cast<_Float16>(value);
  std::uint16_t expected_bits;
  std::memcpy(&expected_bits, &expected, sizeof expected_bits);
  const auto got = convert_one<std::uint16_t>(DType::kF32, DType::kF16, value);
  if (!std::isinf(value) && (expected_bits & 0x7fff) == 0x7c00) {
    RC_ASSERT(got.error().code == Code::kValueOverflow);
  } else {
    RC_ASSERT(got.value() == expected_bits);
  }
}

// The middle between two neighbours goes to the even one, everything else to the nearer.
RC_GTEST_PROP(Convert, RoundsF32ToBf16ToNearestEven, ()) {
  const std::uint32_t bits = *rc::gen::arbitrary<std::uint32_t>();
  const float value = std::bit_cast<float>(bits);
  RC_PRE(std::isfinite(value));
  const double below = static_cast<double>(std::bit_cast<float>(bits & 0xffff0000U));
  const std::uint32_t up = (bits & 0xffff0000U) + 0x10000U;
  RC_PRE((up & 0x7f800000U) != 0x7f800000U);
  const double above = static_cast<double>(std::bit_cast<float>(up));
  const double to_below = std::fabs(static_cast<double>(value) - below);
  const double to_above = std::fabs(static_cast<double>(value) - above);
  std::uint32_t nearest = to_below < to_above ? bits >> 16 : up >> 16;
  if (to_below == to_above) nearest = ((bits >> 16) & 1U) != 0 ? up >> 16 : bits >> 16;
  RC_ASSERT(convert_one<std::uint16_t>(DType::kF32, DType::kBF16, value).value() == nearest);
}

TEST(Convert, F64ToBf16RoundsOnce) {
  // Just above the middle of 1 and the next bf16: through f32 it would become a tie and round down.
  const double value = 1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kF64, DType::kBF16, value).value(), 0x3f81);
}

TEST(Convert, RefusesFiniteValuesThatBecomeInfinite) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kF32, DType::kBF16, largest).error().code,
            Code::kValueOverflow);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kF32, DType::kF16, 70000.0F).error().code,
            Code::kValueOverflow);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kF32, DType::kF16, infinity).value(), 0x7c00);
}

// Nothing is computed, so every type is copied as it is, by its own width: a NaN's bits too.
TEST(Convert, CopiesWhatStaysAsItIs) {
  std::array<std::byte, 64> source;
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(0xff - i % 3);
  for (int number = 0; number < kDTypeCount; ++number) {
    const DType dtype = static_cast<DType>(number);
    const int width = bytes_of(dtype);
    std::array<std::byte, 64> target{};
    ASSERT_TRUE(convert_run({dtype, dtype, 0.0}, 2, source.data(), width, target.data(), 2 * width))
        << torch_name(dtype);
    std::array<std::byte, 64> expected{};
    std::copy_n(source.data(), width, expected.data());
    std::copy_n(source.data() + width, width, expected.data() + 2 * width);
    EXPECT_EQ(target, expected) << torch_name(dtype);
  }
}

// Values of types that it does not know have other widths: it would write behind the target.
TEST(Convert, TouchesNothingOfATypeThatItDoesNotKnow) {
  for (const DType dtype : {DType::kI8, DType::kF8E4M3, DType::kBool, DType::kI32, DType::kC64}) {
    const std::array<std::byte, 16> source{};
    std::array<std::byte, 16> target;
    target.fill(std::byte{7});
    for (const Conversion& conversion :
         {Conversion{DType::kF32, dtype, 0.0}, Conversion{dtype, DType::kF32, 0.0},
          Conversion{dtype, dtype, 1.0}}) {
      const Status status = convert_run(conversion, 1, source.data(), bytes_of(conversion.from),
                                        target.data(), bytes_of(conversion.to));
      ASSERT_FALSE(status) << torch_name(dtype);
      EXPECT_EQ(status.error().code, Code::kDtypeUnsupported);
      EXPECT_EQ(target.front(), std::byte{7});
    }
  }
}

TEST(Convert, AddsTheConstantBeforeRounding) {
  EXPECT_EQ(convert_one<float>(DType::kF32, DType::kF32, 1.5F, -1.0).value(), 0.5F);
  EXPECT_FALSE(is_supported({DType::kI32, DType::kF32, 0.0}));
  EXPECT_FALSE(is_supported({DType::kF8E4M3, DType::kBF16, 0.0}));
  EXPECT_TRUE(is_supported({DType::kF8E4M3, DType::kF8E4M3, 0.0}));
}

}  // namespace
}  // namespace shardwright
