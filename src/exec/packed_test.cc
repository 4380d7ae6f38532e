// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>

#include "base/checked.h"
#include "base/endian.h"
#include "exec/gather.h"
#include "io/memory_directory.h"
#include "tensor/bfloat16.h"

namespace shardwright {
namespace {

// A matrix of integers as it is meant, without any packing.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int bits = 4;
  std::int64_t group = 1;  // columns that share a scale and a zero
  std::vector<std::uint32_t> values;
  std::vector<float> scales;         // [rows, groups]
  std::vector<std::uint32_t> zeros;  // the same
  std::vector<std::int32_t> order;   // the group of each column

  [[nodiscard]] std::int64_t groups() const { return ceil_div(columns, group); }
  [[nodiscard]] std::int64_t per_word() const { return 32 / bits; }
};

// How it is stored.
struct Layout {
  bool is_transposed = false;   // [columns, rows]
  int words_axis = -1;          // of the matrix; -1: neighbours in a row, each row from a word on
  bool is_interleaved = false;  // the even ones of eight first
  bool has_zeros = false;
  int zero_words_axis = -1;  // 0: words along the rows
  std::uint32_t added = 0;   // to each word of zeros
  std::int64_t lead = 0;     // bytes in front of everything
};

std::int64_t up_to(std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most + 1); }

Matrix random_matrix() {
  Matrix matrix;
  matrix.bits = *rc::gen::element(2, 4, 8);
  matrix.rows = matrix.per_word() * up_to(3);
  matrix.group = up_to(12);
  matrix.columns = matrix.per_word() * up_to(3);
  const std::uint32_t most = (1U << matrix.bits) - 1U;
  for (std::int64_t i = 0; i < matrix.rows * matrix.columns; ++i) {
    matrix.values.push_back(static_cast<std::uint32_t>(i * 7 + i / 5) & most);
  }
  for (std::int64_t i = 0; i < matrix.rows * matrix.groups(); ++i) {
    matrix.scales.push_back(0.37F + 0.11F * static_cast<float>(i));
    matrix.zeros.push_back(static_cast<std::uint32_t>(i * 5 + 3) & most);
  }
  for (std::int64_t c = 0; c < matrix.columns; ++c) {
    matrix.order.push_back(static_cast<std::int32_t>(c / matrix.group));
  }
  return matrix;
}

Layout random_layout(const Matrix& matrix) {
  Layout layout;
  layout.is_transposed = *rc::gen::arbitrary<bool>();
  layout.words_axis = *rc::gen::element(-1, 0, 1);
  if (layout.words_axis < 0) layout.is_transposed = false;
  layout.is_interleaved = matrix.bits == 4 && layout.words_axis >= 0 && *rc::gen::arbitrary<bool>();
  layout.has_zeros = *rc::gen::arbitrary<bool>();
  layout.zero_words_axis = *rc::gen::element(-1, 0);
  if (layout.zero_words_axis == 0) layout.added = *rc::gen::element(0U, 0x11111111U, 0xfedcba98U);
  layout.lead = *rc::gen::inRange<std::int64_t>(0, 9);
  return layout;
}

// Puts a number of few bits where it belongs among words of 32.
void put(std::vector<std::uint32_t>& words, std::int64_t word, std::int64_t slot, int bits,
         std::uint32_t value) {
  words[static_cast<std::size_t>(word)] |= value << (slot * bits);
}

std::int64_t slot(std::int64_t at, bool is_interleaved) {
  constexpr std::array<std::int64_t, 8> kSlots = {0, 4, 1, 5, 2, 6, 3, 7};
  return is_interleaved ? kSlots[static_cast<std::size_t>(at)] : at;
}

std::vector<std::uint32_t> packed_values(const Matrix& m, const Layout& layout) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(m.rows * m.columns / m.per_word()));
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t c = 0; c < m.columns; ++c) {
      const bool along_rows = layout.words_axis == 0;
      const std::int64_t packed = along_rows ? r : c;
      const std::int64_t row = along_rows ? r / m.per_word() : r;
      const std::int64_t column = along_rows ? c : c / m.per_word();
      const std::int64_t height = along_rows ? m.rows / m.per_word() : m.rows;
      const std::int64_t width = along_rows ? m.columns : m.columns / m.per_word();
      const std::int64_t word = layout.is_transposed ? column * height + row : row * width + column;
      put(words, word, slot(packed % m.per_word(), layout.is_interleaved), m.bits,
          m.values[static_cast<std::size_t>(r * m.columns + c)]);
    }
  }
  return words;
}

