// SPDX-License-Identifier: Apache-2.0
#include "dcp/dcp_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "dcp/dcp_metadata_fixture.h"

namespace shardwright::testing_dcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using std::string_literals::operator""s;

// ---- files of the real software ----

const std::vector<std::string> kGolden = {"torch_2.0.1",
                                          "torch_2.6.0",
                                          "torch_2.13.0",
                                          "torch_2.13_plain",
                                          "torch_2.13_fsdp2_uneven",
                                          "torch_2.13_all_dtypes",
                                          "torch_2.13_scalars_empty",
                                          "torch_2.13_planner_paths",
                                          "torch_2.13_transforms",
                                          "torch_2.13_sharded_tensor",
                                          "mcore_0.15.3_model_space",
                                          "mcore_0.16.1_buckets",
                                          "mcore_0.16.1_fsdp_dtensor",
                                          "mcore_0.20_full"};

TEST(DcpMetadataGolden, AgreesWithTheGeneralDecoder) {
  for (const std::string& name : kGolden) {
    const std::string bytes = read_golden("metadata/" + name + ".metadata");
    const auto found = read(bytes);
    ASSERT_TRUE(found) << name << ": " << found.error().text();
    const auto document = pickle::decode(as_bytes(bytes));
    ASSERT_TRUE(document) << name << ": " << document.error().text();
    EXPECT_EQ(lines(*found), slow_lines(*document)) << name;
    EXPECT_FALSE(found->catalog.tensors.empty()) << name;
    EXPECT_THAT(found->torch_obstacles, ::testing::IsEmpty()) << name;
    for (const StoredTensor& tensor : found->catalog.tensors) {
      EXPECT_EQ(tensor.encoding, Encoding::kTorchItem);
    }
  }
}

TEST(DcpMetadataGolden, OrderIsTheFilesOrder) {
  const auto found = read(read_golden("metadata/torch_2.13_plain.metadata"));
  ASSERT_TRUE(found);
  std::vector<std::string> names;
  for (const StoredTensor& tensor : found->catalog.tensors) names.push_back(tensor.desc.name);
  EXPECT_THAT(names, ElementsAre("w", "b", "emb", "n"));
  EXPECT_THAT(found->catalog.files, ElementsAre("__0_0.distcp"));
  EXPECT_EQ(found->root_class, "torch.distributed.checkpoint.metadata.Metadata");
  EXPECT_EQ(found->version, "1.0.0");
  EXPECT_TRUE(found->has_storage_meta);
  EXPECT_TRUE(found->planner_paths.empty()) << "nobody asked for them";
}

