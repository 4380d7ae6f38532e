// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string_view> kNames = {
    "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
    "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight", "lm_head.weight"};

TEST(Glob, MatchesAsAShellButAcrossDots) {
  EXPECT_TRUE(matches_glob("*norm*", kNames[1]));
  EXPECT_TRUE(matches_glob("model.layers.[01].*", kNames[2]));
  EXPECT_FALSE(matches_glob("norm", kNames[1]));
}

TEST(Glob, NamesWhatIsNear) {
  EXPECT_THAT(near_glob("lm_haed.weight", kNames), ElementsAre(kNames[4]));
  EXPECT_THAT(near_glob("*up_prok*", kNames), ElementsAre(kNames[2], kNames[3]));
  EXPECT_THAT(near_glob("*zzzzzz*", kNames), IsEmpty());
  EXPECT_THAT(near_glob("*layernorn*", kNames), ElementsAre(kNames[1]));
  EXPECT_THAT(near_glob("*", {}), IsEmpty());
}

TEST(Glob, AnyThatMatchesNothingIsAnError) {
  EXPECT_TRUE(check_globs("--x", {}, kNames));
  const std::vector<std::string> good = {"*norm*", "lm_head*"};
  EXPECT_TRUE(check_globs("--x", good, kNames));
  const std::vector<std::string> bad = {"*norm*", "*up_prok*"};
  const Status refused = check_globs("--x", bad, kNames);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_EQ(refused.error().message,
            "--x '*up_prok*': matches no tensor; near it are model.layers.0.mlp.up_proj.weight, "
            "model.layers.1.mlp.up_proj.weight");
  const std::vector<std::string> odd = {"nope*"};
  EXPECT_THAT(check_globs("--x", odd, kNames).error().message,
              HasSubstr("there are names such as model.embed_tokens.weight, "));
  EXPECT_EQ(check_globs("--x", odd, {}).error().message, "--x 'nope*': matches no tensor");
}

}  // namespace
}  // namespace shardwright
