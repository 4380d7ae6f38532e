// SPDX-License-Identifier: Apache-2.0
#include "canonical/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/built_in_models.h"
#include "model/model_part.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

std::vector<std::string> families(const ConvertRequest& request, std::string_view config) {
  Checkpoint source;
  source.hf_config = config;
  std::vector<std::string> names;
  const auto mappings = load_mappings(request, source);
  for (const Mapping& mapping : mappings.value()) {
    EXPECT_FALSE(mapping.items.empty());
    names.push_back(mapping.family);
  }
  return names;
}

using Names = std::set<std::string>;

// The HF names of the rules that make Megatron tensors with this ending.
void collect_hf_names(const std::vector<Item>& items, std::string_view ending, Names& names) {
  for (const Item& item : items) {
    if (const auto* rule = std::get_if<Rule>(&item.value)) {
      if (!rule->megatron[0].text().ends_with(ending)) continue;
      for (const NameTemplate& name : rule->hf) names.insert(name.text());
    } else if (const auto* section = std::get_if<Section>(&item.value)) {
      collect_hf_names(section->items, ending, names);
    } else {
      for (const auto& option : std::get<Choice>(item.value).options) {
        collect_hf_names(option, ending, names);
      }
    }
  }
}

Names originals_of(const CopyRule& copy) {
  Names names;
  for (const NameTemplate& name : copy.originals) names.insert(name.text());
  return names;
}

// Those that are built in are read once for all requests: what one request adds is its own.
TEST(Families, OfARequestsOwnFileAreNotEveryones) {
  TemporaryFolder folder;
  folder.put("own.json", R"({"family": "own", "extends": "llama",
    "architectures": ["OwnForCausalLM"], "model_types": ["own"]})");
  ConvertRequest request;
  request.map_files = {folder / "own.json"};
  const auto has_own = [](const ConvertRequest& choice) {
    const Mappings all = load_all_mappings(choice).value();
    return std::ranges::find(all, "own", &Mapping::family) != all.end();
  };
  EXPECT_FALSE(has_own({}));
  EXPECT_TRUE(has_own(request));
  EXPECT_THAT(families(request, ""), testing::Contains("own"));
  EXPECT_FALSE(has_own({}));
}

// Models of one family spell the embedding in several ways; a head that repeats it must be known
// for a copy under each, or a trained embedding would be exported beside the old head.
TEST(Families, AHeadMayRepeatTheEmbeddingUnderEachOfItsNames) {
  std::size_t tied = 0;
  const Mappings mappings = load_all_mappings({}).value();
  for (const Mapping& mapping : mappings) {
    Names embeddings;
    Names heads;
    collect_hf_names(mapping.items, "embedding.word_embeddings.weight", embeddings);
    collect_hf_names(mapping.items, "output_layer.weight", heads);
    const bool has_words =
        std::ranges::find(mapping.sizes, "vocab", &SizeRule::name) != mapping.sizes.end();
    EXPECT_NE(embeddings.empty(), has_words) << mapping.family;
    const auto may_repeat = [&](const Names& names) {
      return std::ranges::any_of(names,
                                 [&](const auto& name) { return embeddings.contains(name); });
    };
    for (const CopyRule& copy : mapping.copies) {
      const Names names = originals_of(copy);
      if (may_repeat(names)) {
        EXPECT_EQ(names, embeddings) << mapping.family << ": " << copy.hf.hf.text();
      }
    }
    if (std::ranges::find(mapping.sizes, "tied", &SizeRule::name) == mapping.sizes.end()) continue;
    ++tied;
    for (const std::string& head : heads) {
      EXPECT_TRUE(std::ranges::any_of(mapping.copies,
                                      [&](const CopyRule& copy) {
                                        return copy.hf.hf.text() == head && copy.condition &&
                                               copy.condition->size == "tied" &&
                                               copy.condition->non_zero &&
                                               may_repeat(originals_of(copy));
                                      }))
          << mapping.family << ": " << head;
    }
  }
  EXPECT_GT(tied, 20U);
}

// So that none is parsed that isn't needed.
TEST(Families, ThatAreBuiltInHaveTheHeadingsOfTheirTexts) {
  const std::vector<MappingText> texts = built_in_models();
  EXPECT_GT(texts.size(), 60U);
  for (const MappingText& text : texts) {
    const auto heading = read_heading({text.name, text.json});
    ASSERT_TRUE(heading) << heading.error().text();
    EXPECT_EQ(text.heading.family, heading->family) << text.name;
    EXPECT_EQ(text.heading.architectures, heading->architectures) << text.name;
    EXPECT_EQ(text.heading.model_types, heading->model_types) << text.name;
    EXPECT_EQ(text.heading.extends, heading->extends) << text.name;
  }
}

