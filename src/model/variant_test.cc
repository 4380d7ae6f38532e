// SPDX-License-Identifier: Apache-2.0
// Families that share an architecture, and what tells one variant of a model from another.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/apply.h"
#include "model/config.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

/// A family of architecture "Seeing" that knows these values of `text.kind`.
MappingText family(const std::string& name, const std::string& kinds, std::string& json) {
  json = fmt::format(
      R"({{"family": "{0}", "architectures": ["Seeing"], "model_types": ["see"],
           "needs_config": {{"text.kind": [{1}]}},
           "sizes": {{"n": {{"hf": "n"}}}}, "rules": [{{"megatron": "m", "hf": "h"}}]}})",
      name, kinds);
  return {name + ".json", json};
}

HfConfig seeing(const std::string& rest) {
  return read_hf_config(fmt::format(R"({{"architectures": ["Seeing"], "n": 1{}}})", rest)).value();
}

TEST(Variant, IsChosenByWhatTheFamilyKnows) {
  std::string first;
  std::string second;
  const std::vector<MappingText> texts{family("one", R"("a", "b")", first),
                                       family("two", R"("c", 4)", second)};
  const std::vector<Mapping> families = parse_mappings(texts).value();
  EXPECT_EQ((*find_family(families, seeing(R"(, "text": {"kind": "b"})")))->family, "one");
  EXPECT_EQ((*find_family(families, seeing(R"(, "text": {"kind": 4})")))->family, "two");
  EXPECT_EQ(find_family(families, seeing("")).error().code, Code::kAmbiguousFamily)
      << "a file that does not say may be of either";
  const auto other = find_family(families, seeing(R"(, "text": {"kind": "d"})"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kNoFamily);
  EXPECT_THAT(other.error().message, HasSubstr("found text.kind = 'd', expected 'a' or 'b'"));
}

TEST(Variant, OfOneFamilyIsRefusedByName) {
  std::string json;
  const MappingText text = family("only", R"("a")", json);
  const std::vector<Mapping> families = parse_mappings(std::span(&text, 1)).value();
  EXPECT_TRUE(find_family(families, seeing("")));
  const auto other = find_family(families, seeing(R"(, "text": {"kind": true})"));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("family only knows no other"));
  const std::string type = families[0].model_types[0];
  EXPECT_TRUE(names_one_of(seeing(""), families));
  EXPECT_TRUE(names_one_of(HfConfig{{}, {}, type}, families));
  EXPECT_FALSE(names_one_of(HfConfig{{}, {}, "deaf"}, families));
  EXPECT_FALSE(names_one_of(HfConfig{{}, {"Deaf"}, type}, families)) << "the architecture counts";
}

TEST(Variant, IsToldByTheFirstOfItsKeysThatIsSet) {
  const std::string json =
      R"({"family": "f", "architectures": ["F"], "model_types": ["f"],
          "needs_config": {"new|old": [false]},
          "sizes": {"n": {"hf": "n"}}, "rules": [{"megatron": "m", "hf": "h"}]})";
  const Mapping mapping = parse_mapping(json, "f.json").value();
  const auto check = [&](std::string_view config) {
    return check_variant(mapping, read_hf_config(config).value());
  };
  EXPECT_TRUE(check(R"({"new": false, "old": true})"));
  EXPECT_TRUE(check(R"({"old": false})"));
  EXPECT_TRUE(check("{}"));
  EXPECT_THAT(check(R"({"new": true, "old": false})").error().message,
              HasSubstr("found new = True, expected False"));
  EXPECT_THAT(check(R"({"old": true})").error().message, HasSubstr("found old = True"));
}

TEST(Variant, OfDiffusersIsNamedByItsClassAlone) {
  const std::string text = R"({"family": "f", "library": "diffusers", "architectures": ["Paints"],
      "sizes": {"n": {"hf": "n", "args": "n"}}, "rules": [{"megatron": "m", "hf": "h"}]})";
  const std::vector<MappingText> texts{{"f.json", text}};
  const std::vector<Mapping> families = parse_mappings(texts).value();
  const HfConfig config = read_hf_config(R"({"_class_name": "Paints", "n": 3})").value();
  EXPECT_TRUE(config.is_of_diffusers);
  EXPECT_EQ(find_family(families, config).value()->family, "f");
  const ConfigFromArgs made =
      config_from_args(families[0], {{"n", ArgValue{std::int64_t{3}}}}).value();
  const HfConfig again = read_hf_config(made.json).value();
  EXPECT_EQ(again.values, config.values) << made.json;
  EXPECT_EQ(again.architectures, config.architectures);
  // A class that stands beside architectures is no name of the model.
  const HfConfig other =
      read_hf_config(R"({"architectures": ["A"], "_class_name": "Paints"})").value();
  EXPECT_THAT(other.architectures, testing::ElementsAre("A"));
  EXPECT_FALSE(other.is_of_diffusers);
}

TEST(Variant, MayBeThatAKeyIsSet) {
  std::string first;
  std::string second;
  std::vector<MappingText> texts{family("plain", "null", first), family("more", "0", second)};
  second.replace(second.find("[0]"), 3, R"("set")");
  texts[1].json = second;
  const std::vector<Mapping> families = parse_mappings(texts).value();
  EXPECT_EQ((*find_family(families, seeing("")))->family, "plain");
  EXPECT_EQ((*find_family(families, seeing(R"(, "text": {"kind": null})")))->family, "plain");
  EXPECT_EQ((*find_family(families, seeing(R"(, "text": {"kind": 128})")))->family, "more");
  const auto absent = find_family(std::span(families).subspan(1), seeing(""));
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("config.json has no text.kind, which family"));
}

