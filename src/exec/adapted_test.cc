// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/endian.h"
#include "exec/gather.h"
#include "io/memory_directory.h"
#include "tensor/bfloat16.h"

namespace shardwright::adapted {
namespace {

struct Model {
  Plan plan;
  std::vector<float> values;  // of a [rows, columns] tensor
  std::vector<float> out;     // [outputs, rank]
  std::vector<float> in;      // [rank, inputs]
  std::vector<float> factors;
};

std::int64_t sized(std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most + 1); }

// Values that bfloat16 holds, so that they are the same whichever type stores them.
std::vector<float> some_values(std::int64_t count, int seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((i * 37 + seed * 11) % 127 - 63) / 32);
  }
  return values;
}

StoredTensor stored(const std::string& name, DType dtype, const Dims& shape, std::uint32_t file) {
  StoredTensor tensor{{name, dtype, shape}, ChunkList(shape.size())};
  const auto bytes = static_cast<std::uint64_t>(byte_count(shape, dtype).value());
  tensor.chunks.push_back({Box::whole(shape), file, {8, bytes}, {}});
  return tensor;
}

void write_file(Directory& directory, const std::string& path, DType dtype,
                const std::vector<float>& values) {
  std::string bytes(8, '\0');
  for (const float value : values) {
    if (dtype == DType::kBF16) {
      append_le(bytes, bf16_from_f32(value));
    } else {
      append_le(bytes, std::bit_cast<std::uint32_t>(value));
    }
  }
  ASSERT_TRUE(directory.create(path, bytes.size()).value()->write_at(0, as_bytes(bytes)));
}

// A matrix in one of both types and orders with a product added, some with a factor for each
// output.
Model random_model(Directory& directory) {
  Model model;
  const Dims shape{sized(20), sized(20)};
  const bool is_transposed = *rc::gen::arbitrary<bool>();
  const int out_axis = is_transposed ? 1 : 0;
  const std::int64_t outputs = shape[out_axis];
  const std::int64_t inputs = shape[1 - out_axis];
  const std::int64_t rank = sized(5);
  const DType dtype = *rc::gen::arbitrary<bool>() ? DType::kBF16 : DType::kF32;
  const DType factor_dtype = *rc::gen::arbitrary<bool>() ? DType::kBF16 : DType::kF32;
  model.values = some_values(outputs * inputs, 1);
  model.out = some_values(outputs * rank, 2);
  model.in = some_values(rank * inputs, 3);
  Catalog& source = model.plan.source;
  source.files = {"w", "b", "a"};
  source.tensors = {stored("w", dtype, shape, 0), stored("b", factor_dtype, {outputs, rank}, 1),
                    stored("a", factor_dtype, {rank, inputs}, 2)};
  AdaptedSource adapted{0, 1, 2, out_axis, 1 - out_axis, 0.7F, nullptr};
  if (*rc::gen::arbitrary<bool>()) {
    model.factors = some_values(outputs, 4);
    adapted.factors = std::make_shared<const std::vector<float>>(model.factors);
  }
  model.plan.adapted = {adapted};
  write_file(directory, "w", dtype, model.values);
  write_file(directory, "b", factor_dtype, model.out);
  write_file(directory, "a", factor_dtype, model.in);
  return model;
}

// A target that reads the source with random steps, transposed or not, in one chunk. All along an
// axis may be one element.
void add_target(Model& model) {
  const Dims& shape = model.plan.source.tensors[0].desc.shape;
  TensorView view;
  view.axis = *rc::gen::arbitrary<bool>() ? Dims{1, 0} : Dims{0, 1};
  view.source_origin = {*rc::gen::inRange<std::int64_t>(0, shape[0]),
                        *rc::gen::inRange<std::int64_t>(0, shape[1])};
  view.box.origin = {0, 0};
  const int repeated = *rc::gen::inRange(-1, 2);
  for (int axis = 0; axis < 2; ++axis) {
    if (axis == repeated) {
      view.axis[axis] = -1;
      view.step.push_back(1);
      view.box.shape.push_back(sized(4));
      continue;
    }
    const int s = static_cast<int>(view.axis[axis]);
    view.step.push_back(sized(3));
    view.box.shape.push_back(ceil_div(shape[s] - view.source_origin[s], view.step[axis]));
  }
  StoredTensor target{{"t", DType::kF32, view.box.shape}, ChunkList(2)};
  const std::uint64_t bytes = static_cast<std::uint64_t>(view.box.volume()) * 4;
  target.chunks.push_back({view.box, 0, {0, bytes}, {}});
  model.plan.target.files = {"t"};
  model.plan.target.tensors = {target};
  model.plan.file_sizes = {bytes};
  model.plan.tensors = {{{view}, std::nullopt, 0.0}};
}

