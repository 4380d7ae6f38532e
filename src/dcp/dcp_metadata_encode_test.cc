// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "dcp/dcp_metadata_fixture.h"
#include "io/memory_directory.h"
#include "io/recording_directory.h"

namespace shardwright::testing_dcp {
namespace {

DcpMetadata written_and_read(const Catalog& catalog) {
  const auto bytes = encode_dcp_metadata(catalog);
  EXPECT_TRUE(bytes) << bytes.error().text();
  auto found = read(*bytes);
  EXPECT_TRUE(found) << found.error().text();
  return found ? *std::move(found) : DcpMetadata();
}

TEST(DcpMetadataEncode, GoldenCatalogsSurvive) {
  for (const char* name : {"torch_2.13_all_dtypes", "torch_2.13_scalars_empty", "mcore_0.20_full",
                           "mcore_0.16.1_fsdp_dtensor", "torch_2.0.1"}) {
    const auto original = read(read_golden(std::string("metadata/") + name + ".metadata"));
    ASSERT_TRUE(original) << name;
    const DcpMetadata again = written_and_read(original->catalog);
    EXPECT_EQ(lines(*original), lines(again)) << name;
    EXPECT_EQ(*encode_dcp_metadata(original->catalog), *encode_dcp_metadata(again.catalog)) << name;
  }
}

TEST(DcpMetadataEncode, UsesOnlyNamesThatEveryTorchHas) {
  const auto original = read(read_golden("metadata/mcore_0.20_full.metadata"));
  ASSERT_TRUE(original);
  const std::string bytes = *encode_dcp_metadata(original->catalog);
  const auto document = pickle::decode(as_bytes(bytes));
  ASSERT_TRUE(document) << document.error().text();
  std::set<std::string> globals;
  for (std::uint32_t id = 0; id < document->node_count(); ++id) {
    const Value node = document->at(id);
    if (node.is(Kind::kGlobal)) globals.insert(fmt::format("{}.{}", node.module(), node.name()));
  }
  const std::string metadata = "torch.distributed.checkpoint.metadata.";
  const std::string old = "torch.distributed._shard.sharded_tensor.metadata.";
  EXPECT_THAT(globals,
              ::testing::UnorderedElementsAre(
                  metadata + "Metadata", metadata + "TensorStorageMetadata",
                  metadata + "BytesStorageMetadata", metadata + "ChunkStorageMetadata",
                  metadata + "MetadataIndex", old + "TensorProperties", old + "MEM_FORMAT_ENCODING",
                  "torch.distributed.checkpoint.filesystem._StorageInfo", "torch.Size",
                  "torch.serialization._get_layout", "torch.bfloat16", "torch.float32"));
  const Value state = document->root().state();
  ASSERT_EQ(state.size(), 3u);
  EXPECT_TRUE(state.find("planner_data").is_none());
  EXPECT_EQ(bytes.substr(0, 2), "\x80\x04");
  EXPECT_EQ(slow_lines(*document), lines(*original));
}

TEST(DcpMetadataEncode, VersionOnRequest) {
  const auto bytes = encode_dcp_metadata({}, {.version = "1.0.0"});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(read(*bytes)->version, "1.0.0");
  EXPECT_EQ(read(*encode_dcp_metadata({}))->version, std::nullopt);
}

TEST(DcpMetadataEncode, HintsArePositionsAndObjectsHaveNoOffset) {
  Catalog catalog;
  catalog.files = {"f"};
  StoredTensor tensor{{"w", DType::kF32, {4}}, ChunkList(1), Encoding::kTorchItem};
  tensor.chunks.push_back({Box{{2}, {2}}, 0, {0, 5}, {}});
  tensor.chunks.push_back({Box{{0}, {2}}, 0, {5, 5}, {}});
  catalog.tensors.push_back(tensor);
  catalog.objects.push_back({"step", 0, {10, 5}});
  const std::string bytes = *encode_dcp_metadata(catalog);
  const auto document = pickle::decode(as_bytes(bytes));
  ASSERT_TRUE(document);
  const Value storage = document->root().attribute("storage_data");
  ASSERT_EQ(storage.size(), 3u);
  EXPECT_EQ(storage.key(0).attribute("index").as_int(), 0);
  EXPECT_EQ(storage.key(1).attribute("index").as_int(), 1);
  EXPECT_EQ(dims_of(storage.key(1).attribute("offset")), (Dims{0}));
  EXPECT_TRUE(storage.key(2).attribute("index").is_none());
  EXPECT_FALSE(storage.key(2).attribute("offset"));
  EXPECT_EQ(storage.value(2).state().size(), 3u) << "no transform_descriptors";
}

TEST(DcpMetadataEncode, RefusesChunksWithoutAFile) {
  Catalog catalog;
  StoredTensor tensor{{"w", DType::kF32, {4}}, ChunkList(1), Encoding::kTorchItem};
  tensor.chunks.push_back({Box{{0}, {4}}, 0, {0, 5}, {}});
  catalog.tensors.push_back(tensor);
  const auto bytes = encode_dcp_metadata(catalog);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::kInternal);
  catalog.files = {"f"};
  EXPECT_TRUE(encode_dcp_metadata(catalog));
  catalog.tensors[0].chunks.set_location(0, 0, {std::uint64_t{1} << 63, 5});
  EXPECT_FALSE(encode_dcp_metadata(catalog));
}

TEST(DcpMetadataEncode, RefusesNamesThatAreThereTwice) {
  Catalog catalog;
  catalog.files = {"f"};
  catalog.tensors.push_back({{"w", DType::kF32, {4}}, ChunkList(1), Encoding::kTorchItem});
  catalog.objects.push_back({"step", 0, {10, 5}});
  EXPECT_TRUE(encode_dcp_metadata(catalog));
  const auto expect_refused = [](const Catalog& twice, const std::string& name) {
    const auto bytes = encode_dcp_metadata(twice);
    ASSERT_FALSE(bytes) << name;
    EXPECT_EQ(bytes.error().code, Code::kInternal);
    EXPECT_THAT(bytes.error().message, ::testing::HasSubstr("two entries " + name));
  };
  Catalog twice = catalog;
  twice.tensors.push_back(twice.tensors[0]);
  expect_refused(twice, "w");
  twice = catalog;
  twice.objects.push_back(twice.objects[0]);
  expect_refused(twice, "step");
  twice = catalog;
  twice.objects[0].name = "w";
  expect_refused(twice, "w");
}

TEST(DcpMetadataEncode, RepeatedChunksHaveOneEntry) {
  Catalog catalog;
  catalog.files = {"f", "g"};
  StoredTensor tensor{{"w", DType::kF32, {4}}, ChunkList(1), Encoding::kTorchItem};
  tensor.chunks.push_back({Box{{2}, {2}}, 0, {0, 5}, {}});
  tensor.chunks.push_back({Box{{0}, {2}}, 0, {5, 5}, {}});
  tensor.chunks.push_back({Box{{2}, {2}}, 0, {0, 5}, {}});
  catalog.tensors.push_back(tensor);
  DcpMetadata expected;
  expected.catalog = catalog;
  EXPECT_EQ(lines(written_and_read(catalog)), lines(expected));
  catalog.tensors[0].chunks.set_location(2, 1, {0, 5});
  const auto refused = encode_dcp_metadata(catalog);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOverlap);
}

