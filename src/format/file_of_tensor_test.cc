// SPDX-License-Identifier: Apache-2.0
#include "format/file_of_tensor.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

StoredTensor tensor_in(const std::string& name, const std::vector<std::uint32_t>& files) {
  StoredTensor tensor{{name, DType::kF32, {1}}, ChunkList(1), Encoding::kRaw};
  for (const std::uint32_t file : files) {
    tensor.chunks.push_back({Box::whole({1}), file, {0, 4}, {1}});
  }
  return tensor;
}

TEST(WithFile, NamesWhereTheFirstTensorLies) {
  Catalog catalog;
  catalog.files = {"a.safetensors", "b.safetensors"};
  catalog.tensors = {tensor_in("x.weight", {1}), tensor_in("cut.weight", {0, 1})};
  const auto message = [&](const std::string& text) {
    return with_file(Error{Code::kUnmatchedSource, text}, catalog).message;
  };
  EXPECT_EQ(message("1 tensor without a rule: x.weight; check it"),
            "1 tensor without a rule: x.weight; check it; x.weight lies in b.safetensors");
  for (const char* unchanged :
       {"1 tensor missing: y.weight", "tensor cut.weight: found 3", "tensor x.weights: found 3",
        "b.safetensors: tensor x.weight: found 3"}) {
    EXPECT_EQ(message(unchanged), unchanged);
  }
}

}  // namespace
}  // namespace shardwright