float element(const Model& model, std::int64_t row, std::int64_t column) {
  const AdaptedSource& adapted = model.plan.adapted[0];
  const Dims& shape = model.plan.source.tensors[0].desc.shape;
  const std::int64_t rank = model.plan.source.tensors[1].desc.shape[1];
  const std::int64_t o = adapted.out_axis == 0 ? row : column;
  const std::int64_t i = adapted.out_axis == 0 ? column : row;
  const std::int64_t inputs = shape[adapted.in_axis];
  float sum = 0;
  for (std::int64_t k = 0; k < rank; ++k) {
    sum = std::fma(model.out[static_cast<std::size_t>(o * rank + k)],
                   model.in[static_cast<std::size_t>(k * inputs + i)], sum);
  }
  const volatile float product = adapted.scale * sum;
  const float value = model.values[static_cast<std::size_t>(row * shape[1] + column)] + product;
  return model.factors.empty() ? value : model.factors[static_cast<std::size_t>(o)] * value;
}

// However the target is cut into tiles and however little memory there is.
RC_GTEST_PROP(Adapted, AnyTilesAndAnyMemoryGiveTheSameBits, ()) {
  MemoryDirectory directory("source");
  Model model = random_model(directory);
  add_target(model);
  const Status checked = check_plan(model.plan);
  RC_ASSERT(checked.has_value());
  SourceFiles files(directory, model.plan.source.files, 8);
  std::vector<std::byte> scratch(
      static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(16, 400)));
  const Box whole = model.plan.target.tensors[0].chunks.box(0);
  std::vector<float> got(static_cast<std::size_t>(whole.volume()), 777);
  const TilePart part{
      whole, std::as_writable_bytes(std::span(got)).data(), {whole.shape[1] * 4, 4}};
  const std::int64_t width = sized(whole.shape[1]);
  const Lowering lowering(model.plan);
  Gather gather(files, scratch);
  for (std::int64_t column = 0; column < whole.shape[1]; column += width) {
    Box tile = whole;
    tile.origin[1] = column;
    tile.shape[1] = std::min(width, whole.shape[1] - column);
    std::vector<SourcePiece> pieces;
    lowering.lower(0, tile, pieces);
    for (const SourcePiece& piece : pieces) {
      RC_ASSERT(gather.read(piece, {piece.dtype, DType::kF32, 0.0}, std::span(&part, 1)));
    }
  }
  const TensorView view = model.plan.tensors[0].views[0];
  for (std::int64_t r = 0; r < whole.shape[0]; ++r) {
    for (std::int64_t c = 0; c < whole.shape[1]; ++c) {
      Dims at = view.source_origin;
      if (view.axis[0] >= 0) at[static_cast<int>(view.axis[0])] += r * view.step[0];
      if (view.axis[1] >= 0) at[static_cast<int>(view.axis[1])] += c * view.step[1];
      RC_ASSERT(got[static_cast<std::size_t>(r * whole.shape[1] + c)] ==
                element(model, at[0], at[1]));
    }
  }
}

