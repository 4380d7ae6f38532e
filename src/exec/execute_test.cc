// SPDX-License-Identifier: Apache-2.0
#include "exec/execute.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <memory>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/torch_item.h"
#include "codec/torch_layout.h"
#include "io/memory_directory.h"
#include "io/recording_directory.h"

namespace shardwright {
namespace {

// Element i of the source's canonical order holds i: whatever moves is recognised.
std::vector<std::uint16_t> counted(std::int64_t count) {
  std::vector<std::uint16_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<std::uint16_t>(i * 7 + 3));
  return values;
}

Status put(Directory& directory, const std::string& path, std::span<const std::byte> bytes) {
  const std::unique_ptr<WritableFile> file = SW_TRY(directory.create(path, bytes.size()));
  return file->write_at(0, bytes);
}

struct Grid {
  std::int64_t rows;
  std::int64_t columns;
};

// Cuts a [rows, columns] u16 tensor into a grid of chunks, one after another in one file.
StoredTensor cut(const Dims& shape, const Grid& grid, Encoding encoding, std::uint64_t& end) {
  StoredTensor tensor{{"w", DType::kU16, shape}, ChunkList(2), encoding};
  for (std::int64_t r = 0; r < grid.rows; ++r) {
    for (std::int64_t c = 0; c < grid.columns; ++c) {
      const Dims origin{r * shape[0] / grid.rows, c * shape[1] / grid.columns};
      const Dims extent{(r + 1) * shape[0] / grid.rows - origin[0],
                        (c + 1) * shape[1] / grid.columns - origin[1]};
      std::uint64_t bytes = static_cast<std::uint64_t>(extent[0] * extent[1] * 2);
      if (encoding == Encoding::kTorchItem) {
        bytes = TensorItem::make(DType::kU16, extent, end).value().size();
      }
      tensor.chunks.push_back({Box{origin, extent}, 0, {end, bytes}, {}});
      end += bytes;
    }
  }
  return tensor;
}

void write_source(Directory& directory, const StoredTensor& tensor, std::uint64_t size,
                  const std::vector<std::uint16_t>& values) {
  std::vector<std::byte> file(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Chunk chunk = tensor.chunks[i];
    std::byte* at = file.data() + chunk.range.offset;
    for (std::int64_t r = 0; r < chunk.box.shape[0]; ++r) {
      for (std::int64_t c = 0; c < chunk.box.shape[1]; ++c, at += 2) {
        const std::int64_t row = chunk.box.origin[0] + r;
        const std::int64_t column = chunk.box.origin[1] + c;
        std::memcpy(at, &values[static_cast<std::size_t>(row * tensor.desc.shape[1] + column)], 2);
      }
    }
  }
  ASSERT_TRUE(put(directory, "source", file));
}

// The target's elements in its canonical order, read back through its own catalog; archives are
// checked to be whole.
std::vector<std::uint16_t> read_target(const Directory& directory, const StoredTensor& tensor) {
  const std::string bytes = read_whole(directory, "target", 1 << 20).value();
  std::vector<std::uint16_t> values(
      static_cast<std::size_t>(tensor.desc.shape[0] * tensor.desc.shape[1]), 0xdead);
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Chunk chunk = tensor.chunks[i];
    std::uint64_t start = chunk.range.offset;
    if (tensor.encoding == Encoding::kTorchItem) {
      const TensorItem item =
          TensorItem::make(DType::kU16, chunk.box.shape, chunk.range.offset).value();
      start += item.payload_offset();
      const std::size_t payload = static_cast<std::size_t>(chunk.box.volume() * 2);
      const std::string_view stored =
          std::string_view(bytes).substr(chunk.range.offset, chunk.range.length);
      const std::uint32_t crc = crc32(as_bytes(std::string_view(bytes).substr(start, payload)));
      EXPECT_TRUE(stored.starts_with(item.head()));
      EXPECT_TRUE(stored.ends_with(item.tail(crc)));
    }
    const char* at = bytes.data() + start;
    for (std::int64_t r = 0; r < chunk.box.shape[0]; ++r) {
      for (std::int64_t c = 0; c < chunk.box.shape[1]; ++c, at += 2) {
        const std::int64_t index =
            (chunk.box.origin[0] + r) * tensor.desc.shape[1] + chunk.box.origin[1] + c;
        std::memcpy(&values[static_cast<std::size_t>(index)], at, 2);
      }
    }
  }
  return values;
}

Result<std::string> run(const Plan& plan, Directory& source, Directory& target, int threads) {
  SourceFiles files(source, plan.source.files, 8);
  ExecuteOptions options;
  options.threads = threads;
  options.buffer_bytes = 1;  // the least buffers there are
  SW_TRY(execute(plan, files, target, options));
  EXPECT_EQ(files.opens(), 1U);
  return read_whole(target, "target", 1 << 20);
}

