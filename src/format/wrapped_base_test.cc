// SPDX-License-Identifier: Apache-2.0
#include "format/wrapped_base.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Catalog catalog_of(const std::vector<std::string>& names) {
  Catalog catalog;
  for (const std::string& name : names) {
    catalog.tensors.push_back({{name, DType::kF32, {2, 4}}, ChunkList(2)});
  }
  return catalog;
}

TEST(WrappedBase, IsWhatIsLeftWithoutTheAdapter) {
  const std::vector<std::string> names = {"base_model.model.h.0.q.base_layer.weight",
                                          "base_model.model.h.0.q.lora_A.default.weight",
                                          "base_model.model.h.0.q.lora_B.default.weight",
                                          "base_model.model.norm.weight",
                                          "base_model.model.head.original_module.weight",
                                          "base_model.model.head.modules_to_save.default.weight"};
  EXPECT_THAT(adapters_of_wrapped(catalog_of(names)), ElementsAre(names[1], names[2], names[5]));
  EXPECT_EQ(flags_of_wrapped("--exclude", {names[1], names[2], names[5]}),
            "--exclude '*.lora_*' --exclude '*.modules_to_save*'");
  Catalog base = catalog_of(names);
  EXPECT_EQ(take_adapters_of_wrapped(base).size(), 3U);
  ASSERT_EQ(base.tensors.size(), 3U);
  EXPECT_EQ(base.tensors[1].desc.name, names[3]) << "the order stays";
}

// PEFT's own files have no wrapped module, and a model may call a module as it likes.
TEST(WrappedBase, IsNoneWhereNothingIsWrapped) {
  EXPECT_THAT(adapters_of_wrapped(catalog_of({"h.0.q.lora_A.weight", "h.0.q.lora_B.weight"})),
              IsEmpty());
  EXPECT_THAT(adapters_of_wrapped(catalog_of({"h.0.q.lora_Alpha.weight", "my_base_layer.weight"})),
              IsEmpty());
}

}  // namespace
}  // namespace shardwright