// Bigger than the reader's window, and more than one SETITEMS batch of everything.
TEST(DcpMetadataEncode, ManyChunksSurvive) {
  Catalog catalog;
  for (int rank = 0; rank < 300; ++rank)
    catalog.files.push_back(fmt::format("__{}_0.distcp", rank));
  for (int number = 0; number < 70; ++number) {
    const std::string name = fmt::format("decoder.layers.{}.mlp.weight", number);
    const std::int64_t chunks = number == 0 ? 2500 : 300;
    StoredTensor tensor{
        {name, DType::kBF16, {chunks * 4, 1 << 20, 1, 2, 3}}, ChunkList(5), Encoding::kTorchItem};
    for (std::int64_t i = 0; i < chunks; ++i) {
      tensor.chunks.push_back({Box{{i * 4, 0, 0, 0, 0}, {4, 1 << 20, 1, 2, 3}},
                               static_cast<std::uint32_t>(i % 300),
                               {static_cast<std::uint64_t>(number) << 31, 25'000'000},
                               {}});
    }
    catalog.tensors.push_back(std::move(tensor));
  }
  for (int i = 0; i < 1500; ++i) {
    catalog.objects.push_back({fmt::format("object/{}", i), 7, {0, 1}});
  }
  const std::string bytes = *encode_dcp_metadata(catalog);
  EXPECT_GT(bytes.size(), 2u << 20);
  const auto found = read(bytes);
  ASSERT_TRUE(found) << found.error().text();
  DcpMetadata expected;
  expected.catalog = catalog;
  EXPECT_EQ(lines(*found), lines(expected));
  EXPECT_EQ(*encode_dcp_metadata(found->catalog), bytes);
  // Its passes ask a server once in all.
  MemoryDirectory folder;
  folder.put(".metadata", bytes);
  RecordingDirectory recorded(folder, true);
  const auto of_server = read_dcp_metadata(*recorded.open(".metadata").value());
  ASSERT_TRUE(of_server) << of_server.error().text();
  EXPECT_EQ(lines(*of_server), lines(expected));
  EXPECT_EQ(recorded.records().at(".metadata").reads.size(), 1u);
}

