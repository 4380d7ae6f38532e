// SPDX-License-Identifier: Apache-2.0
#include "canonical/renamed_catalog.h"

#include <gtest/gtest.h>

#include <map>

#include "layout/module_wrappers.h"
#include "model/name_rules.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kElement = 4;

// The byte of each element of a tensor whose chunks are stored row-major one behind another.
StoredTensor stored(std::string name, const Dims& shape, const std::vector<std::int64_t>& rows) {
  StoredTensor tensor{{std::move(name), DType::kF32, shape}, ChunkList(shape.size())};
  std::int64_t row_elements = 1;
  for (int axis = 1; axis < shape.size(); ++axis) row_elements *= shape[axis];
  std::int64_t first = 0;
  for (const std::int64_t count : rows) {
    Box box = Box::whole(shape);
    box.origin[0] = first;
    box.shape[0] = count;
    const auto offset = static_cast<std::uint64_t>(first * row_elements) * kElement;
    const auto length = static_cast<std::uint64_t>(count * row_elements) * kElement;
    tensor.chunks.push_back({box, 0, {offset, length}, {}});
    first += count;
  }
  return tensor;
}

// Where the rows of a tensor of two axes lie, by their numbers, in rows of the file.
std::map<std::int64_t, std::int64_t> rows_in_file(const StoredTensor& tensor) {
  std::map<std::int64_t, std::int64_t> rows;
  const std::int64_t columns = tensor.desc.shape[1];
  for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
    const Chunk chunk = tensor.chunks[c];
    const Dims strides = chunk.strides.empty() ? row_major_strides(chunk.box.shape) : chunk.strides;
    EXPECT_EQ(chunk.box.shape[1], columns);
    for (std::int64_t row = 0; row < chunk.box.shape[0]; ++row) {
      const std::uint64_t byte =
          chunk.range.offset + static_cast<std::uint64_t>(row * strides[0]) * kElement;
      const auto in_file = static_cast<std::int64_t>(byte / kElement) / columns;
      EXPECT_TRUE(rows.emplace(chunk.box.origin[0] + row, in_file).second);
    }
  }
  EXPECT_TRUE(check_coverage(tensor, Replicas::kForbidden));
  return rows;
}

StoredNameRule rule_of(const char* rest) {
  const std::string json = std::string(R"({"names": "n", "writers": "w", "families": [], "rules": [
      {"stored": ["layers.{layer}.w"], "hf": "model.layers.{layer})") +
                           rest + "]}";
  return parse_name_rules(json, "test.json").value().rules[0];
}

// Row 2i + k of a head becomes row k * head_dim / 2 + i, however ranks have cut the rows.
TEST(RenamedCatalog, PutsRotaryPairsInOrderOfHalves) {
  const StoredNameRule rule = rule_of(R"(.q.weight", "order": "rotary_pairs"})");
  const ModelSizes sizes = {{"head_dim", 6}};
  for (const std::vector<std::int64_t>& cut :
       std::vector<std::vector<std::int64_t>>{{18}, {9, 9}, {1, 2, 4, 11}, {5, 1, 7, 5}, {17, 1}}) {
    Catalog source;
    source.tensors.push_back(stored("layers.0.w", {18, 3}, cut));
    RenamedCatalog renamed(source, sizes);
    ASSERT_TRUE(renamed.add(source.tensors[0], rule, {{"layer", 7}}));
    const Catalog made = renamed.take();
    ASSERT_EQ(made.tensors[0].desc.name, "model.layers.7.q.weight");
    const auto rows = rows_in_file(made.tensors[0]);
    ASSERT_EQ(rows.size(), 18U);
    for (std::int64_t head = 0; head < 3; ++head) {
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t k = 0; k < 2; ++k) {
          EXPECT_EQ(rows.at(head * 6 + k * 3 + i), head * 6 + 2 * i + k);
        }
      }
    }
  }
}

TEST(RenamedCatalog, RowsThatAreNoWholeHeadsAreRefused) {
  const StoredNameRule rule = rule_of(R"(.q.weight", "order": "rotary_pairs"})");
  for (const std::int64_t head_dim : {4, 9, 0}) {
    const ModelSizes sizes = {{"head_dim", head_dim}};
    Catalog source;
    source.tensors.push_back(stored("layers.0.w", {18, 3}, {18}));
    RenamedCatalog renamed(source, sizes);
    const Status added = renamed.add(source.tensors[0], rule, {{"layer", 0}});
    ASSERT_FALSE(added) << head_dim;
    EXPECT_EQ(added.error().code, Code::kShapeMismatch);
  }
}

TEST(RenamedCatalog, GivesEachExpertItsRows) {
  const StoredNameRule rule = rule_of(R"(.experts.{expert}.weight", "stack": "expert"})");
  const ModelSizes sizes;
  Catalog source;
  source.tensors.push_back(stored("layers.0.w", {3, 2, 5}, {2, 1}));
  RenamedCatalog renamed(source, sizes);
  ASSERT_TRUE(renamed.add(source.tensors[0], rule, {{"layer", 0}}));
  const Catalog made = renamed.take();
  ASSERT_EQ(made.tensors.size(), 3U);
  for (std::int64_t expert = 0; expert < 3; ++expert) {
    const StoredTensor& tensor = made.tensors[static_cast<std::size_t>(expert)];
    EXPECT_EQ(tensor.desc.name, "model.layers.0.experts." + std::to_string(expert) + ".weight");
    EXPECT_EQ(tensor.desc.shape, (Dims{2, 5}));
    const auto rows = rows_in_file(tensor);
    EXPECT_EQ(rows.at(0), 2 * expert);
    EXPECT_EQ(rows.at(1), 2 * expert + 1);
  }
}

TEST(RenamedCatalog, TwoTensorsThatAreOneAreNamed) {
  const ModelSizes sizes;
  Catalog source;
  source.tensors.push_back(stored("a.w", {2, 2}, {2}));
  source.tensors.push_back(stored("a._orig_mod.w", {2, 2}, {2}));
  RenamedCatalog renamed(source, sizes);
  ASSERT_TRUE(renamed.add(source.tensors[0], without_module_wrappers("a.w")));
  const Status second = renamed.add(source.tensors[1], without_module_wrappers("a._orig_mod.w"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kDuplicateName);
  EXPECT_NE(second.error().message.find("a._orig_mod.w"), std::string::npos);
}

TEST(RenamedCatalog, WrappersLeaveNames) {
  EXPECT_EQ(without_module_wrappers("_orig_mod.a._fsdp_wrapped_module.b"), "a.b");
  EXPECT_EQ(without_module_wrappers("a._checkpoint_wrapped_module"), "a");
  EXPECT_EQ(without_module_wrappers("a.token_adapter.base_layer.weight"), "a.weight") << "PEFT's";
  EXPECT_EQ(without_module_wrappers("a._orig_modern.b"), "a._orig_modern.b");
}

}  // namespace
}  // namespace shardwright