// Any grid of chunks becomes any other, transposed or not, raw or in archives, to the same bytes
// with one thread and with three.
RC_GTEST_PROP(Execute, MovesEveryElementToItsPlace, ()) {
  const bool large = *rc::gen::element(false, false, false, true);
  const std::int64_t most = large ? 300 : 12;
  const Dims shape{*rc::gen::inRange<std::int64_t>(1, most),
                   *rc::gen::inRange<std::int64_t>(1, most)};
  const bool transposed = *rc::gen::arbitrary<bool>();
  const Dims target_shape = transposed ? Dims{shape[1], shape[0]} : shape;
  const auto grid = [](const Dims& of) {
    return Grid{*rc::gen::inRange<std::int64_t>(1, std::min<std::int64_t>(of[0], 4) + 1),
                *rc::gen::inRange<std::int64_t>(1, std::min<std::int64_t>(of[1], 4) + 1)};
  };
  Plan plan;
  std::uint64_t source_size = 0;
  std::uint64_t target_size = 0;
  plan.source.files = {"source"};
  plan.source.tensors = {cut(shape, grid(shape), Encoding::kRaw, source_size)};
  plan.target.files = {"target"};
  plan.target.tensors = {cut(target_shape, grid(target_shape),
                             *rc::gen::element(Encoding::kRaw, Encoding::kTorchItem), target_size)};
  plan.file_sizes = {target_size};
  TensorView view{Box::whole(target_shape), 0, {0, 0}, {0, 1}, {1, 1}};
  if (transposed) view.axis = {1, 0};
  plan.tensors = {{{view}, std::nullopt, 0.0}};
  RC_ASSERT(check_plan(plan).has_value());

  const std::vector<std::uint16_t> values = counted(shape[0] * shape[1]);
  MemoryDirectory source("source");
  write_source(source, plan.source.tensors[0], source_size, values);
  MemoryDirectory once("once");
  MemoryDirectory again("again");
  const std::string bytes = run(plan, source, once, 1).value();
  RC_ASSERT(bytes == run(plan, source, again, 3).value());

  const std::vector<std::uint16_t> got = read_target(once, plan.target.tensors[0]);
  for (std::int64_t r = 0; r < target_shape[0]; ++r) {
    for (std::int64_t c = 0; c < target_shape[1]; ++c) {
      const std::int64_t from = transposed ? c * shape[1] + r : r * shape[1] + c;
      RC_ASSERT(got[static_cast<std::size_t>(r * target_shape[1] + c)] ==
                values[static_cast<std::size_t>(from)]);
    }
  }
}

TEST(Execute, ReadsAndWritesATileAtATime) {
  const Dims shape{512, 256};
  constexpr std::uint64_t kTile = std::uint64_t{16} << 10;
  Plan plan;
  std::uint64_t size = 0;
  std::uint64_t target_size = 0;
  plan.source.files = {"source"};
  plan.source.tensors = {cut(shape, {1, 1}, Encoding::kRaw, size)};
  plan.target.files = {"target"};
  plan.target.tensors = {cut(shape, {2, 1}, Encoding::kRaw, target_size)};
  plan.file_sizes = {target_size};
  plan.tensors = {{{{Box::whole(shape), 0, {0, 0}, {0, 1}, {1, 1}}}, std::nullopt, 0.0}};
  ASSERT_TRUE(check_plan(plan));
  MemoryDirectory source("source");
  write_source(source, plan.source.tensors[0], size, counted(shape[0] * shape[1]));
  RecordingDirectory read(source);
  MemoryDirectory target("target");
  RecordingDirectory written(target);
  SourceFiles files(read, plan.source.files, 8);
  ExecuteOptions options;
  options.tile_bytes = kTile;
  ASSERT_TRUE(execute(plan, files, written, options));
  EXPECT_EQ(target.contents("target"), source.contents("source"));
  const auto most = [](const std::vector<ByteRange>& ranges) {
    return std::ranges::max(ranges, {}, &ByteRange::length).length;
  };
  EXPECT_EQ(most(read.records().at("source").reads), kTile);
  EXPECT_EQ(most(written.records().at("target").writes), kTile);
}