RC_GTEST_PROP(DcpMetadataEncode, AnyCatalogSurvives, ()) {
  Catalog catalog;
  catalog.files = {"a", "b/c", "__0_0.distcp"};
  const int tensors = *rc::gen::inRange(0, 6);
  for (int number = 0; number < tensors; ++number) {
    const int axes = *rc::gen::inRange(0, kMaxAxes + 1);
    Dims shape;
    for (int axis = 0; axis < axes; ++axis) shape.push_back(*rc::gen::inRange<std::int64_t>(0, 90));
    const auto dtype = static_cast<DType>(*rc::gen::inRange(0, kDTypeCount));
    StoredTensor tensor{
        {fmt::format("t{}", number), dtype, shape}, ChunkList(axes), Encoding::kTorchItem};
    const std::int64_t rows = axes == 0 ? 1 : shape[0];
    for (std::int64_t row = 0; row < rows; ++row) {
      Box box = Box::whole(shape);
      if (axes > 0) {
        box.origin[0] = row;
        box.shape[0] = 1;
      }
      const auto offset = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62);
      tensor.chunks.push_back({box,
                               *rc::gen::inRange<std::uint32_t>(0, 3),
                               {static_cast<std::uint64_t>(offset), 17},
                               {}});
    }
    catalog.tensors.push_back(std::move(tensor));
  }
  DcpMetadata expected;
  expected.catalog = catalog;
  const auto bytes = encode_dcp_metadata(catalog);
  RC_ASSERT(bytes.has_value());
  const auto found = read(*bytes);
  RC_ASSERT(found.has_value());
  RC_ASSERT(lines(*found) == lines(expected));
}

// ---- damage ----

// Whatever a damaged file makes of the catalog, it is within bounds.
void expect_sound(const DcpMetadata& metadata, const std::string& what) {
  for (const StoredTensor& tensor : metadata.catalog.tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Chunk chunk = tensor.chunks[i];
      ASSERT_LT(chunk.file, metadata.catalog.files.size()) << what;
      ASSERT_TRUE(make_box(chunk.box.origin, chunk.box.shape, tensor.desc.shape)) << what;
    }
  }
  for (const StoredObject& object : metadata.catalog.objects) {
    ASSERT_LT(object.file, metadata.catalog.files.size()) << what;
  }
}

const std::vector<std::string> kDamaged = {"torch_2.13_scalars_empty", "torch_2.13_transforms",
                                           "torch_2.13_planner_paths", "torch_2.0.1"};

TEST(DcpMetadataDamage, EveryTruncationIsRefused) {
  for (const std::string& name : kDamaged) {
    const std::string bytes = read_golden("metadata/" + name + ".metadata");
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      ASSERT_FALSE(read(bytes.substr(0, length))) << name << " cut to " << length;
    }
  }
}

TEST(DcpMetadataDamage, EveryFlippedByteIsSurvived) {
  for (const std::string& name : kDamaged) {
    std::string bytes = read_golden("metadata/" + name + ".metadata");
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const unsigned mask : {0x01u, 0x02u, 0x80u, 0xffu}) {
        const char kept = bytes[at];
        bytes[at] = static_cast<char>(static_cast<unsigned char>(kept) ^ mask);
        const auto found = read(bytes, {.planner_paths = true});
        if (found) expect_sound(*found, name + " flipped at " + std::to_string(at));
        bytes[at] = kept;
      }
    }
  }
}

// Files long enough for whole-object reading; places spread over the file.
TEST(DcpMetadataDamage, FlippedBytesInMegatronFilesAreSurvived) {
  for (const char* name : {"mcore_0.15.3_model_space", "mcore_0.16.1_buckets"}) {
    std::string bytes = read_golden(std::string("metadata/") + name + ".metadata");
    for (std::size_t at = 0; at < bytes.size(); at += 37) {
      const char kept = bytes[at];
      bytes[at] = static_cast<char>(static_cast<unsigned char>(kept) ^ (1u << (at % 8)));
      const auto found = read(bytes);
      if (found) expect_sound(*found, name + std::to_string(at));
      bytes[at] = kept;
    }
  }
}

}  // namespace
}  // namespace shardwright::testing_dcp
