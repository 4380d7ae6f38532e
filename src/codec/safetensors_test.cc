// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/endian.h"
#include "codec/safetensors_header.h"
#include "io/memory_directory.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string golden_header(const std::string& name) { return read_golden("safetensors/" + name); }

Result<SafetensorsHeader> read(const std::string& bytes) {
  return read_safetensors_header(*make_memory_file("a.safetensors", bytes));
}

/// A file with this header text and as many data bytes.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string out;
  append_le(out, std::uint64_t{header.size()});
  return out + header + std::string(data_bytes, 'd');
}

std::string one(const std::string& fields) { return R"({"t":{)" + fields + "}}"; }

void expect_header_refused(const std::string& bytes, Code code, const std::string& fragment) {
  const auto header = read(bytes);
  ASSERT_FALSE(header.has_value()) << fragment;
  EXPECT_EQ(header.error().code, code) << header.error().message;
  EXPECT_THAT(header.error().message, HasSubstr(fragment));
  EXPECT_THAT(header.error().message, HasSubstr("a.safetensors"));
}

std::vector<TensorDesc> descs_of(const SafetensorsHeader& header) {
  std::vector<TensorDesc> descs;
  for (const SafetensorsTensor& tensor : header.tensors) descs.push_back(tensor.desc);
  return descs;
}

// The reference writer's own file: every type, empty tensors, names that need care.
TEST(SafetensorsLayout, GivesTheBytesOfTheReferenceWriter) {
  for (const char* name : {"mixed.safetensors", "empty.safetensors"}) {
    const std::string bytes = golden_header(name);
    const SafetensorsHeader header = read(bytes).value();
    std::vector<TensorDesc> descs = descs_of(header);
    std::ranges::reverse(descs);  // the result must not depend on the order given
    const SafetensorsLayout layout = layout_safetensors(descs, header.metadata).value();
    EXPECT_TRUE(bytes.starts_with(layout.header)) << name;
    EXPECT_EQ(layout.header.size(), header.data_offset);
    EXPECT_EQ(layout.file_bytes, bytes.size());
    for (std::size_t i = 0; i < descs.size(); ++i) {
      const SafetensorsTensor& tensor = header.tensors[descs.size() - 1 - i];
      EXPECT_EQ(layout.ranges[i].offset, tensor.range.offset);
      EXPECT_EQ(layout.ranges[i].length, tensor.range.length);
    }
  }
  EXPECT_EQ(read(golden_header("mixed.safetensors"))->tensors.size(), 32u);
  const SafetensorsMetadata odd = {{"k\n\t\"\x01\x7f\xc3\xa9", "v\\/\b\f\r"}};
  EXPECT_TRUE(layout_safetensors({}, odd)->header == golden_header("metadata_only.safetensors"));
  EXPECT_EQ(read(golden_header("metadata_only.safetensors"))->metadata, odd);
}

TEST(SafetensorsLayout, CanPutTheDataOnAPage) {
  const TensorDesc desc{"t", DType::kU8, {3}};
  const SafetensorsLayout layout = layout_safetensors(std::span(&desc, 1), {}, 4096).value();
  EXPECT_EQ(layout.ranges[0].offset, 4096u);
  EXPECT_EQ(layout.file_bytes, 4099u);
  EXPECT_TRUE(read(layout.header + "abc"));
  EXPECT_EQ(layout_safetensors({}, {}, 0).error().code, Code::kUsage);
}

TEST(SafetensorsLayout, RefusesWhatTheFormatCannotHold) {
  const auto error_of = [](const TensorDesc& desc) {
    const auto layout = layout_safetensors(std::span(&desc, 1));
    EXPECT_FALSE(layout.has_value());
    return layout ? Error{} : layout.error();
  };
  const Error complex = error_of({"c", DType::kC128, {2}});
  EXPECT_EQ(complex.code, Code::kSafetensorsDtype);
  EXPECT_THAT(complex.message, HasSubstr("tensor c: found complex128"));
  EXPECT_EQ(error_of({"c", DType::kC32, {2}}).code, Code::kSafetensorsDtype);
  EXPECT_EQ(error_of({"f", DType::kF4E2M1X2, {}}).code, Code::kSafetensorsDtype);
  EXPECT_EQ(error_of({"__metadata__", DType::kU8, {}}).code, Code::kUsage);
  EXPECT_EQ(error_of({"a\nb", DType::kU8, {}}).code, Code::kUsage);
  EXPECT_EQ(error_of({"\xff", DType::kU8, {}}).code, Code::kUsage);
  EXPECT_EQ(error_of({"t", DType::kU8, {-1}}).code, Code::kOutOfBounds);
  const std::vector<TensorDesc> twins = {{"t", DType::kU8, {1}}, {"t", DType::kU16, {1}}};
  EXPECT_EQ(layout_safetensors(twins).error().code, Code::kDuplicateName);
  EXPECT_EQ(error_of({std::string(100'000'000, 'n'), DType::kU8, {1}}).code, Code::kLimit);
  const std::int64_t huge = std::int64_t{1} << 62;
  const std::vector<TensorDesc> endless = {{"a", DType::kU8, {huge}},
                                           {"b", DType::kU8, {huge}},
                                           {"c", DType::kU8, {huge}},
                                           {"d", DType::kU8, {huge}}};
  EXPECT_EQ(layout_safetensors(endless).error().code, Code::kLimit);
}

