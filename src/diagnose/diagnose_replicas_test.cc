// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_replicas.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "convert/golden.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Codes of findings and the messages, one line each.
std::vector<std::string> findings(const std::string& path, bool check_replicas = false) {
  const Diagnosis diagnosis = diagnose({.path = path, .check_replicas = check_replicas}).value();
  std::vector<std::string> lines;
  for (const Finding& finding : diagnosis.findings) {
    lines.push_back(finding.code + " " + finding.message.english);
    EXPECT_FALSE(finding.message.chinese.empty());
  }
  return lines;
}

TEST(DiagnoseReplicas, NamesTheConvention) {
  EXPECT_THAT(findings(golden_path("replica/sound")),
              ElementsAre(AllOf(
                  HasSubstr("L45 3 tensors are stored once by each tensor rank under names of its "
                            "own, such as decoder.layers.self_attention.linear_qkv."
                            "layer_norm_weight.__tp_replica_0 (Megatron-LM PR 3392"),
                  HasSubstr("looks for decoder.layers.self_attention.linear_qkv."
                            "layer_norm_weight and cannot load"))));
  EXPECT_THAT(findings(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full")),
              testing::IsEmpty());
}

TEST(DiagnoseReplicas, ComparesThemWhereAsked) {
  EXPECT_THAT(findings(golden_path("replica/diverged")), ElementsAre(HasSubstr("L45")));
  EXPECT_THAT(
      findings(golden_path("replica/diverged"), true),
      ElementsAre(HasSubstr("L45"), HasSubstr("SW0411 tensor"), HasSubstr("SW0411 tensor")));
  EXPECT_THAT(findings(golden_path("replica/sound"), true), ElementsAre(HasSubstr("L45")));
}

TEST(DiagnoseReplicas, KnowsShadowsAndNamesThatMakeNoSense) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("replica/sound"), place / "in",
                        std::filesystem::copy_options::recursive);
  edit_metadata(place / "in/iter_0000010", [](Catalog& catalog) {
    StoredTensor copy =
        *std::ranges::find(catalog.tensors, "decoder.final_layernorm.weight.__tp_replica_1",
                           [](const StoredTensor& tensor) { return tensor.desc.name; });
    catalog.tensors.push_back(copy);
    catalog.tensors.back().desc.name = "__shadow_3__decoder.final_layernorm.weight.__tp_replica_1";
    catalog.tensors.push_back(copy);
    catalog.tensors.back().desc.name = "decoder.final_layernorm.weight.__tp_replica_2";
  });
  const std::vector<std::string> found = findings(place / "in");
  EXPECT_THAT(found, Contains(HasSubstr("L46 Parts of 1 tensors are stored once more")));
  EXPECT_THAT(found, Contains(HasSubstr("SW0415 tensor decoder.final_layernorm.weight."
                                        "__tp_replica_2: found a copy of tensor rank 2")));
}

}  // namespace
}  // namespace shardwright
