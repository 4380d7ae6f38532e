// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_layout.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/torch_archive.h"
#include "codec/torch_item.h"
#include "codec/torch_item_reader.h"
#include "codec/zip_format.h"
#include "io/memory_directory.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

std::string golden_layout(const std::string& name) { return read_golden("torch_save/" + name); }

/// head, storage, between, storage, ..., tail; checks that each storage lies where it was promised.
std::string assemble(const TorchLayout& layout, const std::vector<std::string>& storages) {
  std::string out = layout.head();
  std::vector<std::uint32_t> crcs;
  for (std::size_t index = 0; index < storages.size(); ++index) {
    EXPECT_EQ(out.size(), layout.storage(index).offset);
    EXPECT_EQ(storages[index].size(), layout.storage(index).length);
    out += storages[index];
    crcs.push_back(crc32(as_bytes(storages[index])));
    if (index + 1 < storages.size()) out += layout.between(index, crcs.back());
  }
  out += layout.tail(crcs);
  EXPECT_EQ(out.size(), layout.total_bytes());
  return out;
}

/// Takes an archive of torch apart and lays it out again.
std::string rebuild(const std::string& bytes, TorchLayoutOptions options) {
  const auto file = make_memory_file("golden", bytes);
  const TorchArchive archive = TorchArchive::open(*file).value();
  options.prefix = archive.prefix();
  std::vector<std::string> storages;
  std::vector<std::uint64_t> sizes;
  while (const zip::Entry* entry = archive.record("data/" + std::to_string(sizes.size()))) {
    storages.push_back(archive.zip().read(*entry, 1 << 20).value());
    sizes.push_back(entry->bytes);
  }
  const std::string pickle = archive.zip().read(*archive.record("data.pkl"), 1 << 20).value();
  return assemble(TorchLayout::make(pickle, sizes, options).value(), storages);
}

TEST(TorchLayout, GivesTheBytesOfTorch) {
  for (const char* name :
       {"01_state_dict", "02_dtypes", "03_views_shared", "04_parameter", "07_numpy",
        "09_many_storages", "10_tied_and_repeated", "11_sparse", "12_quantized", "13_conj_neg",
        "14_bare_tensor", "16_empty_dict", "24_proto4", "my_model.x", "object"}) {
    const std::string bytes = golden_layout(std::string("2.13.0/") + name + ".pt");
    EXPECT_TRUE(rebuild(bytes, {}) == bytes) << name;
  }
}

TEST(TorchLayout, GivesTheBytesOfTorchAtAnotherAlignment) {
  const std::string bytes = golden_layout("2.13.0/43_align4096.pt");
  EXPECT_TRUE(rebuild(bytes, {.storage_alignment = 4096}) == bytes);
}

TEST(TorchLayout, LeavesOutTheOptionalRecords) {
  const std::string bytes = golden_layout("2.13.0/01_state_dict.pt");
  const std::string plain = rebuild(bytes, {.format_records = false, .serialization_id = false});
  const auto file = make_memory_file("plain", plain);
  const TorchArchive archive = TorchArchive::open(*file).value();
  EXPECT_EQ(archive.record(".format_version"), nullptr);
  EXPECT_EQ(archive.record(".storage_alignment"), nullptr);
  EXPECT_EQ(archive.record(".data/serialization_id"), nullptr);
  for (const char* kept : {"data.pkl", "byteorder", "data/0", "version"}) {
    EXPECT_NE(archive.record(kept), nullptr) << kept;
  }
  EXPECT_LT(plain.size(), bytes.size());
}

TEST(TorchLayout, AlignsStoragesWhereTheyLieInTheFile) {
  const std::vector<std::string> storages = {"abc", "", "defgh"};
  for (const std::uint64_t base : {0ULL, 1ULL, 63ULL, 1575ULL, 4095ULL}) {
    const TorchLayout layout =
        TorchLayout::make("pickle", std::vector<std::uint64_t>{3, 0, 5},
                          {.base = base, .storage_alignment = 4096, .format_records = false})
            .value();
    for (std::size_t index = 0; index < 3; ++index) {
      EXPECT_EQ((base + layout.storage(index).offset) % 4096, 0u);
    }
    const std::string bytes = assemble(layout, storages);
    const auto file = make_memory_file("aligned", bytes);
    const zip::Archive archive = zip::Archive::open(*file, {0, bytes.size()}).value();
    for (std::size_t index = 0; index < 3; ++index) {
      const auto* entry = archive.find("archive/data/" + std::to_string(index));
      EXPECT_EQ(archive.read(*entry, 100).value(), storages[index]);
      EXPECT_EQ(archive.locate(*entry).value().offset, layout.storage(index).offset);
    }
  }
}