TEST(DcpMetadataGolden, OldTorchHasNeitherVersionNorStorageMeta) {
  const auto found = read(read_golden("metadata/torch_2.0.1.metadata"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, std::nullopt);
  EXPECT_FALSE(found->has_storage_meta);
}

TEST(DcpMetadataGolden, OldMegatronHasItsOwnRootAndOriginalShapes) {
  const auto found = read(read_golden("metadata/mcore_0.15.3_model_space.metadata"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->root_class, "megatron.core.dist_checkpointing.strategies.torch.MCoreMetadata");
  ASSERT_EQ(found->original_shapes.size(), 27u);
  EXPECT_EQ(found->original_shapes[0].first, "optimizer.state.exp_avg.output_layer.weight");
  EXPECT_EQ(found->original_shapes[0].second, (Dims{512, 64}));
  // Its ranks' plans have such dicts too.
  const auto whole =
      read(read_golden("metadata/mcore_0.15.3_model_space.metadata"), {.all_parts = true});
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(whole->catalog.tensors.size(), found->catalog.tensors.size());
}

TEST(DcpMetadataGolden, PlannerPathsOnRequest) {
  const auto found =
      read(read_golden("metadata/torch_2.13_planner_paths.metadata"), {.planner_paths = true});
  ASSERT_TRUE(found) << found.error().text();
  std::map<std::string, std::vector<PathStep>> paths;
  for (const PlannerPath& path : found->planner_paths) paths[path.name] = path.path;
  EXPECT_EQ(paths.size(), found->catalog.tensors.size() + found->catalog.objects.size());
  std::size_t with_index = 0;
  for (const auto& [name, path] : paths) {
    std::string joined;
    for (const PathStep& step : path) {
      if (!joined.empty()) joined += '.';
      const auto* key = std::get_if<std::string>(&step);
      joined += key != nullptr ? *key : std::to_string(std::get<std::int64_t>(step));
      with_index += key == nullptr;
    }
    EXPECT_EQ(joined, name);
  }
  EXPECT_GT(with_index, 0u);
}

TEST(DcpMetadataGolden, TransformsAreTold) {
  const auto found = read(read_golden("metadata/torch_2.13_transforms.metadata"));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->transformed.size(), 4u);
  EXPECT_EQ(found->catalog.files[found->transformed[0].file], "__0_0.distcp");
  EXPECT_EQ(found->transformed[0].descriptors.size(), 2u);
  EXPECT_TRUE(read(read_golden("metadata/torch_2.13_plain.metadata"))->transformed.empty());
}

TEST(DcpMetadataGolden, HostileFiles) {
  const std::vector<std::tuple<const char*, Code, const char*>> cases = {
      {"md01_path_traversal", Code::kPathEscapes, "tensor x: found relative_path '../"},
      {"md02_absolute_path", Code::kPathEscapes, "which is absolute"},
      {"md03_negative_offset", Code::kOutOfBounds, "found offset -5"},
      {"md05_size_2e40", Code::kLimit, "more elements than int64 holds"},
      {"md06_negative_size", Code::kOutOfBounds, "of shape (2, -2)"},
      {"md07_offset_overflow", Code::kOutOfBounds, "expected a range of bytes"},
      {"md08_nul_in_path", Code::kPathEscapes, "'f\\x00"},
      {"md09_bigint_size", Code::kOutOfBounds, "tensor x: found an extent beyond int64"},
  };
  for (const auto& [name, code, fragment] : cases) {
    expect_refusal(read_golden("malicious/metadata/"s + name + ".metadata"), code, fragment);
  }
  // A call that torch would run while loading is passed over.
  EXPECT_TRUE(read(read_golden("malicious/metadata/md10_hostile_metadata.metadata")));
  // That a range ends behind its file shows only beside the file.
  EXPECT_TRUE(read(read_golden("malicious/metadata/md04_length_2e62.metadata")));
}

// ---- what is tolerated ----

TEST(DcpMetadata, ReadsHandMadeFilesOfBothProtocols) {
  for (pickle::Protocol protocol : {pickle::Protocol::kTwo, pickle::Protocol::kFour}) {
    Maker maker;
    maker.add_usual();
    const auto found = read(maker.encode(maker.root(), protocol));
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(lines(*found), kUsualLines);
  }
}

TEST(DcpMetadata, TakesTuplesAndListsForSizes) {
  Maker maker;
  const auto list = [&](std::int64_t a, std::int64_t b) {
    const std::vector<Value> elements = {maker.document.integer(a), maker.document.integer(b)};
    return maker.document.list(elements);
  };
  maker.add_tensor("w", maker.tensor(maker.properties("float32"), list(4, 6),
                                     {maker.chunk_of(maker.tuple({0, 0}), maker.tuple({2, 6})),
                                      maker.chunk_of(list(2, 0), list(2, 6))}));
  maker.add_place(maker.index("w", maker.tuple({0, 0})), maker.info("__0_0.distcp", 0, 1600));
  maker.add_place(maker.index("w", list(2, 0)), maker.info("__1_0.distcp", 100, 1601));
  const auto found = read(maker.encode());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(lines(*found), kUsualLines);
  // torch does not: it compares sizes with tuples.
  EXPECT_THAT(found->torch_obstacles, ::testing::ElementsAre(HasSubstr("has lists for sizes")));
}

TEST(DcpMetadata, TellsOnlyWhatTorchFailsOn) {
  Maker usual;
  usual.add_usual();
  EXPECT_THAT(read(usual.encode())->torch_obstacles, ::testing::IsEmpty());
  Maker scalar;
  scalar.add_tensor(
      "s", scalar.tensor(scalar.properties("float32"), scalar.size({}), {scalar.chunk({}, {})}));
  scalar.add_place(scalar.index("s"), scalar.info("__0_0.distcp", 0, 1600));
  EXPECT_THAT(read(scalar.encode())->torch_obstacles,
              ::testing::ElementsAre(HasSubstr("without an offset")));
}

TEST(DcpMetadata, TakesWrongAndMissingHints) {
  for (const std::int64_t hint : {-1, 0, 7, 1 << 30}) {
    Maker maker;
    maker.add_tensor("w", maker.tensor(maker.properties("float32"), maker.size({4, 6}),
                                       {maker.chunk({0, 0}, {2, 6}), maker.chunk({2, 0}, {2, 6})}));
    const Value wrong = maker.document.integer(hint);
    maker.add_place(maker.index("w", maker.size({2, 0}), wrong),
                    maker.info("__1_0.distcp", 100, 1601));
    maker.add_place(maker.index("w", maker.size({0, 0}), wrong),
                    maker.info("__0_0.distcp", 0, 1600));
    const auto found = read(maker.encode());
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(lines(*found), kUsualLines);
  }
}

TEST(DcpMetadata, FindsManyChunksWithoutHints) {
  Maker maker;
  std::vector<Value> chunks;
  for (std::int64_t i = 0; i < 5000; ++i) chunks.push_back(maker.chunk({i, 0}, {1, 6}));
  maker.add_tensor("w", maker.tensor(maker.properties("float32"), maker.size({5000, 6}), chunks));
  for (std::int64_t i = 4999; i >= 0; --i) {
    maker.add_place(maker.index("w", maker.size({i, 0})), maker.info("f", i * 10, 10));
  }
  const auto found = read(maker.encode());
  ASSERT_TRUE(found) << found.error().text();
  const ChunkList& list = found->catalog.tensors[0].chunks;
  ASSERT_EQ(list.size(), 5000u);
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list.range(i).offset, i * 10);
}