// To parse all families takes longer than to hash a gigabyte.
TEST(Families, OnlyThoseOfTheModelAreParsed) {
  const ConvertRequest request;
  EXPECT_THAT(families(request, R"({"architectures": ["LlamaForCausalLM"]})"),
              testing::ElementsAre("llama"));
  EXPECT_THAT(
      families(request, R"({"architectures": ["LlamaForCausalLM"], "model_type": "qwen3"})"),
      testing::ElementsAre("llama"));
  EXPECT_THAT(families(request, R"({"model_type": "qwen3"})"), testing::ElementsAre("qwen3"));
  ConvertRequest named;
  named.family = "mixtral";
  EXPECT_THAT(families(named, R"({"model_type": "qwen3"})"), testing::ElementsAre("mixtral"));
}

TEST(Families, AllOfThemWhereNoneIsNamed) {
  const ConvertRequest request;
  const std::size_t all = load_all_mappings(request)->size();
  EXPECT_GT(all, 40);
  EXPECT_EQ(families(request, "").size(), all);
  EXPECT_EQ(families(request, R"({"architectures": ["NobodyKnowsMe"]})").size(), all);
  EXPECT_EQ(families(request, "no JSON").size(), all) << "told when the family is looked for";
  ConvertRequest unknown;
  unknown.family = "nobody";
  EXPECT_EQ(families(unknown, "").size(), all);
}

// Of names that the rules have for the language model's tensors, and those that its part has, the
// first are written: by convert, and by merge. Gemma 3's are Google's and transformers', which
// either reads.
void expect_parts_write(const Mapping& family, const std::vector<Item>& items) {
  for (const Item& item : items) {
    if (const auto* section = std::get_if<Section>(&item.value)) {
      expect_parts_write(family, section->items);
    } else if (const auto* choice = std::get_if<Choice>(&item.value)) {
      expect_parts_write(family, choice->options.front());
    }
    const auto* rule = std::get_if<Rule>(&item.value);
    if (rule == nullptr || rule->hf.empty()) continue;
    const std::string& name = rule->hf.front().text();
    const PartName own = part_name(family.parts, name);
    if (own.part == nullptr || own.part->name != "language") continue;
    std::vector<PartPrefix> first;
    for (const PartPrefix& prefix : own.part->prefixes) {
      const bool is_known = std::ranges::any_of(
          first, [&](const PartPrefix& other) { return other.alone == prefix.alone; });
      if (!is_known) first.push_back(prefix);
    }
    EXPECT_EQ(PartNaming(first).whole(own.alone), name) << family.family;
  }
}

TEST(Families, HaveTheSameNamesInRulesAndParts) {
  const auto mappings = load_all_mappings(ConvertRequest()).value();
  for (const Mapping& family : mappings) {
    if (family.family != "gemma3_vl") expect_parts_write(family, family.items);
  }
}

// Those of PEFT are called so. Classes of Llama 4 and Kimi-VL have kept the names of the files.
TEST(Families, HaveTheNamesOfTransformersModules) {
  const auto mappings = load_all_mappings(ConvertRequest()).value();
  const auto named = [&](std::string_view family, std::string_view name) {
    const auto found = std::ranges::find(mappings, family, &Mapping::family);
    return found == mappings.end() ? "no family" : module_name(found->parts, name);
  };
  EXPECT_EQ(named("llava", "language_model.model.norm.weight"), "model.language_model.norm.weight");
  EXPECT_EQ(named("llava", "language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(named("qwen2_5_vl", "model.norm.weight"), "model.language_model.norm.weight");
  EXPECT_EQ(named("gemma3_vl", "language_model.model.norm.weight"),
            "model.language_model.norm.weight");
  EXPECT_EQ(named("qwen2_5_omni", "thinker.model.norm.weight"),
            "thinker.model.language_model.norm.weight");
  EXPECT_EQ(named("llama", "model.norm.weight"), "model.norm.weight");
  for (const std::string_view family : {"llama4_vl", "kimi_vl"}) {
    EXPECT_EQ(named(family, "language_model.model.norm.weight"),
              "language_model.model.norm.weight");
    EXPECT_EQ(named(family, "language_model.lm_head.weight"), "language_model.lm_head.weight");
  }
}

TEST(Families, GivenFilesAreAlwaysRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "mine.json";
  ConvertRequest request;
  request.map_files = {path};
  const auto load = [&](std::string_view json) {
    folder.put("mine.json", std::string(json));
    Checkpoint source;
    source.hf_config = R"({"architectures": ["LlamaForCausalLM"]})";
    return load_mappings(request, source);
  };
  const auto taken = load(
      R"({"family": "mine", "extends": "llama", "architectures": ["Mine"], "model_types": ["m"]})");
  ASSERT_TRUE(taken) << taken.error().text();
  EXPECT_EQ(taken->size(), 2);
  const auto refused = load(R"({"family": "mine", "extends": "nobody"})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kMappingInvalid);
}

}  // namespace
}  // namespace shardwright