// Two ranks' archives: each has a half of the columns in one storage, rows from behind first, and
// all of a bias in another.
Plan archived_plan(const TorchLayout& layout, std::int64_t rows, std::int64_t columns) {
  Plan plan;
  plan.source.files = {"source"};
  plan.target.files = {"0", "1"};
  plan.file_sizes = {layout.total_bytes(), layout.total_bytes()};
  const auto bytes = [](std::int64_t elements) { return static_cast<std::uint64_t>(elements * 2); };
  StoredTensor weight{{"w", DType::kU16, {rows, columns}}, ChunkList(2)};
  StoredTensor bias{{"b", DType::kU16, {rows}}, ChunkList(1)};
  plan.target.tensors = {weight, bias};
  weight.chunks.push_back({Box::whole(weight.desc.shape), 0, {0, bytes(rows * columns)}, {}});
  bias.chunks.push_back({Box::whole(bias.desc.shape), 0, {bytes(rows * columns), bytes(rows)}, {}});
  plan.source.tensors = {weight, bias};
  plan.tensors = {{{{Box::whole(weight.desc.shape), 0, {0, 0}, {0, 1}, {1, 1}}}, {}, 0.0},
                  {{{Box::whole(bias.desc.shape), 1, {0}, {0}, {1}}}, {}, 0.0}};
  const std::int64_t half = columns / 2;
  const std::int64_t middle = rows / 3;
  for (const std::uint32_t rank : {0U, 1U}) {
    const std::int64_t column = half * static_cast<std::int64_t>(rank);
    const std::uint64_t begin = layout.storage(0).offset;
    plan.target.tensors[0].chunks.push_back(
        {Box{{0, column}, {middle, half}},
         rank,
         {begin + bytes((rows - middle) * half), bytes(middle * half)},
         {}});
    plan.target.tensors[0].chunks.push_back({Box{{middle, column}, {rows - middle, half}},
                                             rank,
                                             {begin, bytes((rows - middle) * half)},
                                             {}});
    plan.target.tensors[1].chunks.push_back(
        {Box::whole(bias.desc.shape), rank, layout.storage(2), {}});
    plan.archives.push_back(
        {rank,
         "archive",
         {std::make_shared<const std::string>("N"), std::make_shared<const std::string>(".")},
         std::make_shared<const std::vector<ByteRange>>(
             std::vector<ByteRange>{layout.storage(0), layout.storage(1), layout.storage(2)})});
  }
  return plan;
}

TEST(ExecuteArchives, AreWhole) {
  constexpr std::int64_t kRows = 900;
  constexpr std::int64_t kColumns = 200;
  const std::vector<std::uint64_t> sizes = {kRows * kColumns, 0, kRows * 2};
  const TorchLayout layout = TorchLayout::make("N.", sizes).value();
  Plan plan = archived_plan(layout, kRows, kColumns);
  ASSERT_TRUE(check_plan(plan)) << check_plan(plan).error().text();
  const std::vector<std::uint16_t> values = counted(kRows * kColumns + kRows);
  MemoryDirectory source("source");
  ASSERT_TRUE(put(source, "source", std::as_bytes(std::span(values))));
  for (const int threads : {1, 3}) {
    MemoryDirectory target("target");
    const RecordingDirectory read(source);
    SourceFiles files(read, plan.source.files, 8);
    files.judge_memory_by([] { return true; });
    ExecuteOptions options;
    options.threads = threads;
    options.buffer_bytes = 1;  // the least buffers there are: several tiles
    std::uint64_t told = 0;
    options.on_progress = [&](const ExecuteProgress& progress) {
      told = progress.payload_bytes_total;
    };
    ASSERT_TRUE(execute(plan, files, target, options));
    EXPECT_EQ(told, kRows * kColumns * 2 + 2 * kRows * 2) << "replicas are written, too";
    EXPECT_EQ(files.bytes_read(), values.size() * 2) << "each byte once";
    EXPECT_EQ(read.records().at("source").given_back.size(), 1U) << "nobody else had read it";
    for (const std::uint32_t rank : {0U, 1U}) {
      const std::int64_t first = kColumns / 2 * static_cast<std::int64_t>(rank);
      std::vector<std::uint16_t> weight;
      for (const auto& [begin, end] :
           {std::pair(kRows / 3, kRows), std::pair(std::int64_t{0}, kRows / 3)}) {
        for (std::int64_t row = begin; row < end; ++row) {
          const auto at = values.begin() + row * kColumns + first;
          weight.insert(weight.end(), at, at + kColumns / 2);
        }
      }
      const std::vector<std::uint16_t> bias(values.end() - kRows, values.end());
      const std::vector<std::uint32_t> crcs = {crc32(std::as_bytes(std::span(weight))), 0,
                                               crc32(std::as_bytes(std::span(bias)))};
      const auto text = [](const std::vector<std::uint16_t>& of) {
        return std::string(reinterpret_cast<const char*>(of.data()), of.size() * 2);
      };
      EXPECT_EQ(read_whole(target, plan.target.files[rank], 1 << 20).value(),
                layout.head() + text(weight) + layout.between(0, crcs[0]) + layout.between(1, 0) +
                    text(bias) + layout.tail(crcs));
    }
  }
  plan.archives[1].pickle.pop_back();
  plan.archives[1].pickle.push_back(std::make_shared<const std::string>(200, 'x'));
  MemoryDirectory target("target");
  SourceFiles files(source, plan.source.files, 8);
  EXPECT_EQ(execute(plan, files, target, {}).error().code, Code::kPlanInvalid)
      << "its storages would lie behind a longer pickle";
}