// Matrices in one tensor, in any order of its axes: each element gets what is added to its own one.
RC_GTEST_PROP(Adapted, MatricesInOneTensorEachGetTheirOwn, ()) {
  MemoryDirectory directory("source");
  const Dims shape{sized(4), sized(6), sized(6)};
  const std::int64_t rank = sized(3);
  const bool is_transposed = *rc::gen::arbitrary<bool>();
  const int out_axis = is_transposed ? 2 : 1;
  const int in_axis = 3 - out_axis;
  const std::int64_t outputs = shape[out_axis];
  const std::int64_t inputs = shape[in_axis];
  const std::vector<float> values = some_values(shape[0] * outputs * inputs, 1);
  const std::vector<float> out = some_values(shape[0] * outputs * rank, 2);
  const std::vector<float> in = some_values(shape[0] * rank * inputs, 3);
  write_file(directory, "w", DType::kF32, values);
  write_file(directory, "b", DType::kF32, out);
  write_file(directory, "a", DType::kF32, in);
  Plan plan;
  plan.source.files = {"w", "b", "a"};
  plan.source.tensors = {stored("w", DType::kF32, shape, 0),
                         stored("b", DType::kF32, {shape[0], outputs, rank}, 1),
                         stored("a", DType::kF32, {shape[0], rank, inputs}, 2)};
  plan.adapted = {{0, 1, 2, out_axis, in_axis, 0.7F, nullptr, 0}};
  // From some matrix on, every second one or all; one alone has no axis in the target.
  const std::vector<Dims> orders{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 0, 1}, {1, 2}, {2, 1}};
  TensorView view;
  view.axis = *rc::gen::elementOf(orders);
  view.source_origin = {*rc::gen::inRange<std::int64_t>(0, shape[0]),
                        *rc::gen::inRange<std::int64_t>(0, shape[1]),
                        *rc::gen::inRange<std::int64_t>(0, shape[2])};
  const int axes = view.axis.size();
  view.box.origin = Dims::filled(axes, 0);
  for (int axis = 0; axis < axes; ++axis) {
    const int s = static_cast<int>(view.axis[axis]);
    view.step.push_back(sized(2));
    view.box.shape.push_back(ceil_div(shape[s] - view.source_origin[s], view.step[axis]));
  }
  const Box whole = view.box;
  StoredTensor target{{"t", DType::kF32, whole.shape}, ChunkList(axes)};
  const std::uint64_t bytes = static_cast<std::uint64_t>(whole.volume()) * 4;
  target.chunks.push_back({whole, 0, {0, bytes}, {}});
  plan.target.files = {"t"};
  plan.target.tensors = {target};
  plan.file_sizes = {bytes};
  plan.tensors = {{{view}, std::nullopt, 0.0}};
  const Status checked = check_plan(plan);
  RC_ASSERT(checked.has_value());
  SourceFiles files(directory, plan.source.files, 8);
  std::vector<std::byte> scratch(static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(16, 90)));
  Gather gather(files, scratch);
  std::vector<float> got(static_cast<std::size_t>(whole.volume()), 777);
  Dims strides = row_major_strides(whole.shape);
  for (int axis = 0; axis < axes; ++axis) strides[axis] *= 4;
  const TilePart part{whole, std::as_writable_bytes(std::span(got)).data(), strides};
  std::vector<SourcePiece> pieces;
  Lowering(plan).lower(0, whole, pieces);
  for (const SourcePiece& piece : pieces) {
    RC_ASSERT(gather.read(piece, {DType::kF32, DType::kF32, 0.0}, std::span(&part, 1)));
  }
  for (std::int64_t i = 0; i < whole.volume(); ++i) {
    Dims at = view.source_origin;
    std::int64_t rest = i;
    for (int axis = axes - 1; axis >= 0; --axis) {
      at[static_cast<int>(view.axis[axis])] += rest % whole.shape[axis] * view.step[axis];
      rest /= whole.shape[axis];
    }
    float sum = 0;
    for (std::int64_t k = 0; k < rank; ++k) {
      sum = std::fma(out[static_cast<std::size_t>((at[0] * outputs + at[out_axis]) * rank + k)],
                     in[static_cast<std::size_t>((at[0] * rank + k) * inputs + at[in_axis])], sum);
    }
    const volatile float product = 0.7F * sum;
    const auto place = static_cast<std::size_t>((at[0] * shape[1] + at[1]) * shape[2] + at[2]);
    RC_ASSERT(got[static_cast<std::size_t>(i)] == values[place] + product);
  }
}

