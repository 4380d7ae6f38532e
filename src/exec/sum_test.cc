// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "base/endian.h"
#include "exec/tile_reader.h"
#include "io/memory_directory.h"
#include "tensor/bfloat16.h"

namespace shardwright::sums {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::int64_t sized(std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most + 1); }

StoredTensor stored(const std::string& name, DType dtype, const Dims& shape, std::uint32_t file) {
  StoredTensor tensor{{name, dtype, shape}, ChunkList(shape.size())};
  const auto bytes = static_cast<std::uint64_t>(byte_count(shape, dtype).value());
  tensor.chunks.push_back({Box::whole(shape), file, {0, bytes}, {}});
  return tensor;
}

// Values that no sum of weights makes exact.
std::vector<float> some_values(std::int64_t count, int seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto numerator = static_cast<float>((i * 37 + seed * 11) % 127 - 63);
    values.push_back(f32_from_bf16(bf16_from_f32(numerator / 7)));
  }
  return values;
}

std::string bytes_of_values(DType dtype, const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    if (dtype == DType::kBF16) {
      append_le(bytes, bf16_from_f32(value));
    } else {
      append_le(bytes, std::bit_cast<std::uint32_t>(value));
    }
  }
  return bytes;
}

// What the header of plan.h says of sums, one rounding after the other.
float rounded(float value) {
  const volatile float kept = value;
  return kept;
}

// Each term is cut into two views at a row of its own, with types, constants and weights of its
// own.
RC_GTEST_PROP(Sum, AnyTilesAndAnyMemoryGiveTheSameBits, ()) {
  MemoryDirectory directory("source");
  const Dims shape{sized(9), sized(9)};
  const std::int64_t count = shape[0] * shape[1];
  const std::int64_t terms = sized(4);
  Plan plan;
  plan.tensors.resize(1);
  std::vector<std::vector<float>> values;
  for (std::uint32_t term = 0; term < static_cast<std::uint32_t>(terms); ++term) {
    const DType dtype = *rc::gen::arbitrary<bool>() ? DType::kBF16 : DType::kF32;
    const std::string name = "w" + std::to_string(term);
    values.push_back(some_values(count, static_cast<int>(term)));
    directory.put(name, bytes_of_values(dtype, values.back()));
    plan.source.files.push_back(name);
    plan.source.tensors.push_back(stored(name, dtype, shape, term));
    const auto weight = static_cast<float>(*rc::gen::inRange(-9, 10)) / 7;
    const double add = *rc::gen::arbitrary<bool>() ? -1.0 : 0.0;
    plan.weighted.push_back({term, weight, term, add});
    const std::int64_t cut = *rc::gen::inRange<std::int64_t>(0, shape[0] + 1);
    plan.tensors[0].views.push_back({{{0, 0}, {cut, shape[1]}}, term, {0, 0}, {0, 1}, {1, 1}});
    plan.tensors[0].views.push_back(
        {{{cut, 0}, {shape[0] - cut, shape[1]}}, term, {cut, 0}, {0, 1}, {1, 1}});
  }
  plan.target.files = {"t"};
  plan.target.tensors = {stored("t", DType::kBF16, shape, 0)};
  plan.file_sizes = {static_cast<std::uint64_t>(count) * 2};
  const Status checked = check_plan(plan);
  RC_ASSERT(checked.has_value());

  SourceFiles files(directory, plan.source.files, 2);
  std::vector<std::byte> scratch(
      static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(32, 200)));
  const Lowering lowering(plan);
  TileReader reader(plan, lowering, files, scratch);
  std::vector<std::uint16_t> got(static_cast<std::size_t>(count));
  const std::int64_t height = sized(shape[0]);
  for (std::int64_t row = 0; row < shape[0]; row += height) {
    const Box tile{{row, 0}, {std::min(height, shape[0] - row), shape[1]}};
    const auto memory = std::as_writable_bytes(std::span(got))
                            .subspan(static_cast<std::size_t>(row * shape[1] * 2),
                                     static_cast<std::size_t>(tile.volume() * 2));
    const TilePart part = dense_part(tile, memory.data(), 2);
    RC_ASSERT(reader.read(0, tile, memory, std::span(&part, 1)));
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    float sum = 0;
    for (std::size_t term = 0; term < values.size(); ++term) {
      const WeightedSource& weighted = plan.weighted[term];
      const float value = rounded(static_cast<float>(values[term][i] + weighted.add));
      const float product = rounded(weighted.weight * value);
      sum = term == 0 ? product : rounded(sum + product);
    }
    RC_ASSERT(got[i] == bf16_from_f32(sum));
  }
}