// [rows, groups], either packed in words along the rows or one behind the other.
std::vector<std::uint32_t> packed_zeros(const Matrix& m, const Layout& layout) {
  const std::int64_t count = m.rows * m.groups();
  std::vector<std::uint32_t> words(static_cast<std::size_t>(ceil_div(count, m.per_word())));
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t g = 0; g < m.groups(); ++g) {
      const std::int64_t at = r * m.groups() + g;
      const std::uint32_t zero = m.zeros[static_cast<std::size_t>(at)];
      if (layout.zero_words_axis < 0) {
        put(words, at / m.per_word(), at % m.per_word(), m.bits, zero);
      } else {
        put(words, r / m.per_word() * m.groups() + g, slot(r % m.per_word(), layout.is_interleaved),
            m.bits, zero);
      }
    }
  }
  return words;
}

// The zero of row r in a group, of the word that has it with its neighbours'.
int zero_of(const Matrix& m, const Layout& layout, std::int64_t r, std::int64_t group) {
  if (!layout.has_zeros) return 3;
  const std::int64_t at = r * m.groups() + group;
  if (layout.added == 0) return static_cast<int>(m.zeros[static_cast<std::size_t>(at)]);
  const std::int64_t word = r / m.per_word() * m.groups() + group;
  const std::uint32_t whole =
      packed_zeros(m, layout)[static_cast<std::size_t>(word)] + layout.added;
  const std::int64_t place = slot(r % m.per_word(), layout.is_interleaved) * m.bits;
  return static_cast<int>(whole >> place & ((1U << m.bits) - 1U));
}

std::uint16_t element(const Matrix& m, const Layout& layout, float second, std::int64_t r,
                      std::int64_t c) {
  const std::int64_t group = m.order[static_cast<std::size_t>(c)];
  const std::int64_t at = r * m.groups() + group;
  const int zero = zero_of(m, layout, r, group);
  const int value = static_cast<int>(m.values[static_cast<std::size_t>(r * m.columns + c)]);
  const float scale = m.scales[static_cast<std::size_t>(at)] / second;
  return bf16_from_f32(static_cast<float>(value - zero) * scale);
}

template <typename T>
void add_tensor(Catalog& catalog, MemoryDirectory& directory, const TensorDesc& desc,
                std::span<const T> content, std::int64_t lead, const Dims& shape,
                const Dims& strides) {
  const std::string file = "f" + std::to_string(catalog.files.size());
  std::string bytes(static_cast<std::size_t>(lead), '\7');
  bytes.append(reinterpret_cast<const char*>(content.data()), content.size_bytes());
  ASSERT_TRUE(directory.create(file, bytes.size()).value()->write_at(0, as_bytes(bytes)));
  StoredTensor tensor{{desc.name, desc.dtype, shape}, ChunkList(shape.size())};
  tensor.chunks.push_back({Box::whole(shape),
                           static_cast<std::uint32_t>(catalog.files.size()),
                           {static_cast<std::uint64_t>(lead), content.size_bytes()},
                           strides});
  catalog.files.push_back(file);
  catalog.tensors.push_back(tensor);
}

