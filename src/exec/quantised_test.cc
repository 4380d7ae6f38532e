// SPDX-License-Identifier: Apache-2.0
#include "plan/quantised.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "base/checked.h"
#include "base/endian.h"
#include "exec/execute.h"
#include "exec/gather.h"
#include "io/memory_directory.h"
#include "tensor/bfloat16.h"
#include "tensor/dequantise.h"

namespace shardwright {
namespace {

struct Model {
  Plan plan;
  std::vector<std::byte> values;
  std::vector<float> scales;
  bool transposed = false;  // how the values are stored
};

std::int64_t sized(std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most + 1); }

// The stored value number `at`, by the definition of its type.
float stored_value(const Model& model, std::int64_t at) {
  const DType dtype = model.plan.source.tensors[0].desc.dtype;
  float value = 0;
  dequantise_run({dtype, model.values.data(), at, 1, 1.0F}, 1, &value);
  return value;
}

// Element (row, column) of the quantised tensor, by the definition of its scales.
std::uint16_t element(const Model& model, std::int64_t row, std::int64_t column) {
  const Dims& shape = model.plan.source.tensors[0].desc.shape;
  const QuantisedSource& quantised = model.plan.quantised[0];
  std::int64_t at = model.transposed ? column * shape[0] + row : row * shape[1] + column;
  if (quantised.words.axis == 0) {
    at = (model.transposed ? column * (shape[0] / 2) + row / 2 : row / 2 * shape[1] + column) * 2 +
         row % 2;
  } else if (quantised.words.axis == 1) {
    at = (model.transposed ? column / 2 * shape[0] + row : row * (shape[1] / 2) + column / 2) * 2 +
         column % 2;
  }
  const std::int64_t scale = row / quantised.block[0] * quantised.stride[0] +
                             column / quantised.block[1] * quantised.stride[1];
  return bf16_from_f32(stored_value(model, at) * model.scales[static_cast<std::size_t>(scale)]);
}

// Steps of fp4 to the next row and column where neighbours along one of them share a byte.
Dims strides_of_pairs(const Dims& shape, int axis, bool is_transposed) {
  if (axis == 0) return is_transposed ? Dims{2, shape[0]} : Dims{2 * shape[1], 2};
  return is_transposed ? Dims{2, 2 * shape[0]} : Dims{shape[1], 2};
}

// A [rows, columns] tensor of random codes in random blocks: files `v` and `s`, both with some
// bytes in front.
Model random_model(std::int64_t most) {
  Model model;
  Dims shape{sized(most), sized(most)};
  const bool is_fp4 = *rc::gen::arbitrary<bool>();
  const int words_axis = is_fp4 ? *rc::gen::element(-1, 0, 1) : -1;
  if (words_axis >= 0) shape[words_axis] *= 2;
  model.transposed = *rc::gen::arbitrary<bool>();
  const Dims block{sized(shape[0] + 3), sized(shape[1] + 3)};
  const Dims grid{ceil_div(shape[0], block[0]), ceil_div(shape[1], block[1])};
  const std::int64_t count = shape[0] * shape[1];
  const std::int64_t bytes = is_fp4 ? ceil_div<std::int64_t>(count, 2) : count;
  for (std::int64_t i = 0; i < bytes; ++i) {
    // Every code but the NaNs of e4m3, whose bits rounding may change.
    model.values.push_back(static_cast<std::byte>((i * 37 + 11) % (is_fp4 ? 256 : 127)));
  }
  for (std::int64_t i = 0; i < grid[0] * grid[1]; ++i) {
    model.scales.push_back(0.37F + 0.11F * static_cast<float>(i));
  }
  Catalog& source = model.plan.source;
  source.files = {"v", "s"};
  StoredTensor values{{"w", is_fp4 ? DType::kF4E2M1X2 : DType::kF8E4M3, shape}, ChunkList(2)};
  values.chunks.push_back({Box::whole(shape), 0, {3, static_cast<std::uint64_t>(bytes)}, {}});
  if (model.transposed) values.chunks.set_strides(0, {1, shape[0]});
  if (words_axis >= 0) {
    values.chunks.set_strides(0, strides_of_pairs(shape, words_axis, model.transposed));
  }
  StoredTensor scales{{"s", DType::kF32, grid}, ChunkList(2)};
  scales.chunks.push_back({Box::whole(grid), 1, {8, 4 * model.scales.size()}, {}});
  source.tensors = {values, scales};
  model.plan.quantised = {{0, 1, block, {grid[1], 1}}};
  model.plan.quantised[0].words.axis = words_axis;
  return model;
}

void write_files(const Model& model, Directory& directory) {
  std::string values(3, '\0');
  values.append(reinterpret_cast<const char*>(model.values.data()), model.values.size());
  std::string scales(8, '\0');
  scales.append(reinterpret_cast<const char*>(model.scales.data()), 4 * model.scales.size());
  for (const auto& [path, bytes] : {std::pair{"v", values}, std::pair{"s", scales}}) {
    ASSERT_TRUE(directory.create(path, bytes.size()).value()->write_at(0, as_bytes(bytes)));
  }
}

// A target that reads the source with random steps, transposed or not, in one chunk.
void add_target(Model& model) {
  const Dims& shape = model.plan.source.tensors[0].desc.shape;
  TensorView view;
  view.axis = *rc::gen::arbitrary<bool>() ? Dims{1, 0} : Dims{0, 1};
  view.source_origin = {*rc::gen::inRange<std::int64_t>(0, shape[0]),
                        *rc::gen::inRange<std::int64_t>(0, shape[1])};
  view.box.origin = {0, 0};
  for (int axis = 0; axis < 2; ++axis) {
    const int s = static_cast<int>(view.axis[axis]);
    view.step.push_back(sized(3));
    view.box.shape.push_back(ceil_div(shape[s] - view.source_origin[s], view.step[axis]));
  }
  StoredTensor target{{"t", DType::kBF16, view.box.shape}, ChunkList(2)};
  const std::uint64_t bytes = static_cast<std::uint64_t>(view.box.volume()) * 2;
  target.chunks.push_back({view.box, 0, {0, bytes}, {}});
  model.plan.target.files = {"t"};
  model.plan.target.tensors = {target};
  model.plan.file_sizes = {bytes};
  model.plan.tensors = {{{view}, std::nullopt, 0.0}};
}

std::vector<std::uint16_t> expected_of(const Model& model) {
  const TensorView view = model.plan.tensors[0].views[0];
  std::vector<std::uint16_t> expected;
  for (std::int64_t r = 0; r < view.box.shape[0]; ++r) {
    for (std::int64_t c = 0; c < view.box.shape[1]; ++c) {
      Dims at = view.source_origin;
      at[static_cast<int>(view.axis[0])] += r * view.step[0];
      at[static_cast<int>(view.axis[1])] += c * view.step[1];
      expected.push_back(element(model, at[0], at[1]));
    }
  }
  return expected;
}

// However the target is cut into tiles and however little memory there is, each element is its
// stored value times its scale.
RC_GTEST_PROP(Quantised, AnyTilesAndAnyMemoryGiveTheSameBits, ()) {
  Model model = random_model(24);
  add_target(model);
  RC_ASSERT(check_plan(model.plan).has_value());
  MemoryDirectory directory("source");
  write_files(model, directory);
  SourceFiles files(directory, model.plan.source.files, 8);
  std::vector<std::byte> scratch(
      static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(16, 400)));
  const Box whole = model.plan.target.tensors[0].chunks.box(0);
  std::vector<std::uint16_t> got(static_cast<std::size_t>(whole.volume()), 0xdead);
  const TilePart part{
      whole, std::as_writable_bytes(std::span(got)).data(), {whole.shape[1] * 2, 2}};
  const std::int64_t height = sized(whole.shape[0]);
  const Lowering lowering(model.plan);
  Gather gather(files, scratch);
  for (std::int64_t row = 0; row < whole.shape[0]; row += height) {
    Box tile = whole;
    tile.origin[0] = row;
    tile.shape[0] = std::min(height, whole.shape[0] - row);
    std::vector<SourcePiece> pieces;
    lowering.lower(0, tile, pieces);
    for (const SourcePiece& piece : pieces) {
      RC_ASSERT(gather.read(piece, {piece.dtype, DType::kBF16, 0.0}, std::span(&part, 1)));
    }
  }
  RC_ASSERT(got == expected_of(model));
}