// Weights of bfloat16, and the lower halves of what they are rounded from.
TEST(Sum, OfHalvesIsTheNumberThatWasSplit) {
  for (const DType held : {DType::kI16, DType::kF32}) {
    MemoryDirectory directory("source");
    std::string weights;
    std::string low;
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < 35; ++i) {
      const std::uint32_t bits = 0x3F000000U + i * 0x01234567U % 0x00FFFFFFU;
      expected.push_back(bits);
      append_le(weights, static_cast<std::uint16_t>((bits + 0x8000U) >> 16));
      const auto half = static_cast<std::uint16_t>(bits);
      if (held == DType::kI16) {
        append_le(low, half);
      } else {
        append_le(
            low, std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int16_t>(half))));
      }
    }
    directory.put("w", weights);
    directory.put("low", low);
    const Dims shape{7, 5};
    Plan plan;
    plan.source.files = {"w", "low"};
    plan.source.tensors = {stored("w", DType::kBF16, shape, 0), stored("low", held, shape, 1)};
    plan.weighted = {{0, 1.0F, 0, 0.0}, {1, 1.0F, 1, 0.0, true}};
    plan.target.files = {"t"};
    plan.target.tensors = {stored("t", DType::kF32, {5, 7}, 0)};
    plan.file_sizes = {35 * 4};
    plan.tensors.resize(1);
    for (const std::uint32_t source : {0U, 1U}) {  // turned around
      plan.tensors[0].views.push_back({Box::whole({5, 7}), source, {0, 0}, {1, 0}, {1, 1}});
    }
    ASSERT_TRUE(check_plan(plan)) << check_plan(plan).error().text();
    const auto read = [&]() -> Result<std::vector<std::uint32_t>> {
      SourceFiles files(directory, plan.source.files, 2);
      std::vector<std::byte> scratch(64);
      const Lowering lowering(plan);
      TileReader reader(plan, lowering, files, scratch);
      std::vector<std::uint32_t> got(35);
      const auto memory = std::as_writable_bytes(std::span(got));
      const TilePart part = dense_part(Box::whole({5, 7}), memory.data(), 4);
      SW_TRY(reader.read(0, part.box, memory, std::span(&part, 1)));
      return got;
    };
    const std::vector<std::uint32_t> got = read().value();
    for (std::size_t i = 0; i < 35; ++i) EXPECT_EQ(got[i], expected[i % 7 * 5 + i / 7]) << i;
    if (held == DType::kI16) continue;
    directory.touch("low", 8, 'x');
    EXPECT_EQ(read().error().code, Code::kOptimizerMismatch);
  }
}

struct Fixture {
  MemoryDirectory directory{"source"};
  Plan plan;
};

// The same numbers in two files.
void make_integers(Fixture& fixture) {
  for (const char* name : {"a", "b"}) {
    std::string bytes;
    for (std::uint64_t i = 0; i < 5; ++i) append_le(bytes, i * i);
    fixture.directory.put(name, bytes);
    const auto file = static_cast<std::uint32_t>(fixture.plan.source.files.size());
    fixture.plan.source.files.emplace_back(name);
    fixture.plan.source.tensors.push_back(stored(name, DType::kI64, {5}, file));
    fixture.plan.weighted.push_back({file, 0.5F, file, 0.0});
  }
  fixture.plan.target.files = {"t"};
  fixture.plan.target.tensors = {stored("t", DType::kI64, {5}, 0)};
  fixture.plan.file_sizes = {40};
  fixture.plan.tensors.resize(1);
  fixture.plan.tensors[0].views = {{Box::whole({5}), 0, {0}, {0}, {1}},
                                   {Box::whole({5}), 1, {0}, {0}, {1}}};
}

Result<std::vector<std::uint64_t>> read_integers(const Fixture& fixture) {
  SourceFiles files(fixture.directory, fixture.plan.source.files, 2);
  std::vector<std::byte> scratch(64);
  const Lowering lowering(fixture.plan);
  TileReader reader(fixture.plan, lowering, files, scratch);
  std::vector<std::uint64_t> got(5);
  const auto memory = std::as_writable_bytes(std::span(got));
  const TilePart part = dense_part(Box::whole({5}), memory.data(), 8);
  SW_TRY(reader.read(0, part.box, memory, std::span(&part, 1)));
  return got;
}

TEST(Sum, OfIntegersNeedsThemAlike) {
  Fixture fixture;
  make_integers(fixture);
  ASSERT_TRUE(check_plan(fixture.plan));
  EXPECT_EQ(read_integers(fixture).value(), (std::vector<std::uint64_t>{0, 1, 4, 9, 16}));
  fixture.directory.touch("b", 32, 'x');
  const auto refused = read_integers(fixture);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDtypeUnsupported);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("tensor t: int64 values differ in a and b")));
}