TEST(Variant, ListsValues) {
  for (const char* wrong : {R"({"text.kind": []})", R"({"text.kind": "a"})", R"(["text.kind"])"}) {
    const std::string json = fmt::format(
        R"({{"family": "f", "architectures": ["A"], "model_types": ["a"], "needs_config": {},
             "sizes": {{}}, "rules": []}})",
        wrong);
    const auto parsed = parse_mapping(json, "f.json");
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_THAT(parsed.error().message, testing::StartsWith("f.json#/needs_config")) << wrong;
  }
}

TEST(Square, IsItsSide) {
  const Mapping mapping =
      parse_mapping(R"({"family": "f", "architectures": ["A"], "model_types": ["a"],
                        "sizes": {"patch": {"hf": "patch.side", "args": "patch_dim"},
                                  "merge": {"hf": "merge.side", "args": "merge.side"}},
                        "rules": []})",
                    "f.json")
          .value();
  const auto sizes = [&](const std::string& json) {
    return sizes_from_hf_config(mapping, read_hf_config(json).value());
  };
  EXPECT_EQ(sizes(R"({"patch": [14, 14], "merge": 2})")->at("patch"), 14);
  EXPECT_EQ(sizes(R"({"patch": 14, "merge": [2, 2]})")->at("merge"), 2);
  const auto oblong = sizes(R"({"patch": [14, 16], "merge": 2})");
  ASSERT_FALSE(oblong);
  EXPECT_THAT(oblong.error().message, HasSubstr("patch.side: found [14, 16]"));
  EXPECT_FALSE(sizes(R"({"patch": [], "merge": 2})"));

  const auto args =
      args_from_hf_config(mapping, read_hf_config(R"({"patch": [14, 14], "merge": 2})").value());
  EXPECT_THAT(args->values, testing::ElementsAre(testing::Pair("patch_dim", ArgValue{14L})));
  const auto config = config_from_args(
      mapping, {{"patch_dim", ArgValue{14L}}, {"merge", ArgValue{std::vector{2L, 2L}}}});
  EXPECT_THAT(config->json, testing::Not(HasSubstr("side")));
}

TEST(Choice, IsToldByASizeWhereThatIsKnown) {
  const Mapping mapping =
      parse_mapping(R"({"family": "f", "architectures": ["A"], "model_types": ["a"],
                        "sizes": {"biases": {"hf": "bias", "flag": true, "optional": true}},
                        "rules": [{"megatron": "m.w", "hf": "h.w"},
                          {"one_of": [[{"megatron": "m.b", "hf": "h.b"}], []],
                           "told_by": "biases"}]})",
                    "f.json")
          .value();
  const auto tensors = [](std::string_view module, bool has_bias) {
    std::vector<TensorDesc> made = {{fmt::format("{}.w", module), DType::kBF16, {2}}};
    if (has_bias) made.push_back({fmt::format("{}.b", module), DType::kBF16, {2}});
    return made;
  };
  for (const bool has_bias : {false, true}) {
    const auto sizes = [&](const char* config) {
      return sizes_from_hf_config(mapping, read_hf_config(config).value()).value();
    };
    const auto reads_hf = [&](const char* config) {
      return map_from_hf(mapping, sizes(config), tensors("h", has_bias)).has_value();
    };
    const auto reads_megatron = [&](const char* config) {
      return map_from_megatron(mapping, sizes(config), tensors("m", has_bias)).has_value();
    };
    EXPECT_TRUE(reads_hf("{}"));
    EXPECT_TRUE(reads_megatron("{}"));
    EXPECT_EQ(reads_hf(R"({"bias": true})"), has_bias);
    EXPECT_EQ(reads_megatron(R"({"bias": true})"), has_bias);
    EXPECT_TRUE(reads_hf(R"({"bias": false})")) << "told of, and passed over by transformers";
    EXPECT_EQ(reads_megatron(R"({"bias": false})"), !has_bias);
  }
}

TEST(Choice, TakesTheOptionThatLeavesLeast) {
  const Mapping mapping =
      parse_mapping(R"({"family": "f", "architectures": ["A"], "model_types": ["a"], "sizes": {},
                        "rules": [{"one_of": [
                          [{"megatron": "m", "hf": "h"},
                           {"megatron": "extra.a", "hf": "a", "optional": true}],
                          [{"megatron": "m", "hf": "h"},
                           {"megatron": "extra.b", "hf": "b", "optional": true}]]}]})",
                    "f.json")
          .value();
  for (const char* beside : {"a", "b"}) {
    const std::vector<TensorDesc> hf{{"h", DType::kBF16, {2}}, {beside, DType::kBF16, {3}}};
    const auto there = map_from_hf(mapping, {}, hf);
    ASSERT_TRUE(there) << there.error().message;
    std::vector<TensorDesc> megatron;
    for (const MappedTensor& tensor : there->megatron) megatron.push_back(tensor.desc);
    EXPECT_EQ(megatron.back().name, fmt::format("extra.{}", beside));
    const auto back = map_from_megatron(mapping, {}, megatron);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->hf.back().desc.name, beside);
  }
}

}  // namespace
}  // namespace shardwright
