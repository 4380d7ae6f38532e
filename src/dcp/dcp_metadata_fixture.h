// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "base/fail.h"
#include "codec/pickle_decode.h"
#include "codec/pickle_encode.h"
#include "dcp/dcp_metadata.h"
#include "testing/golden_files.h"

// For the tests of `.metadata`: files in memory, hand-made metadata, and a second, slow reader that
// walks the general decoder's value graph.

namespace shardwright::testing_dcp {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

class BytesFile final : public ReadableFile {
 public:
  explicit BytesFile(std::string bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset > bytes_.size() || buffer.size() > bytes_.size() - offset) {
      return fail(Code::kShortRead, "{}: too short", name_);
    }
    if (!buffer.empty()) std::memcpy(buffer.data(), bytes_.data() + offset, buffer.size());
    return {};
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  std::string name_ = "ckpt/.metadata";
  std::string bytes_;
};

inline Result<DcpMetadata> read(const std::string& bytes, const DcpMetadataOptions& options = {}) {
  return read_dcp_metadata(BytesFile(bytes), options);
}

/// A catalog as lines of text, sorted: equal for equal contents.
inline std::vector<std::string> lines(const DcpMetadata& metadata) {
  std::vector<std::string> lines;
  const Catalog& catalog = metadata.catalog;
  for (const StoredTensor& tensor : catalog.tensors) {
    lines.push_back(fmt::format("tensor {} {} {}", tensor.desc.name, torch_name(tensor.desc.dtype),
                                to_string(tensor.desc.shape)));
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Chunk chunk = tensor.chunks[i];
      lines.push_back(fmt::format("chunk {} {} {} {} {} {}", tensor.desc.name,
                                  to_string(chunk.box.origin), to_string(chunk.box.shape),
                                  catalog.files[chunk.file], chunk.range.offset,
                                  chunk.range.length));
    }
  }
  for (const StoredObject& object : catalog.objects) {
    lines.push_back(fmt::format("object {} {} {} {}", object.name, catalog.files[object.file],
                                object.range.offset, object.range.length));
  }
  std::ranges::sort(lines);
  return lines;
}

inline Dims dims_of(Value value) {
  const Value tuple = value.is(Kind::kReduce) ? value.args()[0] : value;
  Dims dims;
  for (std::size_t i = 0; i < tuple.size(); ++i) dims.push_back(*tuple[i].as_int());
  return dims;
}

/// The same lines from the value graph; chunks without a storage entry are left out.
inline std::vector<std::string> slow_lines(const Document& document) {
  std::vector<std::string> lines;
  const Value root = document.root();
  std::map<std::pair<std::string, std::string>, Value> places;
  const Value storage = root.attribute("storage_data");
  for (std::size_t i = 0; i < storage.size(); ++i) {
    const Value index = storage.key(i);
    const Value offset = index.attribute("offset");
    places[{std::string(index.attribute("fqn").text()),
            offset && !offset.is_none() ? to_string(dims_of(offset)) : ""}] = storage.value(i);
  }
  const auto place = [&](Value info) {
    return fmt::format("{} {} {}", info.attribute("relative_path").text(),
                       *info.attribute("offset").as_int(), *info.attribute("length").as_int());
  };
  const Value tensors = root.attribute("state_dict_metadata");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name(tensors.key(i).text());
    const Value tensor = tensors.value(i);
    if (tensor.callable().name() == "BytesStorageMetadata") {
      lines.push_back(fmt::format("object {} {}", name, place(places.at({name, ""}))));
      continue;
    }
    lines.push_back(fmt::format("tensor {} {} {}", name,
                                tensor.attribute("properties").state()[0].name(),
                                to_string(dims_of(tensor.attribute("size")))));
    const Value chunks = tensor.attribute("chunks");
    for (std::size_t j = 0; j < chunks.size(); ++j) {
      const std::string origin = to_string(dims_of(chunks[j].attribute("offsets")));
      const auto found = places.find({name, origin});
      if (found == places.end()) continue;
      lines.push_back(fmt::format("chunk {} {} {} {}", name, origin,
                                  to_string(dims_of(chunks[j].attribute("sizes"))),
                                  place(found->second)));
    }
  }
  std::ranges::sort(lines);
  return lines;
}

/// Builds `.metadata` value graphs piece by piece.
class Maker {
 public:
  static constexpr const char* kModule = "torch.distributed.checkpoint.metadata";

  Document document;
  Value tensors = document.dict();
  Value storage = document.dict();

