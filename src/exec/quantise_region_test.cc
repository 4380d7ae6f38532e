// SPDX-License-Identifier: Apache-2.0
#include "exec/quantise_region.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "base/checked.h"
#include "exec/execute.h"
#include "exec/tile_grid.h"
#include "exec/tile_reader.h"
#include "io/memory_directory.h"
#include "plan/quantising.h"
#include "tensor/quantise.h"

namespace shardwright::quantise_region_cases {
namespace {

using Part = Quantising::Part;
using Scheme = Quantising::Scheme;

std::int64_t sized(std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most + 1); }

float number(std::int64_t at) {
  const auto x = static_cast<float>(at);
  return std::sin(x * 1.7F) * std::exp2(static_cast<float>(at % 23 - 11));
}

StoredTensor in_file(const std::string& name, DType dtype, const Dims& shape, std::uint64_t& end) {
  StoredTensor tensor{{name, dtype, shape}, ChunkList(shape.size())};
  const auto bytes = static_cast<std::uint64_t>(byte_count(shape, dtype).value());
  tensor.chunks.push_back({Box::whole(shape), 0, {end, bytes}, {}});
  end += bytes;
  return tensor;
}

struct Case {
  Plan plan;
  Quantising form;
  bool is_turned = false;
  DType scale_dtype = DType::kF32;
};

// A matrix of float32 in one file becomes values and scales in another one.
Case random_case() {
  Case made;
  made.is_turned = *rc::gen::arbitrary<bool>();
  const bool is_fp4 = *rc::gen::arbitrary<bool>();
  const bool has_exponents = is_fp4 || *rc::gen::arbitrary<bool>();
  const std::int64_t columns = is_fp4 ? 32 * sized(4) : sized(70);
  made.form = {is_fp4 ? Scheme::kMxfp4 : Scheme::kFp8,
               Part::kValues,
               {sized(3), sized(50), columns},
               is_fp4 ? 1 : sized(20),
               is_fp4 ? 32 : sized(20),
               has_exponents};
  if (has_exponents && *rc::gen::arbitrary<bool>()) made.scale_dtype = DType::kF8E8M0;
  if (is_fp4) made.scale_dtype = DType::kU8;
  const Dims& shape = made.form.shape;
  const Dims stored = made.is_turned ? Dims{shape[0], shape[2], shape[1]} : shape;
  Plan& plan = made.plan;
  plan.source.files = {"s"};
  std::uint64_t end = 0;
  plan.source.tensors = {in_file("w", DType::kF32, stored, end)};
  plan.target.files = {"t"};
  end = 0;
  plan.target.tensors = {
      in_file("v", is_fp4 ? DType::kU8 : DType::kF8E4M3, value_shape(made.form), end)};
  plan.target.tensors.push_back(in_file("s", made.scale_dtype, scale_shape(made.form), end));
  plan.file_sizes = {end};
  const TensorView whole{
      Box::whole(shape), 0, {0, 0, 0}, made.is_turned ? Dims{0, 2, 1} : Dims{0, 1, 2}, {1, 1, 1}};
  for (const Part part : {Part::kValues, Part::kScales}) {
    Quantising form = made.form;
    form.part = part;
    plan.tensors.push_back({{whole}, std::nullopt, 0.0, std::make_shared<const Quantising>(form)});
  }
  return made;
}

float element(const Case& made, std::int64_t matrix, std::int64_t row, std::int64_t column) {
  const Dims& shape = made.form.shape;
  const std::int64_t in_matrix = made.is_turned ? column * shape[1] + row : row * shape[2] + column;
  return number(matrix * shape[1] * shape[2] + in_matrix);
}

// Block by block, by the definition.
std::string expected_of(const Case& made) {
  const Quantising& form = made.form;
  const Dims& shape = form.shape;
  std::string values(static_cast<std::size_t>(made.plan.target.tensors[0].chunks.range(0).length),
                     '\0');
  std::string scales;
  const bool is_fp4 = form.scheme == Scheme::kMxfp4;
  for (std::int64_t matrix = 0; matrix < shape[0]; ++matrix) {
    for (std::int64_t top = 0; top < shape[1]; top += form.block_rows) {
      for (std::int64_t left = 0; left < shape[2]; left += form.block_columns) {
        const std::int64_t bottom = std::min(top + form.block_rows, shape[1]);
        const std::int64_t right = std::min(left + form.block_columns, shape[2]);
        float greatest = 0;
        for (std::int64_t r = top; r < bottom; ++r) {
          for (std::int64_t c = left; c < right; ++c) {
            greatest = std::max(greatest, std::abs(element(made, matrix, r, c)));
          }
        }
        const float scale = fp8_scale(greatest, form.has_exponents);
        const std::uint8_t exponent = is_fp4 ? fp4_exponent(greatest) : exponent_of(scale);
        if (made.scale_dtype == DType::kF32) {
          scales.append(reinterpret_cast<const char*>(&scale), sizeof scale);
        } else {
          scales.push_back(static_cast<char>(exponent));
        }
        for (std::int64_t r = top; r < bottom; ++r) {
          for (std::int64_t c = left; c < right; c += is_fp4 ? 2 : 1) {
            const std::int64_t at = (matrix * shape[1] + r) * shape[2] + c;
            const std::array<float, 2> pair{element(made, matrix, r, c),
                                            is_fp4 ? element(made, matrix, r, c + 1) : 0.0F};
            std::byte code{};
            if (is_fp4) {
              quantise_fp4(pair.data(), 2, exponent, &code);
            } else {
              quantise_fp8(pair.data(), 1, scale, &code);
            }
            values[static_cast<std::size_t>(is_fp4 ? at / 2 : at)] = static_cast<char>(code);
          }
        }
      }
    }
  }
  return values + scales;
}

void write_source(const Plan& plan, Directory& directory) {
  const std::int64_t count = plan.source.tensors[0].chunks.box(0).volume();
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(number(i));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
  ASSERT_TRUE(directory.create("s", bytes.size()).value()->write_at(0, bytes));
}

std::string read_target(const Plan& plan, const Directory& directory) {
  std::string bytes(static_cast<std::size_t>(plan.file_sizes[0]), '\0');
  const auto file = directory.open("t").value();
  EXPECT_TRUE(file->read_at(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

// However it is cut into pieces and tiles, all that a block has in common is found.
RC_GTEST_PROP(QuantiseRegion, AnyTilesGiveTheBlocksByTheirDefinition, ()) {
  const Case made = random_case();
  const Status proven = check_plan(made.plan);
  RC_ASSERT(proven.has_value());
  MemoryDirectory source("source");
  write_source(made.plan, source);
  const std::string expected = expected_of(made);
  for (const std::uint64_t piece_bytes :
       {std::uint64_t{1} << 20, static_cast<std::uint64_t>(sized(400))}) {
    SourceFiles files(source, made.plan.source.files, 8);
    MemoryDirectory target("target");
    const PieceList pieces(made.plan, piece_bytes);
    ExecuteOptions options;
    options.threads = 2;
    const Status done = execute(made.plan, pieces, files, target, {}, options);
    RC_ASSERT(done.has_value());
    RC_ASSERT(read_target(made.plan, target) == expected);
  }
}

// One part of a tile, with gaps between its rows.
RC_GTEST_PROP(QuantiseRegion, FillsAnyPartsOfATile, ()) {
  const Case made = random_case();
  MemoryDirectory source("source");
  write_source(made.plan, source);
  const std::string expected = expected_of(made);
  const auto tensor = *rc::gen::inRange<std::size_t>(0, 2);
  const StoredTensor& target = made.plan.target.tensors[tensor];
  Box region = Box::whole(target.desc.shape);
  for (int axis = 0; axis < region.axes(); ++axis) {
    region.origin[axis] = *rc::gen::inRange<std::int64_t>(0, region.shape[axis]);
    region.shape[axis] = sized(region.shape[axis] - region.origin[axis]);
  }
  const int width = bytes_of(target.desc.dtype);
  std::vector<std::byte> memory(static_cast<std::size_t>(region.volume() * width));
  std::vector<std::byte> scratch(4096);
  SourceFiles files(source, made.plan.source.files, 8);
  const Lowering lowering(made.plan);
  TileReader reader(made.plan, lowering, files, scratch);
  const TilePart part = dense_part(region, memory.data(), width);
  RC_ASSERT(reader.read(tensor, region, memory, std::span(&part, 1)).has_value());
  const Dims strides = row_major_strides(target.desc.shape);
  const std::uint64_t begin = target.chunks.range(0).offset;
  for (std::int64_t i = 0; i < region.volume(); ++i) {
    std::int64_t rest = i;
    std::int64_t at = 0;
    for (int axis = region.axes() - 1; axis >= 0; --axis) {
      at += (region.origin[axis] + rest % region.shape[axis]) * strides[axis];
      rest /= region.shape[axis];
    }
    RC_ASSERT(std::memcmp(
                  &memory[static_cast<std::size_t>(i * width)],
                  &expected[static_cast<std::size_t>(begin) + static_cast<std::size_t>(at * width)],
                  static_cast<std::size_t>(width)) == 0);
  }
}

TEST(QuantiseRegion, RefusesWhatIsNoNumber) {
  const Dims shape{4, 32};
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const auto read = [&](const Box& box, std::span<float> values) -> Status {
      std::ranges::fill(values, 1.0F);
      if (box.origin[0] <= 3 && box.end(0) > 3) values[values.size() - 1] = bad;
      return {};
    };
    for (const Quantising& form : {Quantising{Scheme::kFp8, Part::kScales, shape, 2, 16, false},
                                   Quantising{Scheme::kMxfp4, Part::kScales, shape, 1, 32, true}}) {
      const Dims grid = scale_shape(form);
      std::vector<std::byte> bytes(64);
      const DType dtype = form.has_exponents ? DType::kU8 : DType::kF32;
      const TilePart part = dense_part(Box::whole(grid), bytes.data(), bytes_of(dtype));
      std::vector<float> memory;
      const Status status =
          quantise_region(form, dtype, Box::whole(grid), std::span(&part, 1), read, memory);
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, Code::kValueOverflow);
    }
  }
}

// A matrix that does not fit at once is read in strips, whole blocks each.
TEST(QuantiseRegion, HoldsLittleOfAMatrixAtOnce) {
  const Quantising form{Scheme::kFp8, Part::kScales, {1000, 40'000}, 128, 128, false};
  std::int64_t most = 0;
  std::int64_t all = 0;
  const auto read = [&](const Box& box, std::span<float> values) -> Status {
    EXPECT_EQ(box.origin[0] % 128, 0);
    EXPECT_EQ(box.origin[1] % 128, 0);
    most = std::max(most, box.volume());
    all += box.volume();
    std::ranges::fill(values, static_cast<float>(box.origin[0] + 1));
    return {};
  };
  const Box grid = Box::whole(scale_shape(form));
  std::vector<float> scales(static_cast<std::size_t>(grid.volume()));
  const TilePart part =
      dense_part(grid, reinterpret_cast<std::byte*>(scales.data()), sizeof(float));
  std::vector<float> memory;
  ASSERT_TRUE(quantise_region(form, DType::kF32, grid, std::span(&part, 1), read, memory));
  EXPECT_EQ(all, 1000 * 40'000);
  EXPECT_LE(most * 4, kMostMatrixBytes);
  EXPECT_EQ(scales.front(), 1.0F / 448);
  EXPECT_EQ(scales.back(), 897.0F / 448);
}

TEST(TileGrid, BeginsWhereBlocksDo) {
  TensorRecipe recipe;
  recipe.quantising = std::make_shared<const Quantising>(
      Quantising{Scheme::kFp8, Part::kValues, {1000, 10}, 128, 128, false});
  const TileGrid grid({1000, 10}, 1, 3000, &recipe);
  EXPECT_EQ(grid.tile(0).shape[0], 256);
  EXPECT_EQ(grid.tile(1).origin[0], 256);
  EXPECT_EQ(grid.count(), 4);
  EXPECT_EQ(TileGrid({1000, 10}, 1, 500, &recipe).tile(0).shape[0], 50);  // less than a block
  EXPECT_EQ(TileGrid({1000, 10}, 1, 3000).tile(0).shape[0], 300);
}

}  // namespace
}  // namespace shardwright::quantise_region_cases