// Wider than a block, so that the right factor is loaded in several pieces: 8 rows of a rank of
// 40000 leave room for 13 columns.
TEST(Adapted, BlocksThatDoNotHoldAllColumns) {
  MemoryDirectory directory("source");
  const std::int64_t rank = 40000;
  const std::int64_t columns = 30;
  Model model;
  model.plan.source.files = {"w", "b", "a"};
  model.plan.source.tensors = {stored("w", DType::kF32, {2, columns}, 0),
                               stored("b", DType::kF32, {2, rank}, 1),
                               stored("a", DType::kF32, {rank, columns}, 2)};
  model.plan.adapted = {{0, 1, 2, 0, 1, 1.0F, nullptr}};
  write_file(directory, "w", DType::kF32, std::vector<float>(2 * columns, 1.0F));
  std::vector<float> out(static_cast<std::size_t>(2 * rank), 0.0F);
  out[0] = 2;                                       // row 0 takes rank 0
  out[static_cast<std::size_t>(2 * rank) - 1] = 3;  // row 1 the last one
  std::vector<float> in(static_cast<std::size_t>(rank * columns), 0.0F);
  for (std::int64_t c = 0; c < columns; ++c) {
    in[static_cast<std::size_t>(c)] = static_cast<float>(c);
    in[static_cast<std::size_t>((rank - 1) * columns + c)] = static_cast<float>(10 * c);
  }
  write_file(directory, "b", DType::kF32, out);
  write_file(directory, "a", DType::kF32, in);
  model.plan.target.tensors = {{{"t", DType::kF32, {2, columns}}, ChunkList(2)}};
  model.plan.tensors = {{{{Box::whole({2, columns}), 0, {0, 0}, {0, 1}, {1, 1}}}, std::nullopt, 0}};
  SourceFiles files(directory, model.plan.source.files, 8);
  std::vector<std::byte> scratch(1 << 16);
  Gather gather(files, scratch);
  const Lowering lowering(model.plan);
  std::vector<SourcePiece> pieces;
  lowering.lower(0, Box::whole({2, columns}), pieces);
  ASSERT_EQ(pieces.size(), 1U);
  std::vector<float> got(2 * columns);
  const TilePart part{
      Box::whole({2, columns}), std::as_writable_bytes(std::span(got)).data(), {columns * 4, 4}};
  ASSERT_TRUE(gather.read(pieces[0], {DType::kF32, DType::kF32, 0.0}, std::span(&part, 1)));
  for (std::int64_t c = 0; c < columns; ++c) {
    EXPECT_EQ(got[static_cast<std::size_t>(c)], 1 + 2 * static_cast<float>(c));
    EXPECT_EQ(got[static_cast<std::size_t>(columns + c)], 1 + 30 * static_cast<float>(c));
  }
}

// What a bias of an adapter is: a vector, no matrix. With bfloat16 as the target it is rounded
// once: 1 + 0.5 * 2^-7 is a tie that goes to even, and a little more goes up.
TEST(Adapted, AVectorIsAddedAndRoundedOnce) {
  MemoryDirectory directory("source");
  Model model;
  model.plan.source.files = {"w", "b"};
  model.plan.source.tensors = {stored("w", DType::kBF16, {3}, 0), stored("b", DType::kF32, {3}, 1)};
  model.plan.adapted = {{0, 1, std::nullopt, 0, -1, 0.5F, nullptr}};
  write_file(directory, "w", DType::kBF16, {1, 2, 3});
  write_file(directory, "b", DType::kF32, {0x1p-7F, 2, 0x1p-6F});
  model.plan.target.files = {"t"};
  model.plan.file_sizes = {6};
  StoredTensor target{{"t", DType::kBF16, {3}}, ChunkList(1)};
  target.chunks.push_back({Box::whole({3}), 0, {0, 6}, {}});
  model.plan.target.tensors = {target};
  model.plan.tensors = {{{{Box::whole({3}), 0, {0}, {0}, {1}}}, std::nullopt, 0.0}};
  ASSERT_TRUE(check_plan(model.plan));
  EXPECT_EQ(cost_of(model.plan).payload_bytes_read, 3U * 2 + 3 * 4);
  SourceFiles files(directory, model.plan.source.files, 8);
  std::vector<std::byte> scratch(64);
  Gather gather(files, scratch);
  std::vector<SourcePiece> pieces;
  Lowering(model.plan).lower(0, Box::whole({3}), pieces);
  std::vector<std::uint16_t> got(3);
  const TilePart part{Box::whole({3}), std::as_writable_bytes(std::span(got)).data(), {2}};
  ASSERT_TRUE(gather.read(pieces.at(0), {DType::kBF16, DType::kBF16, 0.0}, std::span(&part, 1)));
  EXPECT_EQ(got, (std::vector<std::uint16_t>{bf16_from_f32(1.0F), bf16_from_f32(3.0F),
                                             bf16_from_f32(3.0F)}));
}

}  // namespace
}  // namespace shardwright::adapted