// Bit for bit what the matrix means, however it is packed, cut and stepped through, with any
// memory.
RC_GTEST_PROP(Packed, AnyLayoutGivesTheSameBits, ()) {
  Matrix m = random_matrix();
  const Layout layout = random_layout(m);
  const bool is_ordered = *rc::gen::arbitrary<bool>();
  if (is_ordered) std::ranges::reverse(m.order);
  const bool has_second = *rc::gen::arbitrary<bool>();
  const float second = has_second ? 3.7F : 1.0F;
  Plan plan;
  Catalog& source = plan.source;
  MemoryDirectory directory("source");
  const std::vector<std::uint32_t> words = packed_values(m, layout);
  const std::vector<std::uint32_t> zeros = packed_zeros(m, layout);
  const std::int64_t n = m.per_word();
  Dims strides = {m.columns, 1};
  if (layout.words_axis == 1) {
    strides = layout.is_transposed ? Dims{n, m.rows * n} : Dims{m.columns, n};
  }
  if (layout.words_axis == 0) {
    strides = layout.is_transposed ? Dims{n, m.rows} : Dims{m.columns * n, n};
  }
  add_tensor<std::uint32_t>(source, directory, {"w", DType::kU8, {}}, words, layout.lead,
                            {m.rows, m.columns}, strides);
  add_tensor<float>(source, directory, {"s", DType::kF32, {}}, m.scales, layout.lead,
                    {m.rows, m.groups()}, {});
  add_tensor<std::uint32_t>(source, directory, {"z", DType::kI32, {}}, zeros, layout.lead,
                            {std::ssize(zeros)}, {});
  add_tensor<float>(source, directory, {"x", DType::kF32, {}}, std::span(&second, 1), layout.lead,
                    {1}, {});
  add_tensor<std::int32_t>(source, directory, {"g", DType::kI32, {}}, m.order, layout.lead,
                           {m.columns}, {});
  QuantisedSource quantised{0, 1, {1, m.group}, {m.groups(), 1}};
  quantised.bits = m.bits;
  quantised.words = {layout.words_axis, layout.is_interleaved};
  quantised.zero = 3;
  if (layout.has_zeros) {
    ZeroPoints points{
        2, {1, m.group}, {m.groups(), 1}, {layout.zero_words_axis, false}, layout.added};
    if (layout.zero_words_axis == 0) {
      points.block = {n, m.group};
      points.stride = {m.groups() * n, n};
      points.words.is_interleaved = layout.is_interleaved;
    }
    quantised.zeros = points;
  }
  if (has_second) quantised.second = {3, true};
  if (is_ordered) quantised.groups = {4, 1};
  plan.quantised = {quantised};

  TensorView view;
  const bool fixes_a_row = *rc::gen::arbitrary<bool>();
  const bool fixes_a_column = !fixes_a_row && *rc::gen::arbitrary<bool>();
  view.axis = *rc::gen::arbitrary<bool>() ? Dims{1, 0} : Dims{0, 1};
  view.source_origin = {*rc::gen::inRange<std::int64_t>(0, m.rows),
                        *rc::gen::inRange<std::int64_t>(0, m.columns)};
  view.box.origin = {0, 0};
  for (int axis = 0; axis < 2; ++axis) {
    const int s = static_cast<int>(view.axis[axis]);
    view.step.push_back(up_to(4));
    const bool is_fixed = s == 0 ? fixes_a_row : fixes_a_column;
    const std::int64_t extent = s == 0 ? m.rows : m.columns;
    view.box.shape.push_back(is_fixed ? 1
                                      : ceil_div(extent - view.source_origin[s], view.step[axis]));
    if (is_fixed) view.axis[axis] = -1;
  }
  StoredTensor target{{"t", DType::kBF16, view.box.shape}, ChunkList(2)};
  const std::uint64_t bytes = static_cast<std::uint64_t>(view.box.volume()) * 2;
  target.chunks.push_back({view.box, 0, {0, bytes}, {}});
  plan.target.files = {"t"};
  plan.target.tensors = {target};
  plan.file_sizes = {bytes};
  plan.tensors = {{{view}, std::nullopt, 0.0}};
  const Status checked = check_plan(plan);
  if (!checked) RC_FAIL(checked.error().message);

  SourceFiles files(directory, source.files, 8);
  std::vector<std::byte> scratch(
      static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(32, 600)));
  std::vector<std::uint16_t> got(static_cast<std::size_t>(view.box.volume()), 0xdead);
  const TilePart part{
      view.box, std::as_writable_bytes(std::span(got)).data(), {view.box.shape[1] * 2, 2}};
  const Lowering lowering(plan);
  Gather gather(files, scratch);
  const std::int64_t height = up_to(view.box.shape[0]);
  for (std::int64_t row = 0; row < view.box.shape[0]; row += height) {
    Box tile = view.box;
    tile.origin[0] = row;
    tile.shape[0] = std::min(height, view.box.shape[0] - row);
    std::vector<SourcePiece> pieces;
    lowering.lower(0, tile, pieces);
    for (const SourcePiece& piece : pieces) {
      RC_ASSERT(gather.read(piece, {piece.dtype, DType::kBF16, 0.0}, std::span(&part, 1)));
    }
  }
  std::vector<std::uint16_t> expected;
  for (std::int64_t i = 0; i < view.box.shape[0]; ++i) {
    for (std::int64_t j = 0; j < view.box.shape[1]; ++j) {
      Dims at = view.source_origin;
      if (view.axis[0] >= 0) at[static_cast<int>(view.axis[0])] += i * view.step[0];
      if (view.axis[1] >= 0) at[static_cast<int>(view.axis[1])] += j * view.step[1];
      expected.push_back(element(m, layout, second, at[0], at[1]));
    }
  }
  RC_ASSERT(got == expected);
}

