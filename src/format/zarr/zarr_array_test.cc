// SPDX-License-Identifier: Apache-2.0
#include "format/zarr/zarr_array.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "format/nothing_stored.h"
#include "shardwright/checkpoint.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::HasSubstr;
using ZarrJson = nlohmann::json;

// Five rows of three, in chunks of two by two.
ZarrJson uneven_array(const ZarrJson& changed = ZarrJson::object()) {
  ZarrJson json = {{"zarr_format", 2}, {"shape", {5, 3}},       {"chunks", {2, 2}},
                   {"dtype", "<f4"},   {"compressor", nullptr}, {"filters", nullptr},
                   {"order", "C"},     {"fill_value", nullptr}};
  json.update(changed);
  return json;
}

TEST(ZarrArray, HasAGridOfChunksInFiles) {
  const ZarrArray array = parse_zarray(uneven_array().dump(), "w/.zarray").value();
  EXPECT_EQ(array.dtype, DType::kF32);
  EXPECT_EQ(array.grid(), (Dims{3, 2}));
  EXPECT_EQ(array.file_of({2, 1}), "2.1");
  EXPECT_EQ(array.place_of("2.1"), (Dims{2, 1}));
  EXPECT_EQ(array.box_of({2, 1}), (Box{{4, 2}, {1, 1}}));
  EXPECT_EQ(array.strides(), (Dims{2, 1}));
  for (const char* name : {"3.0", "0.2", "0", "0.0.0", "0.", "-1.0", "0.1x", "00.1", "0.01", "0:1",
                           "0.1.", ".zarray", ""}) {
    EXPECT_FALSE(array.place_of(name)) << name;
  }
  const auto columns = parse_zarray(uneven_array({{"order", "F"}}).dump(), "w").value();
  EXPECT_EQ(columns.strides(), (Dims{1, 2}));
  const ZarrJson scalar = {{"shape", ZarrJson::array()}, {"chunks", ZarrJson::array()}};
  const auto one = parse_zarray(uneven_array(scalar).dump(), "w").value();
  EXPECT_EQ(one.file_of({}), "0");
  EXPECT_TRUE(one.place_of("0"));
  EXPECT_FALSE(one.place_of("1"));
  EXPECT_EQ(parse_zarray(uneven_array({{"dtype", "bfloat16"}}).dump(), "w")->dtype, DType::kBF16);
}

TEST(ZarrArray, WhatIsNotPlainIsRefused) {
  const auto refused = [](const ZarrJson& changed) {
    const auto array = parse_zarray(uneven_array(changed).dump(), "w/.zarray");
    return array ? "accepted" : array.error().text();
  };
  EXPECT_THAT(refused({{"zarr_format", 3}}), HasSubstr("found zarr_format 3, expected 2"));
  EXPECT_THAT(refused({{"compressor", {{"id", "blosc"}}}}),
              HasSubstr("SW0301]: w/.zarray: chunks"));
  EXPECT_THAT(refused({{"filters", {{{"id", "delta"}}}}}), HasSubstr("with a filters"));
  EXPECT_THAT(refused({{"dimension_separator", "/"}}), HasSubstr("expected a dot"));
  EXPECT_THAT(refused({{"dtype", ">f4"}}), HasSubstr("found the dtype \">f4\""));
  EXPECT_THAT(refused({{"dtype", 4}}), HasSubstr("found the dtype 4"));
  EXPECT_THAT(refused({{"shape", {5, -3}}}), HasSubstr("found -3, expected a number from 0"));
  EXPECT_THAT(refused({{"chunks", {2, 0}}}), HasSubstr("found 0, expected a number from 1"));
  EXPECT_THAT(refused({{"chunks", {2}}}), HasSubstr("chunks of 1 axes, expected 2"));
  EXPECT_THAT(refused({{"chunks", 2}}), HasSubstr("chunks is no list"));
  EXPECT_THAT(refused({{"shape", std::vector<int>(9, 1)}}), HasSubstr("9 axes, limit 8"));
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_THAT(refused({{"shape", {huge, huge}}}), HasSubstr("error["));
  EXPECT_FALSE(parse_zarray("[]", "w"));
}

std::string floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