std::string run_quantised(const Plan& plan, const Directory& source, int threads) {
  MemoryDirectory target("target");
  SourceFiles files(source, plan.source.files, 8);
  ExecuteOptions options;
  options.threads = threads;
  options.buffer_bytes = 1;  // the least buffers there are
  EXPECT_TRUE(execute(plan, files, target, options));
  return read_whole(target, "t", 1 << 22).value();
}

// Sizes of several tiles, with one thread and with three.
RC_GTEST_PROP(Quantised, ThreadsMakeNoDifference, ()) {
  Model model = random_model(500);
  add_target(model);
  MemoryDirectory source("source");
  write_files(model, source);
  const std::string bytes = run_quantised(model.plan, source, 1);
  RC_ASSERT(bytes == run_quantised(model.plan, source, 3));
  const std::vector<std::uint16_t> expected = expected_of(model);
  RC_ASSERT(bytes.size() == 2 * expected.size());
  RC_ASSERT(std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0);
}

TEST(Quantised, OnlyFp4SharesBytesAlongAnAxis) {
  const auto code = [](DType dtype, const Dims& strides, bool is_interleaved) {
    Plan plan;
    plan.source.files = {"v", "s"};
    plan.source.tensors = {{{"w", dtype, {4, 3}}, ChunkList(2)},
                           {{"s", DType::kF32, {}}, ChunkList(0)}};
    plan.source.tensors[0].chunks.push_back({Box::whole({4, 3}), 0, {0, 6}, strides});
    plan.source.tensors[1].chunks.push_back({Box::whole({}), 1, {0, 4}, {}});
    plan.quantised = {{0, 1, {4, 3}, {0, 0}}};
    plan.quantised[0].words = {0, is_interleaved};
    const Status status = check_quantised(plan.source, plan.quantised[0]);
    return status ? Code::kInternal : status.error().code;
  };
  EXPECT_EQ(code(DType::kF4E2M1X2, {6, 2}, false), Code::kInternal);
  EXPECT_EQ(code(DType::kF4E2M1X2, {8, 2}, false), Code::kPlanInvalid) << "ends before the tensor";
  EXPECT_EQ(code(DType::kF4E2M1X2, {6, 2}, true), Code::kPlanInvalid);
  EXPECT_EQ(code(DType::kF8E4M3, {6, 2}, false), Code::kPlanInvalid);
}