TEST(DcpMetadata, TakesObjectsScalarsAndManyAxes) {
  Maker maker;
  maker.add_tensor("scalar",
                   maker.tensor(maker.properties("int64"), maker.size({}), {maker.chunk({}, {})}));
  maker.add_place(maker.index("scalar", maker.size({})), maker.info("f", 0, 10));
  const std::vector<std::int64_t> eight(8, 1);
  const std::vector<std::int64_t> zeros(8, 0);
  maker.add_tensor("wide", maker.tensor(maker.properties("int64"), maker.size(eight),
                                        {maker.chunk(zeros, eight)}));
  maker.add_place(maker.index("wide", maker.size(zeros)), maker.info("f", 10, 20));
  maker.add_tensor("step", maker.object(Maker::kModule, "BytesStorageMetadata"));
  maker.add_place(maker.index("step"), maker.info("g", 30, 40));
  const auto found = read(maker.encode());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_THAT(lines(*found),
              ElementsAre("chunk scalar () () f 0 10",
                          "chunk wide (0, 0, 0, 0, 0, 0, 0, 0) (1, 1, 1, 1, 1, 1, 1, 1) f 10 20",
                          "object step g 30 40", "tensor scalar int64 ()",
                          "tensor wide int64 (1, 1, 1, 1, 1, 1, 1, 1)"));
}