// The array's rows are 0 1 2, 3 4 5 and so on; what lies behind its ends is 99.
void put_uneven_array(const TemporaryFolder& place) {
  place.put("metadata.json", R"({"sharded_backend": "zarr", "sharded_backend_version": 1})");
  place.put("w/.zarray", uneven_array().dump());
  place.put("w/0.0", floats({0, 1, 3, 4}));
  place.put("w/0.1", floats({2, 99, 5, 99}));
  place.put("w/1.0", floats({6, 7, 9, 10}));
  place.put("w/1.1", floats({8, 99, 11, 99}));
  place.put("w/2.0", floats({12, 13, 99, 99}));
  place.put("w/2.1", floats({14, 99, 99, 99}));
  place.put("w._extra_state/shard_0_1.pt", "x");
}

TEST(Zarr, ChunksAreWhereTheirNamesSay) {
  const TemporaryFolder place;
  put_uneven_array(place);
  const Checkpoint opened = open_checkpoint(place.path().string()).value();
  EXPECT_EQ(opened.location.format, "zarr");
  ASSERT_EQ(opened.catalog.tensors.size(), 1u);
  const StoredTensor& tensor = opened.catalog.tensors[0];
  EXPECT_EQ(tensor.desc.name, "w");
  EXPECT_EQ(tensor.desc.shape, (Dims{5, 3}));
  EXPECT_TRUE(check_coverage(tensor));
  ASSERT_EQ(tensor.chunks.size(), 6u);
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Chunk chunk = tensor.chunks[i];
    if (opened.catalog.files[chunk.file] == "w/0.1") {
      EXPECT_EQ(chunk.box, (Box{{0, 2}, {2, 1}}));
      EXPECT_EQ(chunk.strides, (Dims{2, 1}));
      EXPECT_EQ(chunk.range.length, 3 * sizeof(float));
    }
    if (opened.catalog.files[chunk.file] == "w/2.0") {
      EXPECT_EQ(chunk.box, (Box{{4, 0}, {1, 2}}));
      EXPECT_EQ(chunk.range.length, 2 * sizeof(float));
    }
  }
  ASSERT_EQ(opened.catalog.objects.size(), 1u);
  EXPECT_EQ(opened.catalog.objects[0].name, "w._extra_state/shard_0_1");
}

TEST(Zarr, IsNothingToMegatronWithoutItsCommonState) {
  const TemporaryFolder place;
  put_uneven_array(place);
  const Checkpoint opened = open_checkpoint(place.path().string()).value();
  EXPECT_THAT(check_common_state(opened).error().text(), HasSubstr("common.pt: missing"));
}

TEST(Zarr, LostAndCutChunksAreNamed) {
  const auto refused = [](const std::function<void(const TemporaryFolder&)>& damage) {
    const TemporaryFolder place;
    put_uneven_array(place);
    damage(place);
    const auto opened = open_checkpoint(place.path().string());
    return opened ? "accepted" : opened.error().text();
  };
  const auto remove = [](const std::string& name) {
    return [name](const TemporaryFolder& place) { std::filesystem::remove(place / name); };
  };
  EXPECT_THAT(refused(remove("w/1.1")),
              HasSubstr("w: found files of 5 chunks, expected 6; 1.1 is the first"));
  EXPECT_THAT(refused(remove("w/0.0")), HasSubstr("0.0 is the first that is missing"));
  EXPECT_THAT(refused(remove("w/.zarray")),
              HasSubstr("w: chunks are here (0.0 is the first), but no .zarray; copy it again"));
  // Locks of ranks that wrote to one chunk are left behind.
  const auto put_locks = [](const std::string& text) {
    return [text](const TemporaryFolder& place) {
      place.put("w.sync/.zarray", "");
      place.put("w.sync/0.0", text);
    };
  };
  EXPECT_EQ(refused(put_locks("")), "accepted");
  EXPECT_THAT(refused(put_locks("locked")), HasSubstr("w.sync/.zarray: this file is empty"));
  EXPECT_THAT(refused([](const TemporaryFolder& place) { place.put("w/0.1", "short"); }),
              HasSubstr("w/0.1: found 5 bytes, expected 16; it was cut"));
  // Of a grid that no disk holds nothing is listed.
  EXPECT_THAT(refused([](const TemporaryFolder& place) {
                place.put("w/.zarray",
                          uneven_array({{"shape", {1'000'000'000, 1'000'000'000}}}).dump());
              }),
              HasSubstr("found files of 6 chunks, expected 250000000000000000"));
}

}  // namespace
}  // namespace shardwright