class ExecuteSmall : public testing::Test {
 protected:
  void SetUp() override {
    std::uint64_t size = 0;
    plan_.source.files = {"source"};
    plan_.source.tensors = {cut({2, 2}, {1, 1}, Encoding::kRaw, size)};
    plan_.target.files = {"target"};
    plan_.target.tensors = {cut({3, 2}, {1, 1}, Encoding::kRaw, target_size_)};
    plan_.file_sizes = {target_size_};
    plan_.tensors = {{{{Box{{0, 0}, {2, 2}}, 0, {0, 0}, {0, 1}, {1, 1}}}, 0.0, 0.0}};
    write_source(source_, plan_.source.tensors[0], size, {1, 2, 3, 4});
  }

  Plan plan_;
  std::uint64_t target_size_ = 0;
  MemoryDirectory source_{"source"};
  MemoryDirectory target_{"target"};
};

TEST_F(ExecuteSmall, FillsWhatNoViewCoversWithZeros) {
  ASSERT_TRUE(run(plan_, source_, target_, 1));
  EXPECT_EQ(read_target(target_, plan_.target.tensors[0]),
            (std::vector<std::uint16_t>{1, 2, 3, 4, 0, 0}));
}

TEST_F(ExecuteSmall, FillsWithAConstantOfTheTargetsType) {
  plan_.source.tensors[0].desc.dtype = DType::kBF16;
  plan_.target.tensors[0].desc.dtype = DType::kBF16;
  plan_.tensors[0].fill = 1.0;
  ASSERT_TRUE(run(plan_, source_, target_, 1));
  EXPECT_EQ(read_target(target_, plan_.target.tensors[0]),
            (std::vector<std::uint16_t>{1, 2, 3, 4, 0x3f80, 0x3f80}));
}

TEST_F(ExecuteSmall, CopiesObjectsAndWritesLiterals) {
  plan_.source.objects = {{"o", 0, {2, 4}}};
  plan_.target.objects = {{"o", 0, {12, 4}}, {"n", 0, {16, 3}}};
  plan_.objects = {{true, 0, {}}, {false, 0, std::make_shared<const std::string>("new")}};
  plan_.literals = {{0, 19, "end"}};
  plan_.file_sizes = {22};
  const std::string bytes = run(plan_, source_, target_, 2).value();
  EXPECT_EQ(bytes.substr(12, 4), std::string("\x02\x00\x03\x00", 4));
  EXPECT_EQ(bytes.substr(16), "newend");
}

TEST_F(ExecuteSmall, StopsWhenCancelled) {
  const std::atomic<bool> cancelled = true;
  SourceFiles files(source_, plan_.source.files, 8);
  ExecuteOptions options;
  options.cancelled = &cancelled;
  EXPECT_EQ(execute(plan_, files, target_, options).error().code, Code::kCancelled);
}

TEST_F(ExecuteSmall, ReportsAFileThatIsTooShort) {
  plan_.source.tensors[0].chunks.set_location(0, 0, {4, 8});
  SourceFiles files(source_, plan_.source.files, 8);
  const auto report = execute(plan_, files, target_, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kShortRead);
  EXPECT_NE(report.error().message.find("tensor w"), std::string::npos);
}

TEST_F(ExecuteSmall, ConvertsWhileItCopies) {
  // 0x3f80 is 1.0 in bfloat16; the offset of zero-centred norms goes on top.
  const std::vector<std::uint16_t> ones(4, 0x3f80);
  MemoryDirectory source("ones");
  ASSERT_TRUE(put(source, "source", std::as_bytes(std::span(ones))));
  plan_.source.tensors[0].desc.dtype = DType::kBF16;
  plan_.target.tensors[0].desc.dtype = DType::kF32;
  plan_.target.tensors[0].chunks.set_location(0, 0, {0, 24});
  plan_.file_sizes = {24};
  plan_.tensors[0].add = 0.5;
  const std::string bytes = run(plan_, source, target_, 1).value();
  float first = 0;
  std::memcpy(&first, bytes.data(), sizeof first);
  EXPECT_EQ(first, 1.5F);
  EXPECT_EQ(bytes.substr(16), std::string(8, '\0'));
}

}  // namespace
}  // namespace shardwright
