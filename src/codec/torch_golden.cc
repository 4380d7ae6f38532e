// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_golden.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "codec/torch_tensor.h"

namespace shardwright {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

/// The elements in row-major order, gathered one by one.
std::string elements_of(const std::string& file, const LocatedTensor& tensor) {
  const std::string range = file.substr(tensor.range.offset, tensor.range.length);
  EXPECT_EQ(range.size(), tensor.range.length);
  if (tensor.strides.empty()) return range;
  const auto item = static_cast<std::size_t>(bytes_of(tensor.dtype));
  std::string out;
  Dims index = Dims::filled(tensor.shape.size(), 0);
  for (std::int64_t left = element_count(tensor.shape).value(); left > 0; --left) {
    std::int64_t position = 0;
    for (int axis = 0; axis < index.size(); ++axis) position += index[axis] * tensor.strides[axis];
    out += range.substr(static_cast<std::size_t>(position) * item, item);
    for (int axis = index.size() - 1; axis >= 0; --axis) {
      if (++index[axis] < tensor.shape[axis]) break;
      index[axis] = 0;
    }
  }
  return out;
}

std::vector<std::int64_t> list_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

}  // namespace

std::string hex_of(const std::string& file, const LocatedTensor& tensor) {
  return hex(elements_of(file, tensor));
}

int compare(const std::string& file, const Locate& locate, pickle::Value value,
            const nlohmann::json& expected, const std::string& where) {
  int tensors = 0;
  if (expected.is_object() && expected.contains("__dict__")) {
    for (const auto& pair : expected["__dict__"]) {
      if (!pair[0].is_string()) continue;
      const std::string key = pair[0];
      tensors += compare(file, locate, value.find(key), pair[1], where + "." + key);
    }
  } else if (expected.is_array()) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      tensors += compare(file, locate, value[i], expected[i], where + "[]");
    }
  } else if (expected.is_object() && expected.contains("__tensor__")) {
    EXPECT_TRUE(is_tensor(value)) << where;
    const auto tensor = locate(value);
    if (!tensor) {
      ADD_FAILURE() << where << ": " << tensor.error().message;
      return 0;
    }
    EXPECT_EQ(torch_name(tensor->dtype), expected["dtype"].get<std::string>()) << where;
    EXPECT_EQ(list_of(tensor->shape), expected["shape"].get<std::vector<std::int64_t>>()) << where;
    EXPECT_EQ(hex_of(file, *tensor), expected["hex"].get<std::string>()) << where;
    const TorchTensor recipe = read_torch_tensor(value).value();
    EXPECT_EQ(recipe.offset, expected["storage_offset"].get<std::int64_t>()) << where;
    EXPECT_EQ(recipe.requires_grad || recipe.is_parameter,
              expected["requires_grad"].get<bool>() || expected["class"] == "Parameter")
        << where;
    ++tensors;
  }
  return tensors;
}

}  // namespace shardwright
