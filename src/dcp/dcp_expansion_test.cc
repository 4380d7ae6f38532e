// SPDX-License-Identifier: Apache-2.0
// A `.metadata` that says something once and means it many times.
#include "dcp/dcp_metadata_fixture.h"

namespace shardwright::testing_dcp {
namespace {

constexpr int kManyTensors = 1500;

// Chunks of one element that lie in a row.
Value list_of_chunks(Maker& make, std::int64_t count) {
  std::vector<Value> chunks;
  for (std::int64_t i = 0; i < count; ++i) chunks.push_back(make.chunk({i}, {1}));
  return make.document.list(chunks);
}

Value tensor_of(Maker& make, Value properties, Value size, Value chunks) {
  const Value made = make.object(Maker::kModule, "TensorStorageMetadata");
  make.document.set_attribute(made, "properties", properties);
  make.document.set_attribute(made, "size", size);
  make.document.set_attribute(made, "chunks", chunks);
  return made;
}

TEST(DcpExpansion, OneListOfChunksInManyTensors) {
  Maker make;
  const Value properties = make.properties("float32");
  const Value size = make.size({3000});
  const Value chunks = list_of_chunks(make, 3000);
  for (int i = 0; i < kManyTensors; ++i) {
    make.add_tensor(std::to_string(i), tensor_of(make, properties, size, chunks));
  }
  expect_refusal(make.encode(), Code::kLimit, "its shared lists of chunks expand to more than");
}

TEST(DcpExpansion, OneTensorUnderManyNames) {
  Maker make;
  const Value shared =
      tensor_of(make, make.properties("float32"), make.size({3000}), list_of_chunks(make, 3000));
  for (int i = 0; i < kManyTensors; ++i) make.add_tensor(std::to_string(i), shared);
  expect_refusal(make.encode(), Code::kLimit, "its shared lists of chunks expand to more than");
}

TEST(DcpExpansion, OneChunkManyTimesInAList) {
  Maker make;
  const std::vector<std::int64_t> ones(8, 1);
  const Value chunk = make.chunk(std::vector<std::int64_t>(8, 0), ones);
  make.add_tensor("w", make.tensor(make.properties("float32"), make.size(ones), {chunk, chunk}));
  std::string bytes = make.encode(make.root(), pickle::Protocol::kTwo);
  // BINGET of the chunk, APPENDS: it is fetched again and again.
  std::size_t at = bytes.rfind('e');
  while (at != std::string::npos && bytes[at - 2] != 'h') at = bytes.rfind('e', at - 1);
  ASSERT_NE(at, std::string::npos);
  std::string fetches;
  for (int i = 0; i < 600'000; ++i) fetches += bytes.substr(at - 2, 2);
  bytes.insert(at, fetches);
  expect_refusal(bytes, Code::kLimit, "its lists expand to more than");
}

TEST(DcpExpansion, OneLongTextInManyPaths) {
  Maker make;
  make.add_usual();
  const std::string text(100'000, 'x');
  const Value paths = make.document.dict();
  for (int i = 0; i < kManyTensors; ++i) {
    make.document.add_pair(
        paths, make.document.string(std::to_string(i)),
        make.document.tuple({make.document.string("a"), make.document.string(text)}));
  }
  // The Maker's long strings are no shared nodes: make one.
  const Value shared = make.document.string(text);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    make.document.set_element(paths.value(i), 1, shared);
  }
  const Value root = make.root();
  make.document.set_attribute(root, "planner_data", paths);
  const std::string bytes = make.encode(root);
  ASSERT_LT(bytes.size(), 200'000u);
  EXPECT_TRUE(read(bytes)) << "paths are passed over where nobody asks for them";
  const auto found = read(bytes, {.planner_paths = true});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kLimit);
  EXPECT_THAT(found.error().message, ::testing::HasSubstr("its planner paths expand"));
}

TEST(DcpExpansion, OneListOfExtensionsInManyEntries) {
  Maker make;
  make.add_tensor("w", make.tensor(make.properties("float32"), make.size({kManyTensors}), {}));
  const Value tensor = make.tensors.value(0);
  make.document.set_attribute(tensor, "chunks", list_of_chunks(make, kManyTensors));
  std::vector<Value> descriptors(3000, make.document.string("stream.zstd/1"));
  const Value list = make.document.list(descriptors);
  for (int i = 0; i < kManyTensors; ++i) {
    const Value info = make.info("__0_0.distcp", 0, 100);
    make.document.set_attribute(info, "transform_descriptors", list);
    make.add_place(make.index("w", make.size({i}), make.document.integer(i)), info);
  }
  expect_refusal(make.encode(), Code::kLimit, "its transform_descriptors expand to more than");
}

TEST(DcpExpansion, ValuesThatNobodyCollects) {
  for (const char* value : {"]", "}"}) {
    std::string bytes = "\x80\x04(";
    bytes.append(900'000, *value);
    bytes += "t.";
    expect_refusal(bytes, Code::kLimit, "its values expand to more than");
  }
}

TEST(DcpExpansion, DefectsAreCountedWhenAllAreCollected) {
  Maker make;
  const Value properties = make.properties("float32");
  const Value size = make.size({1});
  const Value chunks = list_of_chunks(make, 1000);
  for (int i = 0; i < 400; ++i) {
    make.add_tensor(std::to_string(i), tensor_of(make, properties, size, chunks));
  }
  Defects defects(Defects::Policy::kCollect);
  const auto found = read(make.encode(), {.defects = &defects});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kLimit);
}

TEST(DcpExpansion, ARealListOfAHundredThousandChunksIsRead) {
  Maker make;
  std::vector<Value> chunks;
  constexpr std::int64_t kCount = 100'000;
  for (std::int64_t i = 0; i < kCount; ++i) {
    chunks.push_back(make.chunk({i, 0}, {1, 8}));
    make.add_place(make.index("w", make.size({i, 0}), make.document.integer(i)),
                   make.info("__0_0.distcp", i * 100, 100));
  }
  make.add_tensor("w", make.tensor(make.properties("float32"), make.size({kCount, 8}), chunks));
  const auto found = read(make.encode());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->catalog.tensors[0].chunks.size(), 100'000u);
}

}  // namespace
}  // namespace shardwright::testing_dcp
