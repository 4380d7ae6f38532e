// SPDX-License-Identifier: Apache-2.0
#include "dcp/chunk_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dcp/load_catalog.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

LoadCatalog catalog_of(const std::string& folder) {
  return LoadCatalog::read(read_golden("dcp/" + folder + "/ckpt/.metadata"), ".metadata").value();
}

// The whole tensors, as the safetensors file beside a checkpoint has them.
std::map<std::string, std::string> truth_of(const std::string& folder) {
  const std::string bytes = read_golden("dcp/" + folder + "/truth.safetensors");
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  std::map<std::string, std::string> tensors;
  const auto header = nlohmann::json::parse(bytes.substr(sizeof size, size));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::uint64_t begin = entry["data_offsets"][0];
    const std::uint64_t end = entry["data_offsets"][1];
    tensors[name] = bytes.substr(sizeof size + size + begin, end - begin);
  }
  return tensors;
}

// The elements of a box of a tensor, row-major.
std::string part_of(const std::string& whole, const Dims& shape, const Box& box, int width) {
  std::string part;
  Dims at = Dims::filled(shape.size(), 0);
  for (std::int64_t left = box.volume(); left > 0; --left) {
    std::int64_t element = 0;
    for (int axis = 0; axis < shape.size(); ++axis) {
      element = element * shape[axis] + box.origin[axis] + at[axis];
    }
    part +=
        whole.substr(static_cast<std::size_t>(element * width), static_cast<std::size_t>(width));
    for (int axis = shape.size() - 1; axis >= 0 && ++at[axis] == box.shape[axis]; --axis) {
      at[axis] = 0;
    }
  }
  return part;
}

std::vector<ChunkNumber> all_chunks(const LoadCatalog& load) {
  std::vector<ChunkNumber> chunks;
  for (std::uint32_t tensor = 0; tensor < load.listed(); ++tensor) {
    const std::size_t count = load.catalog().tensors[tensor].chunks.size();
    for (std::uint32_t chunk = 0; chunk < count; ++chunk) chunks.push_back({tensor, chunk});
  }
  return chunks;
}

std::size_t bytes_of_chunk(const Catalog& catalog, ChunkNumber number) {
  const StoredTensor& tensor = catalog.tensors[number.tensor];
  const std::int64_t elements = tensor.chunks.box(number.chunk).volume();
  return static_cast<std::size_t>(elements * bytes_of(tensor.desc.dtype));
}

TEST(ChunkReader, GivesTheElementsOfEachChunkHoweverTheyAreStored) {
  for (const char* folder : {"noncontiguous", "fsdp2_uneven", "safetensors_items", "zstd_twice",
                             "views", "optimizer", "fsdp2_tp2_uneven"}) {
    const LoadCatalog load = catalog_of(folder);
    const Catalog& catalog = load.catalog();
    const auto truth = truth_of(folder);
    const std::vector<ChunkNumber> chunks = all_chunks(load);
    auto reader =
        ChunkReader::open(golden_path(std::string("dcp/") + folder + "/ckpt"), catalog, chunks);
    ASSERT_TRUE(reader) << folder << ": " << reader.error().text();
    std::size_t compared = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const StoredTensor& tensor = catalog.tensors[chunks[i].tensor];
      std::string bytes(bytes_of_chunk(catalog, chunks[i]), '?');
      const Status read = reader->read(i, std::as_writable_bytes(std::span(bytes)));
      ASSERT_TRUE(read) << folder << ": " << read.error().text();
      const auto found = truth.find(tensor.desc.name);
      if (found == truth.end()) continue;
      EXPECT_EQ(bytes, part_of(found->second, tensor.desc.shape, tensor.chunks.box(chunks[i].chunk),
                               bytes_of(tensor.desc.dtype)))
          << folder << ": " << tensor.desc.name;
      ++compared;
    }
    EXPECT_GE(compared, truth.size()) << folder;
    EXPECT_LE(reader->opens(), catalog.files.size()) << folder << ": each file once";
    const Status finished = reader->finish();
    EXPECT_TRUE(finished) << finished.error().text();
  }
}

// A copy of a golden checkpoint whose files can be spoilt.
class SpoiltChunks : public ::testing::Test {
 protected:
  SpoiltChunks() {
    for (const char* name : {"__0_0.distcp", "__1_0.distcp", "__2_0.distcp", "__3_0.distcp"}) {
      folder_.put(name, read_golden(std::string("dcp/fsdp2_uneven/ckpt/") + name));
    }
  }

  // The error of reading the only chunk of `embedding` on rank 0.
  [[nodiscard]] Error error() const {
    const std::vector<ChunkNumber> chunks{{*load_.find("emb.weight"), 0}};
    auto reader = ChunkReader::open(folder_.path().string(), load_.catalog(), chunks);
    if (!reader) return reader.error();
    std::vector<std::byte> bytes(bytes_of_chunk(load_.catalog(), chunks[0]));
    Status status = reader->read(0, bytes);
    if (status) status = reader->finish();
    return status ? Error{} : status.error();
  }

  [[nodiscard]] std::string file() const {
    return load_.catalog().files[load_.catalog().tensors[*load_.find("emb.weight")].chunks.file(0)];
  }

  TemporaryFolder folder_;
  LoadCatalog load_ = catalog_of("fsdp2_uneven");
};

TEST_F(SpoiltChunks, ASoundOneIsRead) { EXPECT_EQ(error().message, ""); }

TEST_F(SpoiltChunks, AFileThatIsGoneNamesTheTensor) {
  std::filesystem::remove(folder_ / file());
  const Error found = error();
  EXPECT_EQ(found.code, Code::kNotFound);
  EXPECT_THAT(found.message, HasSubstr("tensor emb.weight"));
  EXPECT_THAT(found.message, HasSubstr(file()));
}

TEST_F(SpoiltChunks, AFileThatWasCutNamesTheTensor) {
  folder_.put(file(), folder_.get(file()).substr(0, 100));
  const Error found = error();
  EXPECT_EQ(found.code, Code::kShortRead);
  EXPECT_THAT(found.message, HasSubstr("tensor emb.weight: its bytes end at"));
}

TEST_F(SpoiltChunks, AnElementThatWasAlteredNamesTheTensor) {
  const StoredTensor& tensor = load_.catalog().tensors[*load_.find("emb.weight")];
  const std::string truth = truth_of("fsdp2_uneven").at("emb.weight");
  std::string bytes = folder_.get(file());
  const std::size_t at = bytes.find(part_of(truth, tensor.desc.shape, tensor.chunks.box(0), 4));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  folder_.put(file(), bytes);
  const Error found = error();
  EXPECT_EQ(found.code, Code::kPayloadDamaged);
  EXPECT_THAT(found.message, HasSubstr(file()));
  EXPECT_THAT(found.message, HasSubstr("emb.weight"));
}

TEST_F(SpoiltChunks, MemoryOfAnotherSizeIsRefused) {
  const std::vector<ChunkNumber> chunks{{*load_.find("emb.weight"), 0}};
  auto reader = ChunkReader::open(folder_.path().string(), load_.catalog(), chunks);
  ASSERT_TRUE(reader);
  std::vector<std::byte> bytes(bytes_of_chunk(load_.catalog(), chunks[0]) - 1);
  const Status status = reader->read(0, bytes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kOutOfBounds);
}

}  // namespace
}  // namespace shardwright
