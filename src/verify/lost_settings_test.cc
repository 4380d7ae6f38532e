// SPDX-License-Identifier: Apache-2.0
// Optimizer states whose settings the common state has lost.
#include <gmock/gmock.h>

#include <array>
#include <functional>

#include "state/state_document.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kStatesOfRun = "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full";
constexpr const char* kStateOfRun = "iter_0000010/common.pt";

using Edit = std::function<void(pickle::Document&, pickle::Value state)>;

class LostSettingsTest : public testing::Test {
 protected:
  LostSettingsTest() { Planted::copy(kStatesOfRun, planted_); }

  void edit(const Edit& edit) const {
    StateDocument state = StateDocument::read(planted_.get(kStateOfRun)).value();
    edit(state.document(), state.dict());
    planted_.put(kStateOfRun, state.encode().value());
  }

  [[nodiscard]] Result<PreparedConversion> convert(bool accept_loss = false) const {
    ConvertRequest request;
    request.input = planted_.path();
    request.output = planted_.place() / (accept_loss ? "accepted" : "out");
    request.format = "torch_dist";
    request.parallel = {2, 1, 1, 1, 1};
    request.accept_loss = accept_loss;
    return convert_now(request);
  }

  [[nodiscard]] std::vector<std::string> found(Severity severity) const {
    std::vector<std::string> messages;
    const VerifyReport report = verify_checkpoint(planted_.path(), {}).value();
    for (const VerifyFinding& finding : report.findings) {
      if (finding.severity == severity) messages.push_back(finding.message);
    }
    return messages;
  }

  [[nodiscard]] std::vector<std::string> differing() const {
    return diff_checkpoints(golden_path(kStatesOfRun), planted_.path(), {}, {}).value().settings;
  }

  Planted planted_;
};

TEST_F(LostSettingsTest, WholeStatesLackNothing) {
  EXPECT_THAT(found(Severity::kError), IsEmpty());
  EXPECT_THAT(found(Severity::kWarning), IsEmpty());
  EXPECT_THAT(differing(), IsEmpty());
  EXPECT_THAT(convert()->notes, Each(Not(HasSubstr("common state"))));
}

TEST_F(LostSettingsTest, StatesWithoutGroupsAreRefused) {
  for (const char* lost : {"param_groups", "optimizer"}) {
    SCOPED_TRACE(lost);
    edit([&](pickle::Document& document, pickle::Value state) {
      const bool is_all = std::string_view(lost) == "optimizer";
      const auto holder = is_all ? state : state.find("optimizer").find("optimizer");
      ASSERT_TRUE(document.erase(holder, lost));
    });
    EXPECT_THAT(found(Severity::kError), ElementsAre(HasSubstr("parameter groups are missing")));
    const auto refused = convert();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("--optimizer drop"));
    EXPECT_THAT(differing(), ElementsAre("parameter groups of the optimizer: on the left only"));
  }
  const auto accepted = convert(true);
  ASSERT_TRUE(accepted) << accepted.error().text();
  EXPECT_THAT(accepted->notes,
              Contains(AllOf(HasSubstr("--accept-loss"), HasSubstr("groups are missing"))));
}

TEST_F(LostSettingsTest, GroupsOfAdamWithoutStatesAreRefused) {
  planted_.edit_metadata(
      [](Catalog& catalog) {
        std::erase_if(catalog.tensors, [](const StoredTensor& tensor) {
          return tensor.desc.name.starts_with("optimizer.");
        });
      },
      "iter_0000010/");
  EXPECT_THAT(found(Severity::kError), ElementsAre(HasSubstr("none of its states is stored")));
  const auto refused = convert();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("--optimizer drop"));
  const auto accepted = convert(true);
  ASSERT_TRUE(accepted) << accepted.error().text();
  EXPECT_THAT(accepted->notes,
              Contains(AllOf(HasSubstr("--accept-loss"), HasSubstr("none of its states"))));
}

TEST_F(LostSettingsTest, ALostKindOfGroupIsTold) {
  edit([](pickle::Document& document, pickle::Value state) {
    const auto inner = state.find("optimizer").find("optimizer");
    const pickle::Value groups = inner.find("param_groups");
    ASSERT_EQ(groups.size(), 2U);
    document.set(inner, "param_groups", document.list(std::array{groups[0]}));
  });
  const auto told = HasSubstr("no parameter group of the optimizer is for ");
  EXPECT_THAT(found(Severity::kError), IsEmpty());
  EXPECT_THAT(found(Severity::kWarning), ElementsAre(told));
  EXPECT_THAT(convert()->notes, Contains(told));
}

TEST_F(LostSettingsTest, StatesWithoutACommonStateAreRefused) {
  planted_.remove(kStateOfRun);
  EXPECT_THAT(found(Severity::kError), Contains(HasSubstr("parameter groups are missing")));
  const auto refused = convert();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("--optimizer drop"));
}

// Of a run in float32 it is torch's own dict.
TEST_F(LostSettingsTest, GroupsOfAnFp32OptimizerLieNoDeeper) {
  edit([](pickle::Document& document, pickle::Value state) {
    document.set(state, "optimizer", state.find("optimizer").find("optimizer"));
  });
  EXPECT_THAT(found(Severity::kError), IsEmpty());
  EXPECT_THAT(found(Severity::kWarning), IsEmpty());
  EXPECT_TRUE(convert());
}

TEST_F(LostSettingsTest, ALostSchedulerIsTold) {
  edit([](pickle::Document& document, pickle::Value state) {
    ASSERT_TRUE(document.erase(state, "opt_param_scheduler"));
  });
  const auto told = HasSubstr("opt_param_scheduler is missing");
  EXPECT_THAT(found(Severity::kWarning), ElementsAre(told));
  EXPECT_THAT(convert()->notes, Contains(told));
  EXPECT_THAT(differing(), ElementsAre("opt_param_scheduler: on the left only"));
}

}  // namespace
}  // namespace shardwright
