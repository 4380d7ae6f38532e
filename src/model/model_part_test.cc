// SPDX-License-Identifier: Apache-2.0
#include "model/model_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<ModelPart> kParts = {
    {"language", {{"model.language_model.", "model."}, {"model.", "model."}}, {}, {}},
    {"images", {{"model.visual.", ""}, {"visual.", ""}}, {}, {}},
    {"adapter", {{"model.visual.merger.", "merger."}, {"newline", "line"}}, {}, {}},
};

TEST(ModelPart, OwnsWhatItsLongestPrefixBegins) {
  const auto place = [&](std::string_view name) {
    const PartName found = part_name(kParts, name);
    return (found.part == nullptr ? "none" : found.part->name) + " " + found.alone;
  };
  EXPECT_EQ(place("model.language_model.norm.weight"), "language model.norm.weight");
  EXPECT_EQ(place("model.norm.weight"), "language model.norm.weight");
  EXPECT_EQ(place("model.visual.blocks.0.w"), "images blocks.0.w");
  EXPECT_EQ(place("visual.blocks.0.w"), "images blocks.0.w");
  EXPECT_EQ(place("model.visual.merger.fc.w"), "adapter merger.fc.w");
  EXPECT_EQ(place("newline"), "adapter line") << "a whole name";
  EXPECT_EQ(place("newlines"), "none ");
  EXPECT_EQ(place("audio.x"), "none ");
}

TEST(ModelPart, ModulesThatReadLieBesideThoseThatSee) {
  EXPECT_EQ(module_name(kParts, "model.norm.weight"), "model.language_model.norm.weight");
  EXPECT_EQ(module_name(kParts, "model.language_model.norm.weight"),
            "model.language_model.norm.weight");
  EXPECT_EQ(module_name(kParts, "visual.blocks.0.w"), "visual.blocks.0.w") << "a tower's stay";
  EXPECT_EQ(module_name(kParts, "audio.x"), "audio.x");
  const std::vector<ModelPart> older = {{"language",
                                         {{"language_model.model.", "model."},
                                          {"model.language_model.", "model."},
                                          {"language_model.lm_head.", "lm_head."},
                                          {"lm_head.", "lm_head."}},
                                         {},
                                         {}}};
  EXPECT_EQ(module_name(older, "language_model.model.norm.weight"),
            "model.language_model.norm.weight");
  EXPECT_EQ(module_name(older, "language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(module_name(older, "lm_head.weight"), "lm_head.weight");
  const std::vector<ModelPart> inside = {
      {"language",
       {{"thinker.model.", "model."}, {"thinker.model.language_model.", "model."}},
       {},
       {}}};
  for (const char* name :
       {"thinker.model.norm.weight", "thinker.model.language_model.norm.weight"}) {
    EXPECT_EQ(module_name(inside, name), "thinker.model.language_model.norm.weight");
  }
}

std::vector<std::string> named(const ModelPart& part, const std::vector<std::string>& names,
                               std::string_view name) {
  std::vector<std::string> whole;
  const std::vector<PartNaming> namings = namings_of(kParts, part, names).value();
  for (const PartNaming& naming : namings) {
    whole.push_back(naming.whole(name));
  }
  return whole;
}

TEST(ModelPart, HasANamingForEachPrefix) {
  EXPECT_THAT(named(kParts[1], {"blocks.0.w"}, "blocks.0.w"),
              ElementsAre("model.visual.blocks.0.w", "visual.blocks.0.w"));
  EXPECT_THAT(named(kParts[1], {"visual.a", "visual.b"}, "visual.a"),
              ElementsAre("model.visual.visual.a", "visual.visual.a", "visual.a"))
      << "names of the whole model stay";
  EXPECT_THAT(named(kParts[1], {"visual.a", "b"}, "visual.a"),
              ElementsAre("model.visual.visual.a", "visual.visual.a"))
      << "not where only some are";
  EXPECT_THAT(named(kParts[0], {"other"}, "other"), ElementsAre("other", "other"))
      << "no prefix fits";
}

// Parts name folders of a split.
TEST(ModelPart, HasANameThatIsAFolders) {
  const auto refusal = [](const std::string& name) {
    const Status status = check_parts(std::vector<ModelPart>{{name, {{"a.", ""}}, {}, {}}});
    return status ? std::string("accepted") : status.error().text();
  };
  EXPECT_EQ(refusal("sound_2-b"), "accepted");
  for (const char* name : {"", "../../x", "a/b", ".", "..", ".hidden", "-x", "a=b", "a b", "a\n"}) {
    EXPECT_THAT(refusal(name), HasSubstr("must be a word")) << name;
  }
  EXPECT_THAT(refusal("model"), HasSubstr("component model: found a name that split needs"));
}

TEST(ModelPart, ThatCantBeMeantIsRefused) {
  const auto refusal = [](const std::vector<ModelPart>& parts) {
    const Status status = check_parts(parts);
    return status ? std::string("accepted") : status.error().text();
  };
  EXPECT_EQ(refusal(kParts), "accepted");
  EXPECT_THAT(refusal({{"a", {{"", "x."}}, {}, {}}}), HasSubstr("end with a dot"));
  EXPECT_THAT(refusal({{"a", {{"x.", "y"}}, {}, {}}}), HasSubstr("end with a dot"));
  EXPECT_THAT(refusal({{"a", {{"x", "y."}}, {}, {}}}), HasSubstr("end with a dot"));
  EXPECT_THAT(refusal({{"a", {{"x", ""}}, {}, {}}}), HasSubstr("end with a dot"));
  EXPECT_THAT(refusal({{"a", {{"x.", ""}}, {}, {}}, {"b", {{"x.", "y."}}, {}, {}}}),
              HasSubstr("component b: found the prefix 'x.', which is a's"));
  ModelPart many{"a", {}, {}, {}};
  for (int i = 0; i < 9; ++i) {
    for (const char* whole : {"p", "q"}) {
      many.prefixes.push_back({whole + std::to_string(i) + ".", "a" + std::to_string(i) + "."});
    }
  }
  EXPECT_EQ(namings_of({&many, 1}, many, {}).error().code, Code::kLimit);
}

}  // namespace
}  // namespace shardwright