// Two files of float32, whose sum with both weights is read.
Result<std::vector<float>> sum_of(const std::vector<float>& a, const std::vector<float>& b,
                                  float weight) {
  MemoryDirectory directory("source");
  const Dims shape{std::ssize(a)};
  Plan plan;
  for (std::uint32_t term = 0; term < 2; ++term) {
    const std::string name(1, static_cast<char>('a' + term));
    directory.put(name, bytes_of_values(DType::kF32, term == 0 ? a : b));
    plan.source.files.push_back(name);
    plan.source.tensors.push_back(stored(name, DType::kF32, shape, term));
    plan.weighted.push_back({term, weight, term, 0.0});
  }
  plan.target.files = {"t"};
  plan.target.tensors = {stored("t", DType::kF32, shape, 0)};
  plan.file_sizes = {a.size() * sizeof(float)};
  plan.tensors.resize(1);
  plan.tensors[0].views = {{Box::whole(shape), 0, {0}, {0}, {1}},
                           {Box::whole(shape), 1, {0}, {0}, {1}}};
  SW_TRY(check_plan(plan));
  SourceFiles files(directory, plan.source.files, 2);
  std::vector<std::byte> scratch(64);
  const Lowering lowering(plan);
  TileReader reader(plan, lowering, files, scratch);
  std::vector<float> got(a.size());
  const auto memory = std::as_writable_bytes(std::span(got));
  const TilePart part = dense_part(Box::whole(shape), memory.data(), 4);
  SW_TRY(reader.read(0, part.box, memory, std::span(&part, 1)));
  return got;
}

TEST(Sum, OfFiniteNumbersIsFiniteOrRefused) {
  std::vector<float> a(1500, 1.0F);
  std::vector<float> b = a;
  const std::size_t last = a.size() - 1;
  a[last] = b[last] = 3e38F;
  EXPECT_EQ(sum_of(a, b, 0.5F).value()[last], 3e38F);
  const auto in_second = sum_of(a, b, 1.0F);
  ASSERT_FALSE(in_second);
  EXPECT_EQ(in_second.error().code, Code::kValueOverflow);
  EXPECT_THAT(in_second.error().message, HasSubstr("tensor t: b: its numbers are finite"));
  const auto in_first = sum_of(a, b, 2.0F);
  ASSERT_FALSE(in_first);
  EXPECT_THAT(in_first.error().message, HasSubstr("tensor t: a: its numbers are finite"));
  b[last] = -3e38F;
  EXPECT_EQ(sum_of(a, b, 1.0F).value()[last], 0.0F);
  // What diverged stays as it is.
  a[last] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum_of(a, b, 1.0F).value()[last], a[last]);
  a[last] = 3e38F;
  b[last] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum_of(a, b, 1.0F).value()[last], b[last]);
}

// A block holds half a million elements: rows of more are cut too.
TEST(Sum, RowsThatAreLongerThanABlock) {
  MemoryDirectory directory("source");
  const std::int64_t columns = (std::int64_t{1} << 19) + 3;
  Plan plan;
  for (std::uint32_t term = 0; term < 2; ++term) {
    const std::string name(1, static_cast<char>('a' + term));
    std::vector<float> values(static_cast<std::size_t>(2 * columns), 1.0F);
    values.back() = static_cast<float>(term);
    values[static_cast<std::size_t>(columns) - 1] = 8;
    directory.put(name, bytes_of_values(DType::kF32, values));
    plan.source.files.push_back(name);
    plan.source.tensors.push_back(stored(name, DType::kF32, {2, columns}, term));
    plan.weighted.push_back({term, 0.25F, term, 0.0});
  }
  plan.target.tensors = {stored("t", DType::kF32, {2, columns}, 0)};
  plan.tensors.resize(1);
  const Box whole = Box::whole({2, columns});
  plan.tensors[0].views = {{whole, 0, {0, 0}, {0, 1}, {1, 1}}, {whole, 1, {0, 0}, {0, 1}, {1, 1}}};
  SourceFiles files(directory, plan.source.files, 2);
  std::vector<std::byte> scratch(1 << 16);
  const Lowering lowering(plan);
  TileReader reader(plan, lowering, files, scratch);
  std::vector<float> got(static_cast<std::size_t>(2 * columns));
  const auto memory = std::as_writable_bytes(std::span(got));
  const TilePart part = dense_part(whole, memory.data(), 4);
  ASSERT_TRUE(reader.read(0, whole, memory, std::span(&part, 1)));
  std::vector<float> expected(got.size(), 0.5F);
  expected.back() = 0.25F;
  expected[static_cast<std::size_t>(columns) - 1] = 4;
  EXPECT_TRUE(got == expected);
}

}  // namespace
}  // namespace shardwright::sums