TEST(Quantised, RoundsOnceToOtherTypesAndRefusesWhatHalfPrecisionCannotHold) {
  Model model;
  model.values = {std::byte{0x7e}};  // 448
  model.scales = {1.0F / 3.0F};
  model.plan.source.files = {"v", "s"};
  model.plan.source.tensors = {{{"w", DType::kF8E4M3, {1, 1}}, ChunkList(2)},
                               {{"s", DType::kF32, {}}, ChunkList(0)}};
  model.plan.source.tensors[0].chunks.push_back({Box::whole({1, 1}), 0, {3, 1}, {}});
  model.plan.source.tensors[1].chunks.push_back({Box::whole({}), 1, {8, 4}, {}});
  model.plan.quantised = {{0, 1, {1, 1}, {0, 0}}};
  const TensorView view{Box::whole({1, 1}), 0, {0, 0}, {0, 1}, {1, 1}};
  model.plan.target.files = {"t"};
  model.plan.target.tensors = {{{"t", DType::kF32, {1, 1}}, ChunkList(2)}};
  model.plan.target.tensors[0].chunks.push_back({Box::whole({1, 1}), 0, {0, 4}, {}});
  model.plan.file_sizes = {4};
  model.plan.tensors = {{{view}, std::nullopt, 0.25}};
  ASSERT_TRUE(check_plan(model.plan));
  EXPECT_EQ(cost_of(model.plan).payload_bytes_read, 5U);
  MemoryDirectory source("source");
  write_files(model, source);
  const std::string bytes = run_quantised(model.plan, source, 1);
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  EXPECT_EQ(value, static_cast<float>(static_cast<double>(448.0F * (1.0F / 3.0F)) + 0.25));

  // 149.58 is nearer to 150, the sum without its constant to 149.
  model.plan.target.tensors[0].desc.dtype = DType::kBF16;
  std::uint16_t rounded = 0;
  const std::string half = run_quantised(model.plan, source, 1);
  std::memcpy(&rounded, half.data(), sizeof rounded);
  EXPECT_EQ(f32_from_bf16(rounded), 150.0F);

  model.scales = {1e6F};
  model.plan.target.tensors[0].desc.dtype = DType::kF16;
  MemoryDirectory larger("larger");
  write_files(model, larger);
  MemoryDirectory target("target");
  SourceFiles files(larger, model.plan.source.files, 8);
  EXPECT_EQ(execute(model.plan, files, target, {}).error().code, Code::kValueOverflow);
}

}  // namespace
}  // namespace shardwright