// Rows of words that are far longer than what a tile reads of each: only the runs are read.
TEST(Packed, ReadsRunsOfRowsThatLieFarApart) {
  constexpr std::int64_t kRows = 16384;
  constexpr std::int64_t kColumns = 56;
  constexpr std::int64_t kHeight = 2048;
  for (const int words_axis : {0, 1}) {
    Matrix m{kRows, kColumns, 4, 28, {}, {}, {}, {}};
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      m.values.push_back(static_cast<std::uint32_t>(i * 7 + i / 5) & 15U);
    }
    for (std::int64_t i = 0; i < kRows * 2; ++i) m.scales.push_back(static_cast<float>(i % 37));
    for (std::int64_t c = 0; c < kColumns; ++c) m.order.push_back(c < 28 ? 0 : 1);
    Layout layout;
    layout.is_transposed = true;
    layout.words_axis = words_axis;
    layout.is_interleaved = words_axis == 0;
    Plan plan;
    MemoryDirectory directory("source");
    const std::vector<std::uint32_t> words = packed_values(m, layout);
    add_tensor<std::uint32_t>(plan.source, directory, {"w", DType::kU8, {}}, words, 5,
                              {kRows, kColumns},
                              words_axis == 1 ? Dims{8, kRows * 8} : Dims{8, kRows});
    add_tensor<float>(plan.source, directory, {"s", DType::kF32, {}}, m.scales, 0, {kRows, 2}, {});
    QuantisedSource quantised{0, 1, {1, 28}, {2, 1}};
    quantised.bits = 4;
    quantised.words = {words_axis, layout.is_interleaved};
    quantised.zero = 3;
    plan.quantised = {quantised};
    const Box whole = Box::whole({kRows, kColumns});
    plan.target.files = {"t"};
    plan.target.tensors = {{{"t", DType::kBF16, whole.shape}, ChunkList(2)}};
    plan.target.tensors[0].chunks.push_back({whole, 0, {0, 2 * kRows * kColumns}, {}});
    plan.file_sizes = {2 * kRows * kColumns};
    plan.tensors = {{{TensorView{whole, 0, {0, 0}, {0, 1}, {1, 1}}}, std::nullopt, 0.0}};
    ASSERT_TRUE(check_plan(plan));
    std::vector<std::uint16_t> expected;
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kColumns; ++c) {
        expected.push_back(element(m, layout, 1.0F, r, c));
      }
    }
    SourceFiles files(directory, plan.source.files, 8);
    const Lowering lowering(plan);
    for (const std::size_t memory : {std::size_t{1} << 18, std::size_t{40000}, std::size_t{64}}) {
      std::vector<std::byte> scratch(memory);
      std::vector<std::uint16_t> got(expected.size(), 0xdead);
      const TilePart part{whole, std::as_writable_bytes(std::span(got)).data(), {kColumns * 2, 2}};
      Gather gather(files, scratch);
      const std::uint64_t before = files.bytes_read();
      for (std::int64_t row = 0; row < kRows; row += kHeight) {
        const Box tile{{row, 0}, {kHeight, kColumns}};
        std::vector<SourcePiece> pieces;
        lowering.lower(0, tile, pieces);
        ASSERT_EQ(pieces.size(), 1U);
        ASSERT_TRUE(gather.read(pieces[0], {DType::kU8, DType::kBF16, 0.0}, std::span(&part, 1)));
      }
      // With room for it each byte is read once.
      if (memory == std::size_t{1} << 18) {
        EXPECT_EQ(files.bytes_read() - before, 4 * (words.size() + m.scales.size())) << words_axis;
      }
      EXPECT_TRUE(got == expected) << words_axis << " " << memory;
    }
  }
}

// Two rows of eight integers of four bits, computed by hand: row 0 is 0 to 7, row 1 is 8 to 15.
Plan small_plan(MemoryDirectory& directory) {
  Plan plan;
  const std::array<std::uint32_t, 2> words = {0x76543210U, 0xfedcba98U};
  const std::array<float, 4> scales = {1.0F, 2.0F, 0.5F, -1.0F};
  const std::array<std::int32_t, 8> order = {1, 0, 0, 1, 0, 1, 1, 0};
  add_tensor<std::uint32_t>(plan.source, directory, {"w", DType::kU8, {}}, words, 0, {2, 8},
                            {8, 1});
  add_tensor<float>(plan.source, directory, {"s", DType::kF32, {}}, scales, 0, {2, 2}, {});
  add_tensor<std::int32_t>(plan.source, directory, {"g", DType::kI32, {}}, order, 0, {8}, {});
  QuantisedSource quantised{0, 1, {1, 4}, {2, 1}};
  quantised.bits = 4;
  quantised.zero = 8;
  quantised.groups = {2, 1};
  plan.quantised = {quantised};
  plan.target.files = {"t"};
  plan.target.tensors = {{{"t", DType::kF32, {2, 8}}, ChunkList(2)}};
  plan.target.tensors[0].chunks.push_back({Box::whole({2, 8}), 0, {0, 64}, {}});
  plan.file_sizes = {64};
  plan.tensors = {{{TensorView{Box::whole({2, 8}), 0, {0, 0}, {0, 1}, {1, 1}}}, std::nullopt, 0.0}};
  return plan;
}