TEST(DcpMetadata, EmptyChunksNeedNoEntry) {
  Maker maker;
  maker.add_tensor("w", maker.tensor(maker.properties("float32"), maker.size({4, 6}),
                                     {maker.chunk({0, 0}, {4, 6}), maker.chunk({4, 0}, {0, 6}),
                                      maker.chunk({0, 0}, {0, 6})}));
  maker.add_place(maker.index("w", maker.size({0, 0}), maker.document.integer(2)),
                  maker.info("f", 0, 10));
  const auto found = read(maker.encode());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_THAT(lines(*found), ElementsAre("chunk w (0, 0) (4, 6) f 0 10", "tensor w float32 (4, 6)"))
      << "the entry belongs to the chunk that has elements, whatever the hint says";
}

TEST(DcpMetadata, EmptyChunkAtTheEndMayHaveAnEntry) {
  Maker maker;
  maker.add_tensor("w", maker.tensor(maker.properties("float32"), maker.size({4}),
                                     {maker.chunk({0}, {4}), maker.chunk({4}, {0})}));
  maker.add_place(maker.index("w", maker.size({0})), maker.info("f", 0, 10));
  maker.add_place(maker.index("w", maker.size({4})), maker.info("g", 0, 10));
  const auto found = read(maker.encode());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->catalog.tensors[0].chunks.size(), 2u);
}

TEST(DcpMetadata, RepeatedChunksShareTheirPlace) {
  Maker maker;
  maker.add_tensor("w", maker.tensor(maker.properties("float32"), maker.size({4}),
                                     {maker.chunk({0}, {4}), maker.chunk({0}, {4})}));
  maker.add_place(maker.index("w", maker.size({0})), maker.info("f", 7, 10));
  const auto found = read(maker.encode());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_THAT(lines(*found), ElementsAre("chunk w (0,) (4,) f 7 10", "chunk w (0,) (4,) f 7 10",
                                         "tensor w float32 (4,)"));
}

TEST(DcpMetadata, OneChunkNeedsNoOffset) {
  Maker maker;
  maker.add_tensor(
      "w", maker.tensor(maker.properties("float32"), maker.size({4}), {maker.chunk({0}, {4})}));
  maker.add_place(maker.index("w"), maker.info("f", 7, 10));
  EXPECT_TRUE(read(maker.encode()));
}

TEST(DcpMetadata, TakesUnknownStorageInfoWithTheThreeAttributes) {
  Maker maker;
  maker.add_tensor(
      "w", maker.tensor(maker.properties("float32"), maker.size({4}), {maker.chunk({0}, {4})}));
  const Value info = maker.info("f", 7, 10, "SomeOtherInfo");
  maker.document.set_attribute(info, "etag", maker.document.string("abc"));
  maker.add_place(maker.index("w", maker.size({0})), info);
  EXPECT_TRUE(read(maker.encode()));
}

TEST(DcpMetadata, TakesPropertiesOfEveryTorch) {
  for (const char* module : {Maker::kModule, "torch.distributed._shard.sharded_tensor.metadata"}) {
    for (const bool by_getattr : {false, true}) {
      Maker maker;
      Document& document = maker.document;
      const Value properties = maker.object(module, "TensorProperties");
      const Value encoding = document.global(module, "MEM_FORMAT_ENCODING");
      const Value format =
          by_getattr ? document.reduce(
                           document.global("builtins", "getattr"),
                           document.tuple({encoding, document.string("TORCH_CONTIGUOUS_FORMAT")}))
                     : document.reduce(encoding, document.tuple({document.integer(0)}));
      const Value layout = document.reduce(document.global("torch.serialization", "_get_layout"),
                                           document.tuple({document.string("torch.strided")}));
      const std::vector<Value> state = {document.global("torch", "float32"), layout,
                                        document.boolean(false), format, document.boolean(false)};
      document.set_state(properties, document.tuple(state));
      maker.add_tensor("w", maker.tensor(properties, maker.size({4}), {maker.chunk({0}, {4})}));
      maker.add_place(maker.index("w", maker.size({0})), maker.info("f", 7, 10));
      EXPECT_TRUE(read(maker.encode()));
    }
  }
}

