// SPDX-License-Identifier: Apache-2.0
// What NeMo 2's checkpoints lack is told, though no config.json says what they should have.
#include <gmock/gmock.h>

#include "convert/golden.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

class NemoTwo : public testing::Test {
 protected:
  // A torch_dist checkpoint under NeMo's names, of which `is_lost` says what is not there.
  void make(const std::function<bool(const std::string&)>& is_lost) {
    Planted::convert("hf/llama3/hf", "torch_dist", {}, planted_.path());
    planted_.edit_metadata([&](Catalog& catalog) {
      std::erase_if(catalog.tensors, [&](const StoredTensor& t) { return is_lost(t.desc.name); });
      for (StoredTensor& tensor : catalog.tensors) tensor.desc.name.insert(0, "module.");
      for (StoredObject& object : catalog.objects) object.name.insert(0, "module.");
    });
    planted_.remove("iter_0000000/run_config.yaml");
    planted_.remove("iter_0000000/hf");
  }

  VerifyReport verified() const {
    auto report = verify_checkpoint(planted_.path(), {});
    EXPECT_TRUE(report) << report.error().text();
    return report ? *std::move(report) : VerifyReport();
  }

  Result<PreparedConversion> converted() const {
    ConvertRequest request;
    request.input = planted_.path();
    request.output = planted_.place() / "out";
    request.format = "torch_dist";
    return convert_now(request);
  }

  Planted planted_;
};

std::string found_in(const VerifyReport& report, Severity severity) {
  std::string text;
  for (const VerifyFinding& finding : report.findings) {
    if (finding.severity == severity) text += code_name(finding.code) + " " + finding.message;
  }
  return text;
}

TEST_F(NemoTwo, IsWhole) {
  make([](const std::string&) { return false; });
  const VerifyReport report = verified();
  EXPECT_EQ(report.format, "nemo2");
  EXPECT_EQ(found_in(report, Severity::kError), "");
  EXPECT_EQ(found_in(report, Severity::kWarning), "");
  EXPECT_TRUE(converted());
}

TEST_F(NemoTwo, HasLostHalfOfEachMlp) {
  make([](const std::string& name) { return name.contains("linear_fc2"); });
  const std::string lost = "nothing is stored of decoder.layers.0.mlp.linear_fc2.weight";
  EXPECT_THAT(found_in(verified(), Severity::kError), HasSubstr("SW0413 decoder.layers.0.mlp."));
  EXPECT_THAT(found_in(verified(), Severity::kError), HasSubstr(lost));
  const auto refused = converted();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLossySource);
  EXPECT_THAT(refused.error().message, HasSubstr(lost));
}

// A model of nobody's but its own may have no such norm.
TEST_F(NemoTwo, HasLostWhatItsNearestFamilyHas) {
  make([](const std::string& name) { return name.contains("linear_fc1.layer_norm"); });
  EXPECT_THAT(found_in(verified(), Severity::kWarning),
              HasSubstr("llama, which needs 3 more: "
                        "decoder.layers.0.mlp.linear_fc1.layer_norm_weight"));
}

TEST_F(NemoTwo, HasLostItsCommonState) {
  make([](const std::string&) { return false; });
  planted_.remove("iter_0000000/common.pt");
  EXPECT_THAT(found_in(verified(), Severity::kError), HasSubstr("common.pt: missing"));
  const auto done = converted();
  ASSERT_TRUE(done) << done.error().text();
}

}  // namespace
}  // namespace shardwright