TEST(Packed, MultipliesByTheGroupOfEachColumn) {
  MemoryDirectory directory("source");
  const Plan plan = small_plan(directory);
  ASSERT_TRUE(check_plan(plan));
  EXPECT_EQ(cost_of(plan).payload_bytes_read, 8U + 16U + 32U);
  SourceFiles files(directory, plan.source.files, 8);
  std::array<std::byte, 4096> scratch;
  std::array<float, 16> got{};
  const TilePart part{Box::whole({2, 8}), std::as_writable_bytes(std::span(got)).data(), {32, 4}};
  std::vector<SourcePiece> pieces;
  Lowering(plan).lower(0, Box::whole({2, 8}), pieces);
  ASSERT_EQ(pieces.size(), 1U);
  Gather gather(files, scratch);
  ASSERT_TRUE(gather.read(pieces[0], {DType::kU8, DType::kF32, 0.0}, std::span(&part, 1)));
  EXPECT_EQ(got, (std::array<float, 16>{-16, -7, -6, -10, -4, -6, -4, -1,  //
                                        -0.0F, 0.5F, 1, -3, 2, -5, -6, 3.5F}));
}

TEST(Packed, RefusesAGroupThatHasNoScales) {
  MemoryDirectory directory("source");
  Plan plan = small_plan(directory);
  const std::array<std::int32_t, 8> order = {1, 0, 0, 2, 0, 1, 1, 0};
  plan.source.tensors.pop_back();
  add_tensor<std::int32_t>(plan.source, directory, {"g", DType::kI32, {}}, order, 0, {8}, {});
  SourceFiles files(directory, plan.source.files, 8);
  std::array<std::byte, 4096> scratch;
  std::array<float, 16> got{};
  const TilePart part{Box::whole({2, 8}), std::as_writable_bytes(std::span(got)).data(), {32, 4}};
  std::vector<SourcePiece> pieces;
  Lowering(plan).lower(0, Box::whole({2, 8}), pieces);
  Gather gather(files, scratch);
  const Status status = gather.read(pieces[0], {DType::kU8, DType::kF32, 0.0}, std::span(&part, 1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kOutOfBounds);
  EXPECT_EQ(status.error().message, "f3: tensor g: found group 2 for column 3, expected 0 to 1");
}

TEST(Packed, IsProvenBeforeAnythingIsRead) {
  const auto code = [](auto change) {
    MemoryDirectory directory("source");
    Plan plan = small_plan(directory);
    plan.quantised[0].zeros = ZeroPoints{3, {8, 4}, {16, 8}, {0}, 0};
    const std::array<std::uint32_t, 2> zeros = {};
    add_tensor<std::uint32_t>(plan.source, directory, {"z", DType::kI32, {}}, zeros, 0, {2}, {});
    change(plan);
    const Status status = check_plan(plan);
    return status ? Code::kInternal : status.error().code;
  };
  EXPECT_EQ(code([](Plan&) {}), Code::kInternal);
  const std::vector<std::function<void(Plan&)>> wrong = {
      [](Plan& plan) { plan.quantised[0].bits = 3; },
      [](Plan& plan) { plan.quantised[0].bits = 8; },  // 16 bytes of values where 8 are
      [](Plan& plan) { plan.quantised[0].words.axis = 2; },
      [](Plan& plan) { plan.source.tensors[0].chunks.set_strides(0, {9, 1}); },
      [](Plan& plan) { plan.quantised[0].stride = {3, 1}; },
      [](Plan& plan) { plan.quantised[0].groups->axis = 0; },
      [](Plan& plan) { plan.quantised[0].groups->axis = 2; },
      [](Plan& plan) { plan.quantised[0].groups->tensor = 9; },
      [](Plan& plan) { plan.quantised[0].zeros->tensor = 0; },
      [](Plan& plan) { plan.quantised[0].zeros->block = {4, 4}; },
      [](Plan& plan) { plan.quantised[0].zeros->stride = {16, 9}; },
      [](Plan& plan) { plan.quantised[0].second = SecondScale{1, false}; },
      [](Plan& plan) { plan.source.tensors[2].desc.dtype = DType::kF32; },
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_EQ(code(wrong[i]), Code::kPlanInvalid) << i;
}

}  // namespace
}  // namespace shardwright