// Each file with the verdict of the reference reader. We never accept what it rejects; what we
// reject beyond that is listed here, with its reason.
TEST(SafetensorsHeader, AgreesWithTheReferenceReader) {
  const std::map<std::string, std::string> stricter = {
      {"leading space", "begin with '{'"},
      {"leading newline", "begin with '{'"},
      {"leading tab", "begin with '{'"},
      {"leading return", "begin with '{'"},
      {"trailing newline", "end with '}' and spaces"},
      {"trailing tab", "end with '}' and spaces"},
      {"trailing return", "end with '}' and spaces"},
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "the name \"t\" twice"},
      {R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("\u0074":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "the name \"t\" twice"},
      {R"({"__metadata__":null,"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "null at"},
      {R"({"__metadata__":{"a":"b","a":"c"},"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "this key again"},
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1}})", "an unknown field"},
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":{"a":[1]}}})",
       "an unknown field"},
      {R"({"t":["F32",[1],[0,4]]})", "an array at"},
      {R"({"t":{"dtype":{"F32":null},"shape":[1],"data_offsets":[0,4]}})", "an object at"},
      {R"({"t":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", "9 axes"},
      {"zero bytes [0,18446744073709551615,18446744073709551615]", "an extent of"},
      {"F4 [2,3] 3", "not a whole number of bytes"},
      {R"({"\u0000":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "control characters"},
      {R"({"\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "control characters"},
      {R"({"\u007f":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "control characters"}};
  const nlohmann::json cases = nlohmann::json::parse(golden_header("verdicts.json"));
  ASSERT_GT(cases.size(), 200u);
  std::set<std::string> met;
  int accepted = 0;
  for (const nlohmann::json& test : cases) {
    const std::string name = test["name"];
    std::string bytes;
    const std::string hex = test["hex"];
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    const auto header = read(bytes);
    accepted += header.has_value();
    const auto listed = stricter.find(name);
    const bool expected = test["reference_accepts"].get<bool>() && listed == stricter.end();
    EXPECT_EQ(header.has_value(), expected) << name << (header ? "" : header.error().message);
    if (header) continue;
    if (listed != stricter.end()) {
      met.insert(name);
      EXPECT_THAT(header.error().message, HasSubstr(listed->second)) << name;
    }
    EXPECT_THAT(header.error().message, ::testing::StartsWith("a.safetensors"));
    const Code code = header.error().code;
    EXPECT_TRUE(code == Code::kSafetensorsCorrupt || code == Code::kSafetensorsDtype ||
                code == Code::kLimit)
        << name;
  }
  EXPECT_EQ(met.size(), stricter.size());
  EXPECT_GE(accepted, 25);
}

TEST(SafetensorsHeader, ReadsWhatTorchMeans) {
  const SafetensorsHeader header = read(golden_header("mixed.safetensors")).value();
  std::map<std::string, SafetensorsTensor> by_name;
  for (const SafetensorsTensor& tensor : header.tensors) by_name[tensor.desc.name] = tensor;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kC32 || dtype == DType::kC128) continue;
    const SafetensorsTensor& tensor = by_name.at(std::string(torch_name(dtype)));
    EXPECT_EQ(tensor.desc.dtype, dtype);
    EXPECT_EQ(tensor.desc.shape, (Dims{2, 3})) << torch_name(dtype);
    EXPECT_EQ(tensor.range.length, static_cast<std::uint64_t>(6 * bytes_of(dtype)));
  }
  EXPECT_EQ(by_name.at("z/scalar").desc.shape, Dims{});
  EXPECT_EQ(by_name.at("empty").desc.shape, (Dims{0, 4}));
  EXPECT_EQ(by_name.at("empty").range.length, 0u);
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, SaysWhatIsWrong) {
  using enum Code;
  expect_header_refused("\1\2\3\4\5\6\7", kSafetensorsCorrupt, "found 7 bytes");
  expect_header_refused(file_of("{}", 0).substr(0, 9), kSafetensorsCorrupt,
                        "found a header of 2 bytes");
  std::string huge;
  append_le(huge, std::uint64_t{100'000'001});
  expect_header_refused(huge + std::string(100'000'001, ' '), kLimit,
                        "found a header of 100000001 bytes");
  expect_header_refused(file_of(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4),
                        kSafetensorsCorrupt,
                        "tensor t: found data_offsets that don't span 8 bytes");
  expect_header_refused(file_of(one(R"("dtype":"F99","shape":[2],"data_offsets":[0,4])"), 4),
                        kSafetensorsDtype, "tensor t: found dtype \"F99\"");
  expect_header_refused(file_of(one(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 5),
                        kSafetensorsCorrupt,
                        "found 5 bytes of data, expected 4 as the header says");
  expect_header_refused(file_of(one(R"("dtype":"U8","shape":[4],"data_offsets":[1,5])"), 5),
                        kSafetensorsCorrupt, "tensor t: found its data at 1, expected it at 0");
  expect_header_refused(file_of(one(R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])"), 4),
                        kSafetensorsCorrupt, "found a negative number at \"t.shape\"");
  expect_header_refused(file_of(one(R"("dtype":"U8","shape":[4])"), 4), kSafetensorsCorrupt,
                        "an entry without dtype, shape or data_offsets");
  expect_header_refused(file_of(R"({"a":1})", 0), kSafetensorsCorrupt, "found a number at \"a\"");
  expect_header_refused(file_of(R"({"a":,})", 0), kSafetensorsCorrupt, "parse error");
  expect_header_refused(file_of(R"({"__metadata__":{"a":1}})", 0), kSafetensorsCorrupt,
                        "a number at \"a\"");
}

TEST(SafetensorsHeader, CutOrFlippedFilesNeverReadDifferently) {
  const std::string good = golden_header("mixed.safetensors");
  const auto describe = [](const std::string& bytes) -> Result<std::string> {
    const SafetensorsHeader header = SW_TRY(read(bytes));
    std::string text;
    std::set<std::string> names;
    for (const SafetensorsTensor& tensor : header.tensors) {
      text += fmt::format("{} {} {} {};", torch_name(tensor.desc.dtype),
                          to_string(tensor.desc.shape), tensor.range.offset, tensor.range.length);
      names.insert(tensor.desc.name);
    }
    EXPECT_EQ(names.size(), header.tensors.size());
    return text;
  };
  const std::string expected = describe(good).value();
  for (std::size_t length = 0; length < good.size(); ++length) {
    ASSERT_FALSE(describe(good.substr(0, length)).has_value()) << length;
  }
  // JSON has no checksum: a flipped letter of a name gives another name, F32 may become I32, and
  // [2,3] may become [3,2]. What must hold is that no tensor's bytes move or change their number.
  const std::uint64_t data = read(good)->data_offset;
  int accepted = 0;
  for (std::size_t position = 0; position < data; ++position) {
    for (const int mask : {0x01, 0x02, 0x10, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[position] = static_cast<char>(bytes[position] ^ mask);
      const auto header = read(bytes);
      if (!header) continue;
      ++accepted;
      std::uint64_t covered = 0;
      for (const SafetensorsTensor& tensor : header->tensors) covered += tensor.range.length;
      ASSERT_EQ(covered + data, good.size()) << position;
      ASSERT_EQ(header->data_offset, data);
    }
  }
  EXPECT_LT(accepted, static_cast<int>(data)) << "most flips are found";
}

RC_GTEST_PROP(Safetensors, WhatIsLaidOutIsReadBack, ()) {
  const auto count = *rc::gen::inRange(0, 8);
  std::vector<TensorDesc> descs;
  for (int i = 0; i < count; ++i) {
    TensorDesc desc;
    desc.name = fmt::format("{}{}", *rc::gen::element("w", "\"", "\\", "\xe5\x90\x8d", "/"), i);
    desc.dtype = *rc::gen::suchThat(
        rc::gen::map(rc::gen::inRange(0, kDTypeCount), [](int n) { return static_cast<DType>(n); }),
        [](DType dtype) { return dtype != DType::kC32 && dtype != DType::kC128; });
    const int axes = *rc::gen::inRange(desc.dtype == DType::kF4E2M1X2 ? 1 : 0, kMaxAxes + 1);
    for (int axis = 0; axis < axes; ++axis) {
      desc.shape.push_back(*rc::gen::inRange<std::int64_t>(0, 4));
    }
    descs.push_back(desc);
  }
  const SafetensorsLayout layout = layout_safetensors(descs, {{"format", "pt"}}).value();
  RC_ASSERT(layout.header.size() % 8 == 0);
  std::string bytes = layout.header;
  bytes.resize(layout.file_bytes);
  const SafetensorsHeader header = read(bytes).value();
  RC_ASSERT(header.tensors.size() == descs.size());
  for (const SafetensorsTensor& tensor : header.tensors) {
    const auto same = std::ranges::find(descs, tensor.desc.name, &TensorDesc::name);
    RC_ASSERT(same != descs.end());
    RC_ASSERT(same->dtype == tensor.desc.dtype);
    RC_ASSERT(same->shape == tensor.desc.shape);
    const ByteRange range = layout.ranges[static_cast<std::size_t>(same - descs.begin())];
    RC_ASSERT(range.offset == tensor.range.offset);
    RC_ASSERT(range.length == tensor.range.length);
  }
}

}  // namespace
}  // namespace shardwright
