// SPDX-License-Identifier: Apache-2.0
// Small files that say much: what they would expand to is counted before it is allocated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libdeflate.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/allowance.h"
#include "base/crc32.h"
#include "base/endian.h"
#include "codec/json_text.h"
#include "codec/pickle_decode.h"
#include "codec/safetensors_header.h"
#include "codec/torch_archive.h"
#include "codec/torch_stream.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;
using std::string_literals::operator""s;

constexpr std::size_t kMany = std::size_t{8} << 20;

std::string times(std::size_t count, const std::string& text) {
  std::string all;
  all.reserve(count * text.size());
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

template <class T>
std::string field(T value) {
  std::string bytes(sizeof value, '\0');
  store_le(std::as_writable_bytes(std::span(bytes)).data(), value);
  return bytes;
}

// A zip archive with the one record a/data.pkl, deflated.
std::string deflated_archive(const std::string& pickle) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> deflater(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  std::string packed(libdeflate_deflate_compress_bound(deflater.get(), pickle.size()), '\0');
  packed.resize(libdeflate_deflate_compress(deflater.get(), pickle.data(), pickle.size(),
                                            packed.data(), packed.size()));
  const std::string name = "a/data.pkl";
  const auto u16 = [](std::size_t value) { return field(static_cast<std::uint16_t>(value)); };
  const auto u32 = [](std::size_t value) { return field(static_cast<std::uint32_t>(value)); };
  const std::string common = u16(20) + u16(0) + u16(8) + u32(0) + u32(crc32(as_bytes(pickle))) +
                             u32(packed.size()) + u32(pickle.size()) + u16(name.size()) + u16(0);
  const std::string local = "PK\x03\x04"s + common + name + packed;
  const std::string central =
      "PK\x01\x02"s + u16(20) + common + u16(0) + u16(0) + u16(0) + u32(0) + u32(0) + name;
  return local + central + "PK\x05\x06"s + u16(0) + u16(0) + u16(1) + u16(1) + u32(central.size()) +
         u32(local.size()) + u16(0);
}

TEST(Expansion, ValuesOfAPickleAreCountedByTheFilesSize) {
  for (const std::string& value : {"]"s, "}"s, "K\x01"s, "N"s, "\x8f"s, "cm\nn\n)\x81"s}) {
    const std::string pickle = "(" + times(kMany / value.size(), value) + "l.";
    const auto refused = pickle::decode(as_bytes(pickle), {.file_bytes = 1000});
    ASSERT_FALSE(refused) << value;
    EXPECT_EQ(refused.error().code, Code::kLimit);
    EXPECT_THAT(refused.error().message, HasSubstr("values expand to more than 67124864 bytes"));
  }
}

TEST(Expansion, WhatADocumentTakesStaysWithinTheAllowance) {
  const std::string pickle = "(" +
                             times(800'000,
                                   "]\x8c\x03"
                                   "abcK\x01\x87") +
                             "l.";
  const auto document = pickle::decode(as_bytes(pickle), {.file_bytes = pickle.size()});
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_GT(document->memory_bytes(), 800'000u * 3 * 16);
  EXPECT_LE(document->memory_bytes(), Allowance::of(pickle.size()));
  EXPECT_FALSE(pickle::decode(as_bytes(pickle), {.file_bytes = 1}));
}

TEST(Expansion, ACompressedPickleIsMeasuredByWhatIsStored) {
  const std::string pickle = "\x80\x02(" + times(kMany, "]") + "l.";
  const std::string bytes = deflated_archive(pickle);
  ASSERT_LT(bytes.size(), 20'000u);
  const auto file = make_memory_file("small.pt", bytes);
  const auto archive = TorchArchive::open(*file);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, Code::kLimit);
  EXPECT_THAT(archive.error().message, HasSubstr("small.pt record 'a/data.pkl'"));
  EXPECT_THAT(archive.error().message, HasSubstr("get the file again"));
  const std::string few = deflated_archive("\x80\x02(" + times(100'000, "]") + "l.");
  const auto sound = make_memory_file("sound.pt", few);
  EXPECT_TRUE(TorchArchive::open(*sound));
}

TEST(Expansion, JsonIsCountedToo) {
  for (const std::string& value : {"[]"s, "{}"s, "1"s, "\"\""s}) {
    const std::string text = "[" + times(kMany / 2, value + ",") + "1]";
    for (const auto& error :
         {parse_json(text, "a.json").error(), parse_ordered_json(text, "a.json").error()}) {
      EXPECT_EQ(error.code, Code::kLimit) << value;
      EXPECT_THAT(error.message, HasSubstr("a.json")) << value;
      EXPECT_THAT(error.message, HasSubstr("values expand to more than")) << value;
    }
  }
  EXPECT_TRUE(parse_json("[" + times(100'000, "{},") + "1]", "a.json"));
}

TEST(Expansion, AnIndexOfManyTensorsIsRead) {
  std::string text = R"({"weight_map":{)";
  for (int i = 0; i < 200'000; ++i) {
    text += R"("model.layers.)" + std::to_string(i) + R"(.w":"model-00001-of-00002.safetensors",)";
  }
  text += R"("x":"y"}})";
  EXPECT_TRUE(parse_json(text, "index"));
}

std::string safetensors(const std::string& header) {
  return field(static_cast<std::uint64_t>(header.size())) + header;
}

TEST(Expansion, ASafetensorsHeaderIsCounted) {
  std::string metadata;
  for (int i = 0; i < 700'000; ++i) metadata += "\"" + std::to_string(i) + "\":\"\",";
  const auto file = make_memory_file(
      "a.safetensors", safetensors(R"({"__metadata__":{)" + metadata + R"("a":""}})"));
  EXPECT_TRUE(read_safetensors_header(*file)) << "90 MB for 8 MB: within 16 times";
  std::string tensors;
  for (int i = 0; i < 100'000; ++i) {
    tensors += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  }
  tensors.back() = '}';
  const auto many = make_memory_file("b.safetensors", safetensors("{" + tensors));
  const auto header = read_safetensors_header(*many);
  ASSERT_TRUE(header) << header.error().text();
  EXPECT_EQ(header->tensors.size(), 100'000u);
  EXPECT_EQ(header->tensors.capacity(), 100'000u) << "room is made once";
  // A name that only looks like entries does not make room for them.
  const std::string shape = times(1000, "1,");
  const auto wide = make_memory_file(
      "c.safetensors",
      safetensors(R"({"a":{"dtype":"U8","shape":[)" + shape + R"(0],"data_offsets":[0,0]}})"));
  EXPECT_THAT(read_safetensors_header(*wide).error().message, HasSubstr("more than 64 numbers"));
}

}  // namespace
}  // namespace shardwright