// Each generation of torch compares with the members of its own enum.
TEST(DcpMetadata, TellsGenerationsOfTorchThatAreMixed) {
  const std::string newer = Maker::kModule;
  const std::string older = "torch.distributed._shard.sharded_tensor.metadata";
  struct Row {
    std::string properties;
    std::pair<std::string, std::string> format;
    const char* told;
  };
  const std::vector<Row> rows = {
      {newer, {newer, "_MEM_FORMAT_ENCODING"}, nullptr},
      {older, {older, "MEM_FORMAT_ENCODING"}, nullptr},
      {newer, {older, "MEM_FORMAT_ENCODING"}, "only torch 2.0 to 2.2 loads"},
      {older, {newer, "_MEM_FORMAT_ENCODING"}, "no torch loads"},
      {newer, {newer, "MEM_FORMAT_ENCODING"}, "five values that torch wants"},
      {newer, {"", ""}, "five values that torch wants"}};
  for (const Row& row : rows) {
    for (const bool by_getattr : {false, true}) {
      Maker maker;
      Document& document = maker.document;
      const Value properties = maker.object(row.properties.c_str(), "TensorProperties");
      const auto& [module, name] = row.format;
      Value format = document.integer(0);
      if (!module.empty() && by_getattr) {
        const std::vector<Value> member = {document.global(module, name),
                                           document.string("TORCH_CONTIGUOUS_FORMAT")};
        format = document.reduce(document.global("builtins", "getattr"), document.tuple(member));
      } else if (!module.empty()) {
        format =
            document.reduce(document.global(module, name), document.tuple({document.integer(0)}));
      }
      const Value layout = document.reduce(document.global("torch.serialization", "_get_layout"),
                                           document.tuple({document.string("torch.strided")}));
      const std::vector<Value> state = {document.global("torch", "float32"), layout,
                                        document.boolean(false), format, document.boolean(false)};
      document.set_state(properties, document.tuple(state));
      for (const char* const tensor : {"w", "v"}) {
        maker.add_tensor(tensor,
                         maker.tensor(properties, maker.size({4}), {maker.chunk({0}, {4})}));
        maker.add_place(maker.index(tensor, maker.size({0})), maker.info("f", 7, 10));
      }
      const auto found = read(maker.encode());
      ASSERT_TRUE(found) << found.error().text();
      if (row.told == nullptr) {
        EXPECT_THAT(found->torch_obstacles, ::testing::IsEmpty());
      } else {
        EXPECT_THAT(found->torch_obstacles, ::testing::ElementsAre(HasSubstr(row.told)));
      }
    }
  }
}

TEST(DcpMetadata, TakesAnyOrderOfAttributesAndForeignOnes) {
  Maker maker;
  maker.add_usual();
  Document& document = maker.document;
  const Value root = maker.object("my.fork", "BetterMetadata");
  const Value path = document.reduce(document.global("pathlib._local", "PosixPath"),
                                     document.tuple({document.string("/a/b")}));
  const Value meta = maker.object(Maker::kModule, "StorageMeta");
  document.set_attribute(meta, "checkpoint_id", path);
  document.set_attribute(meta, "size", document.dict());
  document.set_attribute(root, "storage_meta", meta);
  document.set_attribute(root, "storage_data", maker.storage);
  document.set_attribute(
      root, "weights",
      document.reduce(document.global("os", "system"), document.tuple({document.string("ls")})));
  document.set_attribute(root, "state_dict_metadata", maker.tensors);
  const auto found = read(maker.encode(root));
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(lines(*found), kUsualLines);
  EXPECT_EQ(found->root_class, "my.fork.BetterMetadata");
  EXPECT_TRUE(found->has_storage_meta);
}

TEST(DcpMetadata, AnEmptyCheckpointIsFine) {
  Maker maker;
  const auto found = read(maker.encode());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_TRUE(found->catalog.tensors.empty());
}

