// SPDX-License-Identifier: Apache-2.0
#include "format/near_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

#include "shardwright/checkpoint.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string model_of_one_tensor() {
  constexpr std::string_view kHeader = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} )";
  static_assert(kHeader.size() < 256);
  std::string file(8, '\0');
  file[0] = static_cast<char>(kHeader.size());
  return file + std::string(kHeader) + std::string(4, '\0');
}

std::vector<std::string> artifact_names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& artifact : checkpoint.artifacts) names.push_back(artifact.first);
  return names;
}

// As NeMo Automodel saves with safetensors.
TEST(NearConfig, AModelsFilesMayHaveItInAFolderOfTheirs) {
  const TemporaryFolder folder;
  folder.put("model/shard-00001-model-00001-of-00001.safetensors", model_of_one_tensor());
  folder.put("model/tokenizer_config.json", R"({"own": 1})");
  const std::string path = folder / "model";
  const Checkpoint bare = open_checkpoint(path).value();
  EXPECT_EQ(bare.hf_config, "");
  EXPECT_THAT(bare.notes, Not(Contains("config.json is that of consolidated")));

  folder.put("model/consolidated/config.json", R"({"model_type": "late"})");
  folder.put("model/consolidated/README.md", "x");
  const Checkpoint late = open_checkpoint(path).value();
  EXPECT_EQ(late.hf_config, R"({"model_type": "late"})");
  EXPECT_THAT(late.notes, Contains("config.json is that of consolidated"));
  EXPECT_THAT(artifact_names(late),
              UnorderedElementsAre("tokenizer_config.json", "config.json", "README.md"));

  folder.put("model/.hf_metadata/config.json", R"({"model_type": "kept"})");
  folder.put("model/.hf_metadata/tokenizer_config.json", R"({"other": 1})");
  folder.put("model/.hf_metadata/generation_config.json", "{}");
  folder.put("model/.hf_metadata/fqn_to_file_index_mapping.json", "{}");
  const Checkpoint kept = open_checkpoint(path).value();
  EXPECT_EQ(kept.hf_config, R"({"model_type": "kept"})");
  EXPECT_THAT(artifact_names(kept), UnorderedElementsAre("tokenizer_config.json", "config.json",
                                                         "generation_config.json"));
  EXPECT_THAT(kept.artifacts,
              Contains(testing::Pair("tokenizer_config.json",
                                     testing::Field(&StoredObject::name, "tokenizer_config.json"))))
      << "the folder's own comes first";

  folder.put("model/config.json", R"({"model_type": "own"})");
  EXPECT_EQ(open_checkpoint(path).value().hf_config, R"({"model_type": "own"})");
}

}  // namespace
}  // namespace shardwright