  Value size(const std::vector<std::int64_t>& extents) {
    return document.reduce(document.global("torch", "Size"), document.tuple({tuple(extents)}));
  }
  Value tuple(const std::vector<std::int64_t>& extents) {
    std::vector<Value> elements;
    for (std::int64_t extent : extents) elements.push_back(document.integer(extent));
    return document.tuple(elements);
  }
  Value object(const char* module, const char* name) {
    return document.object(document.global(module, name));
  }
  Value chunk_of(Value offsets, Value sizes) {
    const Value made = object(kModule, "ChunkStorageMetadata");
    document.set_attribute(made, "offsets", offsets);
    document.set_attribute(made, "sizes", sizes);
    return made;
  }
  Value chunk(const std::vector<std::int64_t>& offsets, const std::vector<std::int64_t>& sizes) {
    return chunk_of(size(offsets), size(sizes));
  }
  Value properties(const char* dtype, const char* layout = "torch.strided") {
    const Value made = object(kModule, "TensorProperties");
    const Value strided = document.reduce(document.global("torch.serialization", "_get_layout"),
                                          document.tuple({document.string(layout)}));
    const Value format = document.reduce(document.global(kModule, "_MEM_FORMAT_ENCODING"),
                                         document.tuple({document.integer(0)}));
    const std::vector<Value> state = {document.global("torch", dtype), strided,
                                      document.boolean(false), format, document.boolean(false)};
    document.set_state(made, document.tuple(state));
    return made;
  }
  Value tensor(Value properties, Value size, const std::vector<Value>& chunks) {
    const Value made = object(kModule, "TensorStorageMetadata");
    document.set_attribute(made, "properties", properties);
    document.set_attribute(made, "size", size);
    document.set_attribute(made, "chunks", document.list(chunks));
    return made;
  }
  Value index(const std::string& name, Value offset = {}, Value hint = {}) {
    const Value made = object(kModule, "MetadataIndex");
    document.set_attribute(made, "fqn", document.string(name));
    document.set_attribute(made, "index", hint ? hint : document.none());
    if (offset) document.set_attribute(made, "offset", offset);
    return made;
  }
  Value info(const std::string& path, std::int64_t offset, std::int64_t length,
             const char* cls = "_StorageInfo") {
    const Value made = object("torch.distributed.checkpoint.filesystem", cls);
    document.set_attribute(made, "relative_path", document.string(path));
    document.set_attribute(made, "offset", document.integer(offset));
    document.set_attribute(made, "length", document.integer(length));
    return made;
  }
  void add_tensor(const std::string& name, Value tensor) {
    document.add_pair(tensors, document.string(name), tensor);
  }
  void add_place(Value index, Value info) { document.add_pair(storage, index, info); }
  /// `w`, float32 (4, 6) in two chunks of two rows.
  void add_usual(const std::string& name = "w") {
    add_tensor(name, tensor(properties("float32"), size({4, 6}),
                            {chunk({0, 0}, {2, 6}), chunk({2, 0}, {2, 6})}));
    add_place(index(name, size({0, 0}), document.integer(0)), info("__0_0.distcp", 0, 1600));
    add_place(index(name, size({2, 0}), document.integer(1)), info("__1_0.distcp", 100, 1601));
  }
  Value root(const char* module = kModule, const char* name = "Metadata") {
    const Value made = object(module, name);
    document.set_attribute(made, "state_dict_metadata", tensors);
    document.set_attribute(made, "planner_data", document.none());
    document.set_attribute(made, "storage_data", storage);
    return made;
  }
  std::string encode(Value root, pickle::Protocol protocol = pickle::Protocol::kFour) {
    document.set_root(root);
    return *pickle::encode(document, protocol);
  }
  std::string encode() { return encode(root()); }
};

inline void expect_refusal(const std::string& bytes, Code code, const std::string& fragment) {
  const auto found = read(bytes);
  ASSERT_FALSE(found) << fragment;
  EXPECT_EQ(found.error().code, code) << found.error().text();
  EXPECT_THAT(found.error().message, ::testing::HasSubstr(fragment));
  EXPECT_THAT(found.error().message, ::testing::HasSubstr("ckpt/.metadata"));
}

inline const std::vector<std::string> kUsualLines = {"chunk w (0, 0) (2, 6) __0_0.distcp 0 1600",
                                                     "chunk w (2, 0) (2, 6) __1_0.distcp 100 1601",
                                                     "tensor w float32 (4, 6)"};

}  // namespace shardwright::testing_dcp