// torch wrote such a file: a storage of 2^32-1 bytes, then small records. These are its headers.
TEST(TorchLayout, WritesZip64FieldsWhereTorchDoes) {
  const std::uint64_t big = 0xFFFFFFFF;
  const std::string pickle(282, 'p');
  const TorchLayout layout =
      TorchLayout::make(pickle, std::vector<std::uint64_t>{big, 12, 0}, {.prefix = "big"}).value();
  EXPECT_EQ(layout.storage(0).offset, 832u);
  EXPECT_EQ(layout.storage(1).offset, 4294968256u);
  EXPECT_EQ(layout.storage(2).offset, 4294968384u);
  EXPECT_EQ(layout.total_bytes(), 4294969353u);
  const auto hex = [](std::string_view bytes) {
    std::string text;
    for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
  };
  EXPECT_THAT(hex(layout.head()), HasSubstr("01001000ffffffff00000000000000000000000046422a005a"));
  EXPECT_THAT(hex(layout.between(0, 0)),
              ::testing::StartsWith("504b070800000000ffffffff00000000ffffffff00000000504b0304"));
  EXPECT_THAT(hex(layout.between(0, 0)), HasSubstr("01000800570300000100000046423100"));
  EXPECT_THAT(hex(layout.between(1, 0xdc7c4e94)),
              ::testing::StartsWith("504b0708944e7cdc0c000000000000000c00000000000000504b0304"));
  const std::string tail = hex(layout.tail(std::vector<std::uint32_t>{0, 0xdc7c4e94, 0}));
  EXPECT_THAT(tail, ::testing::StartsWith("504b0304")) << "no descriptor behind an empty record";
  EXPECT_THAT(tail, HasSubstr("01001000ffffffff00000000ffffffff00000000"));
  EXPECT_THAT(tail, HasSubstr("01000800e403000001000000"));
  EXPECT_THAT(tail, ::testing::EndsWith("504b0506000000000900090067020000ffffffff0000"));
}

TEST(TorchLayout, LaysOutMoreRecordsThanSixteenBitsCount) {
  const std::vector<std::uint64_t> sizes(70'000, 1);
  const TorchLayout layout = TorchLayout::make("p", sizes).value();
  const std::string bytes = assemble(layout, std::vector<std::string>(sizes.size(), "x"));
  const auto file = make_memory_file("many", bytes);
  const zip::Archive archive = zip::Archive::open(*file, {0, bytes.size()}).value();
  EXPECT_EQ(archive.entries().size(), 70'006u);
  EXPECT_EQ(archive.read(*archive.find("archive/data/69999"), 9).value(), "x");
}

TEST(TorchLayout, RefusesWhatCannotBe) {
  const std::vector<std::uint64_t> endless = {~std::uint64_t{0}};
  EXPECT_EQ(TorchLayout::make("p", endless).error().code, Code::kLimit);
  const std::vector<std::uint64_t> two = {std::uint64_t{1} << 62, std::uint64_t{1} << 62};
  EXPECT_EQ(TorchLayout::make("p", two).error().code, Code::kLimit);
  EXPECT_EQ(TorchLayout::make("p", {}, {.base = ~std::uint64_t{0}}).error().code, Code::kLimit);
  EXPECT_EQ(TorchLayout::make("p", {}, {.storage_alignment = 0}).error().code, Code::kUsage);
  EXPECT_EQ(TorchLayout::make("p", endless, {.storage_alignment = 65536}).error().code,
            Code::kUsage);
  EXPECT_EQ(TorchLayout::make("p", {}, {.prefix = std::string(70'000, 'p')}).error().code,
            Code::kLimit);
  EXPECT_EQ(zip::Layout::make({{"a", 1}, {"a", 2}}).error().code, Code::kUsage);
  EXPECT_EQ(zip::Layout::make({{"", 1}}).error().code, Code::kUsage);
}

TEST(TorchObject, IsAWholeArchive) {
  const std::string bytes = golden_layout("2.13.0/object.pt");
  const auto file = make_memory_file("golden", bytes);
  const TorchArchive archive = TorchArchive::open(*file).value();
  const std::string pickle = archive.zip().read(*archive.record("data.pkl"), 1 << 20).value();
  EXPECT_TRUE(encode_torch_object(pickle, {.prefix = "object"}).value() == bytes);
}

RC_GTEST_PROP(TorchItem, IsReadBackAtAnyPlace, ()) {
  const auto dtype = static_cast<DType>(*rc::gen::inRange(0, kDTypeCount));
  const auto extents = *rc::gen::container<std::vector<std::int64_t>>(
      *rc::gen::inRange(0, kMaxAxes + 1), rc::gen::inRange<std::int64_t>(0, 5));
  Dims shape;
  for (const std::int64_t extent : extents) shape.push_back(extent);
  const std::string front(static_cast<std::size_t>(*rc::gen::inRange(0, 200)), '#');
  const TensorItem item = TensorItem::make(dtype, shape, front.size()).value();
  const auto bytes = static_cast<std::size_t>(byte_count(shape, dtype).value());
  std::string payload(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) payload[i] = static_cast<char>(i * 7 + 1);

  const std::string head = item.head();
  RC_ASSERT(head.size() == item.payload_offset());
  RC_ASSERT((front.size() + head.size()) % 64 == 0);
  const std::string whole = head + payload + item.tail(crc32(as_bytes(payload)));
  RC_ASSERT(whole.size() == item.size());
  const auto file = make_memory_file("item", front + whole + "behind");
  const LocatedTensor tensor = TensorItemReader(*file).read({front.size(), whole.size()}).value();
  RC_ASSERT(tensor.dtype == dtype);
  RC_ASSERT(tensor.shape == shape);
  RC_ASSERT(tensor.strides.empty());
  RC_ASSERT(tensor.range.length == bytes);
  RC_ASSERT(tensor.range.offset == front.size() + head.size());
  RC_ASSERT(tensor.storage_crc == crc32(as_bytes(payload)));
}

}  // namespace
}  // namespace shardwright