TEST(DcpMetadata, TensorsMayHaveTheNamesOfAttributes) {
  for (const char* name : {"size", "offset", "state_dict_metadata", "fqn", "storage_data"}) {
    Maker maker;
    maker.add_usual(name);
    const auto found = read(maker.encode());
    ASSERT_TRUE(found) << name << found.error().text();
    EXPECT_EQ(found->catalog.tensors[0].desc.name, name);
  }
}

// ---- Megatron's all_local_plans ----

// Plans share the chunks, as Megatron's do.
Value plans_for(Maker& maker, std::size_t count) {
  Document& document = maker.document;
  const Value plans = document.list();
  for (std::size_t i = 0; i < count; ++i) {
    const Value item = maker.object("torch.distributed.checkpoint.planner", "WriteItem");
    document.set_attribute(item, "index", maker.index("w", maker.size({2, 0})));
    document.set_attribute(item, "chunk", maker.tensors.value(0).attribute("chunks")[0]);
    document.append(plans, item);
  }
  return plans;
}

TEST(DcpMetadata, LocalPlansChangeNothing) {
  for (const std::size_t count : {0u, 1u, 2u, 3000u}) {
    for (const bool last : {true, false}) {
      Maker maker;
      maker.add_usual();
      const Value root = maker.root();
      maker.document.set_attribute(root, "all_local_plans", plans_for(maker, count));
      if (!last) {
        const Value shape = maker.document.dict();
        maker.document.set(shape, "nd_reformulated_orig_global_shape", maker.tuple({9, 9}));
        const Value data = maker.document.dict();
        maker.document.set(data, "w", shape);
        maker.document.set_attribute(root, "mcore_data", data);
      }
      const auto found = read(maker.encode(root));
      ASSERT_TRUE(found) << found.error().text();
      EXPECT_EQ(lines(*found), kUsualLines);
      EXPECT_EQ(found->original_shapes.size(), last ? 0u : 1u);
    }
  }
}

TEST(DcpMetadata, LocalPlansMayComeFirst) {
  Maker maker;
  maker.add_usual();
  const Value root = maker.object(Maker::kModule, "Metadata");
  maker.document.set_attribute(root, "all_local_plans", plans_for(maker, 2));
  maker.document.set_attribute(root, "state_dict_metadata", maker.tensors);
  maker.document.set_attribute(root, "storage_data", maker.storage);
  const auto found = read(maker.encode(root));
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(lines(*found), kUsualLines);
}

// More attributes in a second SETITEMS, one of which is an object that only the plans set.
TEST(DcpMetadata, WhatThePlansSetMayBeFetchedLater) {
  Maker maker;
  maker.add_usual();
  const Value root = maker.root();
  maker.document.set_attribute(root, "all_local_plans", plans_for(maker, 2));
  std::string bytes = maker.encode(root);
  ASSERT_TRUE(bytes.ends_with("ub."));
  const std::size_t memo = static_cast<std::size_t>(std::ranges::count(bytes, '\x94'));
  ASSERT_LT(memo, 256u);
  // In front of the list's MARK a string is put, and behind the attributes it is the version.
  const std::size_t list = bytes.rfind("](");
  ASSERT_NE(list, std::string::npos);
  bytes.insert(list + 2,
               "\x8c\x03"
               "9.9\x94");
  std::size_t slot = 0;
  pickle::SpanInput input(as_bytes(bytes));
  pickle::Tokenizer tokens(input, {});
  pickle::Token token;
  while (tokens.next(token) && token.text != "9.9") slot += token.op == pickle::Op::kMemoize;
  bytes.resize(bytes.size() - 3);
  bytes += "u(\x8c\x07versionh"s + static_cast<char>(slot) + "ub.";
  const auto found = read(bytes);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(lines(*found), kUsualLines);
  EXPECT_EQ(found->version, "9.9");
}

}  // namespace
}  // namespace shardwright::testing_dcp
