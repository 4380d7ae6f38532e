// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/endian.h"
#include "convert/golden.h"
#include "dcp/dcp_metadata.h"
#include "io/source_files.h"
#include "shardwright/verify.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

// For the tests of verify: sound checkpoints in a folder of their own, and ways to damage them.

namespace shardwright {

/// A checkpoint that a test may damage.
class Planted {
 public:
  [[nodiscard]] std::string path() const { return place_ / "ckpt"; }
  [[nodiscard]] const TemporaryFolder& place() const { return place_; }

  static void copy(const std::string& golden, const Planted& to) {
    std::filesystem::copy(golden_path(golden), to.path(), std::filesystem::copy_options::recursive);
  }

  /// What a conversion makes of a golden Hugging Face model.
  static void convert(const std::string& golden, std::string_view format, ParallelConfig parallel,
                      const std::string& to) {
    ConvertRequest request;
    request.input = golden_path(golden);
    request.output = to;
    request.format = format;
    request.parallel = parallel;
    request.max_shard_bytes = 100'000;
    const auto done = convert_now(request);
    ASSERT_TRUE(done) << done.error().text();
  }

  [[nodiscard]] std::string get(const std::string& file) const {
    return place_.get("ckpt/" + file);
  }
  void put(const std::string& file, const std::string& bytes) const {
    place_.put("ckpt/" + file, bytes);
  }
  void remove(const std::string& file) const { std::filesystem::remove_all(path() + "/" + file); }
  void rename(const std::string& from, const std::string& to) const {
    std::filesystem::rename(path() + "/" + from, path() + "/" + to);
  }
  void swap(const std::string& a, const std::string& b) const {
    const std::string bytes = get(a);
    put(a, get(b));
    put(b, bytes);
  }
  void cut(const std::string& file, std::size_t bytes) const {
    const std::string whole = get(file);
    put(file, whole.substr(0, whole.size() - bytes));
  }
  void append(const std::string& file, const std::string& bytes) const {
    put(file, get(file) + bytes);
  }
  void flip(const std::string& file, std::size_t offset) const {
    std::string bytes = get(file);
    bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ 1);
    put(file, bytes);
  }

  /// Rewrites a JSON file.
  void edit_json(const std::string& file, const std::function<void(nlohmann::json&)>& edit) const;
  /// Rewrites the header of a safetensors file; the bytes behind it stay.
  void edit_header(const std::string& file, const std::function<void(nlohmann::json&)>& edit) const;
  void put_header(const std::string& file, const std::string& header,
                  const std::string& payload) const {
    std::string bytes;
    append_le<std::uint64_t>(bytes, header.size());
    put(file, bytes + header + payload);
  }

  /// Rewrites `.metadata` of an iteration.
  void edit_metadata(const std::function<void(Catalog&)>& edit,
                     const std::string& folder = "iter_0000000/") const {
    const auto directory = open_local_directory(path()).value();
    const auto file = directory->open(folder + ".metadata").value();
    DcpMetadata metadata = read_dcp_metadata(*file).value();
    edit(metadata.catalog);
    put(folder + ".metadata", encode_dcp_metadata(metadata.catalog).value());
  }

 private:
  TemporaryFolder place_;
};

[[nodiscard]] inline StoredTensor& tensor_of(Catalog& catalog, const std::string& name) {
  return *std::ranges::find(catalog.tensors, name, [](const auto& t) { return t.desc.name; });
}

inline void edit_chunks(Catalog& catalog, const std::string& name,
                        const std::function<void(std::vector<Chunk>&)>& edit) {
  StoredTensor& tensor = tensor_of(catalog, name);
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) chunks.push_back(tensor.chunks[i]);
  edit(chunks);
  tensor.chunks = ChunkList(tensor.desc.shape.size());
  for (const Chunk& chunk : chunks) tensor.chunks.push_back(chunk);
}

}  // namespace shardwright
