// SPDX-License-Identifier: Apache-2.0
#include "model/mapping_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/golden_family.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson minimal() {
  return OrderedJson::parse(R"({
    "family": "f", "architectures": ["F"], "model_types": ["f"],
    "sizes": {"layers": {"hf": "n"}, "experts": {"hf": "e"}, "tied": {"hf": "t", "default": 0}},
    "indices": {"layer": {"size": "layers"}, "expert": {"size": "experts"}},
    "groups": {"one": [{"megatron": "a", "hf": "b"}], "loop": [{"use": "loop"}]},
    "rules": [{"use": "one", "for": "layer", "megatron": "m.{layer}.", "hf": "h.{layer}."}]
  })");
}

/// The minimal mapping with `patch` (a JSON patch of "add" operations) applied.
std::string patched(const std::string& pointer, const std::string& value) {
  OrderedJson json = minimal();
  json[OrderedJson::json_pointer(pointer)] = OrderedJson::parse(value);
  return json.dump();
}

TEST(ParseMapping, ReadsAMinimalFile) {
  const auto mapping = parse_mapping(minimal().dump(), "f.json");
  ASSERT_TRUE(mapping) << mapping.error().message;
  EXPECT_EQ(mapping->family, "f");
  ASSERT_EQ(mapping->items.size(), 1U);
  const auto* section = std::get_if<Section>(&mapping->items[0].value);
  ASSERT_NE(section, nullptr);
  const auto* rule = std::get_if<Rule>(&section->items[0].value);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->megatron[0].text(), "m.{layer}.a");
  EXPECT_EQ(rule->hf[0].text(), "h.{layer}.b");
}

struct Malformed {
  std::string pointer;
  std::string value;
  std::string path;     // where the complaint points
  std::string message;  // a fragment of it
};

TEST(ParseMapping, NamesThePlaceOfEveryFault) {
  const std::vector<Malformed> cases{
      {"/colour", "1", "f.json#/colour", "an unknown field"},
      {"/family", "3", "f.json#/family", "a string"},
      {"/architectures", "[]", "f.json#", "no 'architectures'"},
      {"/model_types", "[]", "f.json#", "no 'model_types'"},
      {"/architectures", "[1]", "f.json#/architectures/0", "a string"},
      {"/sizes", "[]", "f.json#/sizes", "an object"},
      {"/sizes/x", "{}", "f.json#/sizes/x", "no source"},
      {"/sizes/x", R"({"hf": "x", "typo": 1})", "f.json#/sizes/x/typo", "an unknown field"},
      {"/sizes/x", R"({"hf": 4})", "f.json#/sizes/x/hf", "a string or a list"},
      {"/sizes/x", R"({"default": "x + 1"})", "f.json#/sizes/x/default", "'x' itself"},
      {"/sizes/x", R"({"default": "nope"})", "f.json#/sizes/x/default", "size 'nope'"},
      {"/sizes/x", R"({"default": "layers +"})", "f.json#/sizes/x/default", "expression"},
      {"/sizes/x", R"({"hf": "x", "shown_by": {"hf": "a", "megatron": "b", "axis": 8}})",
       "f.json#/sizes/x/shown_by/axis", "an axis, counted from 0"},
      {"/sizes/x", R"({"hf": "x", "shown_by": [{"megatron": "a", "axis": 0}]})",
       "f.json#/sizes/x/shown_by/0", "no 'hf'"},
      {"/sizes/x", R"({"hf": "x", "flag": 1})", "f.json#/sizes/x/flag", "true or false"},
      {"/indices/z", R"({"size": "nope"})", "f.json#/indices/z/size", "'nope'"},
      {"/indices/layers", R"({"size": "layers"})", "f.json#/indices/layers", "'layers'"},
      {"/indices/z", R"({})", "f.json#/indices/z", "no 'size'"},
      {"/latent_epsilon", "0.0", "f.json#/latent_epsilon", "a number above 0, or null"},
      {"/latent_epsilon", "\"1e-6\"", "f.json#/latent_epsilon", "a number above 0, or null"},
      {"/holds", R"({"tower.": ["norm.weight"]})", "f.json#/holds/tower.", "found 'tower.'"},
      {"/holds", R"({"tower.": [""]})", "f.json#/holds/tower./0", "no name"},
      {"/holds", R"({"tower.": "norm.weight"})", "f.json#/holds/tower.", "a list"},
      {"/rules", "{}", "f.json#/rules", "a list"},
      {"/rules/1", "7", "f.json#/rules/1", "an object"},
      {"/rules/1", R"({"use": "nope"})", "f.json#/rules/1/use", "group 'nope'"},
      {"/rules/1", R"({"use": "loop"})", "f.json#/groups/loop", "at most 8 levels"},
      {"/rules/1", R"({"use": "one", "for": "week"})", "f.json#/rules/1/for", "'week'"},
      {"/rules/1", R"({"use": "one", "extra": 1})", "f.json#/rules/1/extra", "an unknown field"},
      {"/rules/1", R"({"use": "one", "if": "nope"})", "f.json#/rules/1/if", "size 'nope'"},
      {"/rules/1", R"({"use": "one", "if": "tied", "unless": "tied"})", "f.json#/rules/1",
       "'if' and 'unless'"},
      {"/rules/1", R"({"one_of": [[]]})", "f.json#/rules/1/one_of", "1 options"},
      {"/rules/1", R"({"one_of": [[], {}]})", "f.json#/rules/1/one_of/1", "a list"},
      {"/rules/1", R"({"megatron": "x"})", "f.json#/rules/1", "no 'hf'"},
      {"/rules/1", R"({"hf": "x"})", "f.json#/rules/1", "no 'megatron'"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "colour": 1})", "f.json#/rules/1/colour",
       "an unknown field"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "transform": "rotate"})",
       "f.json#/rules/1/transform", "'rotate'"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "axis": 1})", "f.json#/rules/1", "field 'axis'"},
      {"/rules/1", R"({"megatron": "x", "hf": {"a": "y"}})", "f.json#/rules/1/hf",
       "no single name"},
      {"/rules/1", R"({"megatron": {"a": "y"}, "hf": "y"})", "f.json#/rules/1/megatron",
       "no single name"},
      {"/rules/1", R"({"megatron": "x {", "hf": "y"})", "f.json#/rules/1/megatron", "'x {'"},
      {"/rules/1", R"({"megatron": "x.{week}", "hf": "y"})", "f.json#/rules/1", "'{week}'"},
      {"/rules/1", R"({"megatron": "x.{expert}", "hf": "y.{expert}"})", "f.json#/rules/1",
       "'{expert}'"},
      {"/rules/1", R"({"megatron": "x", "hf": "y.{expert}.{layer}"})", "f.json#/rules/1",
       "'{layer}'"},
      {"/rules/1", R"({"megatron": "x", "transform": "concat", "hf": ["y.{expert}", "z"]})",
       "f.json#/rules/1", "'z' without '{expert}'"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "dtype": "float31"})", "f.json#/rules/1/dtype",
       "'float31'"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "add": "1"})", "f.json#/rules/1/add",
       "a number"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "permute": [0, 0]})",
       "f.json#/rules/1/permute/1", "every axis once"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "permute": [2, 0]})",
       "f.json#/rules/1/permute/0", "every axis once"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "permute": [1, 0], "vocabulary": true})",
       "f.json#/rules/1", "'vocabulary'"},
      {"/rules/1", R"({"megatron": "x", "hf": "y.{expert}", "vocabulary": true})",
       "f.json#/rules/1", "'vocabulary'"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "shape": []})", "f.json#/rules/1/shape",
       "0 extents"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "shape": ["nope"]})", "f.json#/rules/1/shape/0",
       "size 'nope'"},
      {"/rules/1", R"({"megatron": "x", "hf": "y", "aliases": "z"})", "f.json#/rules/1/aliases",
       "a list"},
      {"/rules/1", R"({"megatron": "x", "transform": "concat", "hf": "y"})", "f.json#/rules/1/hf",
       "1 name"},
      {"/rules/1", R"({"megatron": "x", "transform": "concat", "hf": ["y"]})", "f.json#/rules/1/hf",
       "1 name"},
      {"/rules/1", R"({"megatron": "x", "transform": "concat", "hf": ["y", "z"], "extents": [1]})",
       "f.json#/rules/1/extents", "1 extents"},
      {"/rules/1", R"({"megatron": "x", "transform": "concat", "hf": ["y", "z"], "axis": 8})",
       "f.json#/rules/1/axis", "0 to 7"},
      {"/rules/1", R"({"megatron": ["x", "w", "v"], "transform": "split", "hf": "y",
                       "extents": [1]})",
       "f.json#/rules/1/extents", "1 extents"},
      {"/rules/1", R"({"megatron": "x", "transform": "repeat", "hf": "y"})",
       "f.json#/rules/1/megatron", "1 name"},
      {"/rules/1", R"({"megatron": "x", "transform": "split", "hf": "y"})",
       "f.json#/rules/1/megatron", "1 name"},
      {"/rules/1", R"({"megatron": {"a": "x", "b": "w"}, "transform": "grouped", "count": 2,
                       "hf": {"a": "y", "b": "z"}, "parts": [{"role": "a", "rows": 1}]})",
       "f.json#/rules/1/hf", "one: 'megatron' names the parts"},
      {"/rules/1", R"({"megatron": {"a": "x", "b": "w"}, "transform": "grouped", "count": 2,
                       "hf": "y", "parts": [{"role": "a", "rows": 1}]})",
       "f.json#/rules/1/parts", "no part for 'b'"},
      {"/rules/1", R"({"megatron": "x", "transform": "unstack", "hf": "y"})",
       "f.json#/rules/1/megatron", "1 name"},
      {"/rules/1", R"({"megatron": ["x", "w"], "transform": "unstack", "hf": "y",
                       "permute": [1, 0]})",
       "f.json#/rules/1/permute", "none: the transform is unstack"},
      {"/rules/1", R"({"megatron": "x", "transform": "grouped", "count": 2, "hf": {"a": "y"},
                       "permute": [1, 0], "parts": [{"role": "a", "rows": 1, "copies": 2}]})",
       "f.json#/rules/1/parts/0", "'copies'"},
      {"/rules/1", R"({"megatron": ["x", "w"], "transform": "split",
                       "hf": "y", "aliases": ["z"]})",
       "f.json#/rules/1", "'aliases'"},
      {"/rules/1", R"({"megatron": ["x", "w"], "transform": "split",
                       "hf": "y.{expert}"})",
       "f.json#/rules/1", "several Megatron names"},
      {"/rules/1", R"({"megatron": "x", "transform": "qkv", "hf": {"q": "y", "k": "z"}})",
       "f.json#/rules/1/hf", "roles q, k"},
      {"/rules/1", R"({"megatron": "x", "transform": "qkv", "hf": {"q": "y", "k": "z", "w": "w"}})",
       "f.json#/rules/1/hf", "roles"},
      {"/rules/1", R"({"megatron": "x", "transform": "qkv", "hf": "y", "heads": "a / b"})",
       "f.json#/rules/1/heads", "the name of one size"},
      {"/rules/1", R"({"megatron": "x", "transform": "qkv", "hf": "y"})", "f.json#/rules/1/heads",
       "size 'heads'"},
      {"/rules/1", R"({"megatron": "x", "transform": "grouped", "hf": {"a": "y"}})",
       "f.json#/rules/1", "no 'count'"},
      {"/rules/1", R"({"megatron": "x", "transform": "grouped", "hf": {"a": "y"}, "count": 2,
                       "parts": [{"role": "b", "rows": 1}]})",
       "f.json#/rules/1/parts/0/role", "role 'b'"},
      {"/rules/1", R"({"megatron": "x", "transform": "grouped", "hf": {"a": "y", "b": "z"},
                       "count": 2, "parts": [{"role": "a", "rows": 1}]})",
       "f.json#/rules/1/parts", "no part for 'b'"},
      {"/rules/1", R"({"megatron": "x", "transform": "grouped", "hf": {"a": "y"}, "count": 2,
                       "parts": []})",
       "f.json#/rules/1/parts", "0 parts"},
      {"/rules/1", R"({"megatron": "x", "transform": "interleaved", "hf": "y", "ways": 1})",
       "f.json#/rules/1", "1 ways"},
      {"/rules/1", R"({"megatron": "x", "transform": "constant", "value": 1})", "f.json#/rules/1",
       "no 'shape'"},
      {"/rules/1", R"({"megatron": "x", "transform": "constant", "shape": [1]})", "f.json#/rules/1",
       "no 'value'"},
      {"/rules/1", R"({"megatron": "x", "transform": "constant", "hf": "y", "value": 1})",
       "f.json#/rules/1", "the transform is constant"},
      {"/rules/1", R"({"megatron": "x", "transform": "constant", "value": 1, "shape": [1],
                       "add": 1})",
       "f.json#/rules/1", "'add' on a constant"},
      {"/rules/1", R"({"use": "one", "for": "layer", "megatron": "m.{layer}.", "hf": "z."})",
       "f.json#/groups/one/0", "second rule for megatron 'm.{layer}.a'"},
      {"/rules/1", R"({"megatron": "x", "transform": "concat", "hf": ["y", "y"]})",
       "f.json#/rules/1", "second rule for hf 'y'"},
      {"/copies", R"([{"hf": "a", "emitted": true}])", "f.json#/copies/0",
       "'emitted' without 'original'"},
      {"/copies", R"([{"hf": "a.{week}", "original": "b"}])", "f.json#/copies/0/hf", "'{week}'"},
      {"/copies", R"([{"hf": "a", "original": "b.{layer}"}])", "f.json#/copies/0/original",
       "a loop variable of 'hf'"},
      {"/copies", R"([{"hf": "a", "original": ["b", "b.{layer}"]}])", "f.json#/copies/0/original/1",
       "a loop variable of 'hf'"},
      {"/copies", R"([{"hf": "a", "original": []}])", "f.json#/copies/0/original", "no names"},
      {"/ignore", R"(["a.{layer}.{expert}"])", "f.json#/ignore/0", "one loop variable"},
      {"/config", R"({"x": {}})", "f.json#/config/x", "no names"},
      {"/config", R"({"x": {"hf": "a"}})", "f.json#/config/x", "names of one side only"},
      {"/config", R"({"x": {"hf": "a", "args": "b", "map": [[1]]}})", "f.json#/config/x/map/0",
       "1 values"},
      {"/config", R"({"x": {"hf": "a", "args": "b", "kind": "odd"}})", "f.json#/config/x/kind",
       "'odd'"},
      {"/config", R"({"x": {"args": "b", "value": 1, "flag": true}})", "f.json#/config/x",
       "'flag' without 'size'"},
      {"/config", R"({"x": {"args": "b", "value": 1, "size": "layers"}})", "f.json#/config/x",
       "'value' and 'size'"},
      {"/config", R"({"x": {"args": "b", "value": ["a"]}})", "f.json#/config/x/value/0",
       "a whole number"},
      {"/config", R"({"x": {"args": "b", "kind": "window", "value": 1}})", "f.json#/config/x",
       "'hf' and 'args'"},
      {"/config", R"({"x": {"hf": "a", "args": "b", "kind": "sparse_step"}})", "f.json#/config/x",
       "1 HF names"},
      {"/extends", R"("nobody")", "f.json#/extends", "'nobody'"},
      {"/extends", R"("f")", "f.json#/extends", "no more than 8"},
      {"/abstract", "true", "f.json#/abstract", "a family to apply"},
  };
  for (const Malformed& bad : cases) {
    const std::string text = patched(bad.pointer, bad.value);
    const auto mapping = parse_mapping(text, "f.json");
    ASSERT_FALSE(mapping) << bad.pointer << " " << bad.value;
    const Error& error = mapping.error();
    EXPECT_EQ(error.code, Code::kMappingInvalid) << error.message;
    EXPECT_THAT(error.message, testing::StartsWith(bad.path)) << bad.value;
    EXPECT_THAT(error.message, testing::HasSubstr(bad.message)) << bad.value;
  }
}

TEST(ParseMapping, RefusesTextThatIsNoPlainDocument) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "a JSON text"},
      {"{", "a JSON text"},
      {"[]", "no 'family'"},
      {"{\"family\": \"a\", \"family\": \"b\"}", "key 'family' twice"},
      {"{\"family\": {\"x\": 1, \"x\": 2}}", "key 'x' twice"},
      {"{\"family\": " + deep + "}", "24 levels of nesting"},
      {"{} {}", "a JSON text"},
      {"{\"family\": \"\xff\"}", "a JSON text"},
      {std::string((std::size_t{256} << 10) + 1, ' '), "expected at most"},
  };
  for (const auto& [text, message] : cases) {
    const auto mapping = parse_mapping(text, "f.json");
    ASSERT_FALSE(mapping) << text.substr(0, 40);
    EXPECT_EQ(mapping.error().code, Code::kMappingInvalid);
    EXPECT_THAT(mapping.error().message, testing::HasSubstr(message));
    EXPECT_THAT(mapping.error().message, testing::StartsWith("f.json"));
  }
}

TEST(ParseMapping, BoundsWhatGroupsCanMultiplyTo) {
  OrderedJson json = minimal();
  json["groups"]["g0"] = OrderedJson::array();
  for (int i = 0; i < 20; ++i) {
    json["groups"]["g0"].push_back({{"megatron", fmt::format("m{}", i)}, {"hf", "h"}});
  }
  for (int level = 1; level < 6; ++level) {
    OrderedJson uses = OrderedJson::array();
    for (int i = 0; i < 20; ++i) uses.push_back({{"use", fmt::format("g{}", level - 1)}});
    json["groups"][fmt::format("g{}", level)] = uses;
  }
  json["rules"] = {{{"use", "g5"}}};
  const auto mapping = parse_mapping(json.dump(), "f.json");
  ASSERT_FALSE(mapping);
  EXPECT_THAT(mapping.error().message, testing::HasSubstr("more than 4096 rules"));
}

TEST(ParseMappings, OptionsOfAChoiceMayShareNames) {
  EXPECT_TRUE(parse_mapping(patched("/rules/1", R"({"one_of": [
      [{"megatron": "x", "hf": "y"}, {"megatron": "z", "hf": "w"}],
      [{"megatron": "x", "hf": "y"}]]})"),
                            "f.json"));
  EXPECT_FALSE(parse_mapping(patched("/rules/1", R"({"one_of": [
      [{"megatron": "x", "hf": "y"}, {"megatron": "x", "hf": "w"}], []]})"),
                             "f.json"));
}

TEST(ParseMappings, AChoiceIsToldByASizeBetweenRulesAndNone) {
  const auto parsed = [](const char* one_of, const char* size) {
    return parse_mapping(
        patched("/rules/1", fmt::format(R"({{"one_of": {}, "told_by": "{}"}})", one_of, size)),
        "f.json");
  };
  constexpr const char* kRule = R"([[{"megatron": "x", "hf": "y"}], []])";
  EXPECT_TRUE(parsed(kRule, "tied"));
  EXPECT_FALSE(parsed(kRule, "no_such_size"));
  EXPECT_FALSE(
      parsed(R"([[{"megatron": "x", "hf": "y"}], [{"megatron": "x", "hf": "z"}]])", "tied"));
}

TEST(ParseMappings, AFamilyChangesWhatItExtendsEntryByEntry) {
  const std::string base = minimal().dump();
  const std::string child = R"({"family": "child", "extends": "f", "architectures": ["C"],
      "model_types": ["c"], "sizes": {"width": {"hf": "w"}, "experts": null},
      "indices": {"expert": null}, "groups": {"one": [{"megatron": "c", "hf": "d"}]}})";
  const std::vector<MappingText> texts{{"child.json", child}, {"f.json", base}};
  const auto mappings = parse_mappings(texts);
  ASSERT_TRUE(mappings) << mappings.error().message;
  ASSERT_EQ(mappings->size(), 2U);
  const Mapping& mapping = (*mappings)[0];
  EXPECT_EQ(mapping.architectures, std::vector<std::string>{"C"});
  std::vector<std::string> sizes;
  for (const SizeRule& size : mapping.sizes) sizes.push_back(size.name);
  EXPECT_THAT(sizes, testing::UnorderedElementsAre("layers", "tied", "width"));
  const auto& section = std::get<Section>(mapping.items[0].value);
  EXPECT_EQ(std::get<Rule>(section.items[0].value).hf[0].text(), "h.{layer}.d");
}

// One may have none of the parts that are spoken of in what it extends.
TEST(ParseMappings, WhatPartsHoldIsInheritedPartByPart) {
  OrderedJson base = minimal();
  base["alike"] = OrderedJson::parse(R"([{"megatron": "tower.", "hf": "vision."},
                                         {"megatron": "projector.", "hf": "projector."}])");
  base["holds"] = OrderedJson::parse(R"({"tower.": ["a", ["b", "c"]], "projector.": ["d"]})");
  const std::string child = R"({"family": "child", "extends": "f", "architectures": ["C"],
      "model_types": ["c"], "alike": [{"megatron": "tower.", "hf": "tower."}], "holds": )";
  const std::string text = base.dump();
  const auto names_of_tower = [&](const std::string& holds) -> std::vector<std::string> {
    const std::string whole = child + holds + "}";
    const std::vector<MappingText> texts{{"child.json", whole}, {"f.json", text}};
    const auto mappings = parse_mappings(texts);
    if (!mappings) return {mappings.error().message};
    std::vector<std::string> names;
    for (const HeldTensor& held : (*mappings)[0].alike.at(0).holds) {
      names.insert(names.end(), held.names.begin(), held.names.end());
    }
    return names;
  };
  EXPECT_THAT(names_of_tower("{}"), testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_of_tower(R"({"tower.": ["e"]})"), testing::ElementsAre("e"));
  EXPECT_THAT(names_of_tower(R"({"tower.": null, "projector.": null})"), testing::IsEmpty());
  EXPECT_THAT(names_of_tower(R"({"projector.": ["e"]})"),
              testing::ElementsAre(testing::HasSubstr("child.json#/holds/projector.")));
}

// The limit is of the row of files, not of how they happen to be sorted.
TEST(ParseMappings, RowsOfExtendedFilesAreLimitedInAnyOrder) {
  for (const bool base_first : {true, false}) {
    for (const int files : {9, 10}) {
      std::vector<std::string> jsons;
      std::vector<MappingText> texts;
      for (int i = 0; i < files; ++i) {
        auto json = minimal();
        json["family"] = fmt::format("f{}", i);
        json["abstract"] = true;
        if (i > 0) {
          json = {{"family", json["family"]},
                  {"extends", fmt::format("f{}", i - 1)},
                  {"abstract", true}};
        }
        jsons.push_back(json.dump());
      }
      for (int i = 0; i < files; ++i) texts.push_back({fmt::format("f{}.json", i), jsons[i]});
      if (!base_first) std::ranges::reverse(texts);
      EXPECT_EQ(parse_mappings(texts).has_value(), files == 9) << base_first << files;
    }
  }
}

// Planning must not take longer the more families there are.
TEST(ParseMappings, ParsesOnlyWhatIsWantedAndWhatThatExtends) {
  const std::string base = minimal().dump();
  const std::string child = R"({"family": "child", "extends": "f", "architectures": ["C"],
      "model_types": ["c"]})";
  const std::vector<MappingText> texts{{"child.json", child, {"child", {"C"}, {"c"}, {"f"}}},
                                       {"f.json", base, {"f", {}, {}, {}}},
                                       {"other.json", "no JSON", {"other", {"O"}, {"o"}, {}}}};
  const auto of = [&](std::string_view family) {
    return parse_mappings(texts, [=](const Mapping& names) { return names.family == family; });
  };
  const auto wanted = of("child");
  ASSERT_TRUE(wanted) << wanted.error().message;
  ASSERT_EQ(wanted->size(), 1U);
  EXPECT_FALSE((*wanted)[0].items.empty());
  EXPECT_EQ(of("other").error().code, Code::kMappingInvalid);
  EXPECT_FALSE(parse_mappings(texts));
}

TEST(ParseMappings, RefusesTwoFilesForOneFamily) {
  const std::string text = minimal().dump();
  const std::vector<MappingText> texts{{"a.json", text}, {"b.json", text}};
  const auto mappings = parse_mappings(texts);
  ASSERT_FALSE(mappings);
  EXPECT_THAT(mappings.error().message, testing::StartsWith("b.json#/family"));
}

/// Whether a key may have a value that both know. No values: any that is set.
bool share_a_value(const NeededConfig& a, const NeededConfig& b) {
  const auto is_known = [&](const ArgValue& value) {
    if (b.values.empty()) return value != ArgValue{};
    return std::ranges::find(b.values, value) != b.values.end();
  };
  if (a.values.empty()) return b.values.empty() || share_a_value(b, a);
  return std::ranges::any_of(a.values, is_known);
}

/// Whether no config.json is a variant that both families know: they ask other values of some key.
bool exclude_each_other(const Mapping& a, const Mapping& b) {
  for (const NeededConfig& of_a : a.needs_config) {
    for (const NeededConfig& of_b : b.needs_config) {
      if (of_a.key == of_b.key && !share_a_value(of_a, of_b)) return true;
    }
  }
  return false;
}

TEST(ShippedMappings, CoverTheFamiliesOfTheirNames) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("models"))) {
    if (entry.is_directory()) continue;
    const std::string name = entry.path().stem();
    const OrderedJson file = OrderedJson::parse(read_file(entry.path()));
    if (name != "schema" && !file.value("abstract", false)) files.insert(name);
  }
  std::set<std::string> families;
  std::map<std::string, std::vector<const Mapping*>> by_architecture;
  for (const Mapping& mapping : shipped_mappings()) {
    families.insert(mapping.family);
    for (const std::string& name : mapping.architectures) {
      for (const Mapping* other : by_architecture[name]) {
        EXPECT_TRUE(exclude_each_other(mapping, *other)) << name << " has two families";
      }
      by_architecture[name].push_back(&mapping);
    }
  }
  EXPECT_EQ(families, files);
  EXPECT_TRUE(families.contains("llama"));
}

/// Collects the field names that objects of a mapping file use.
void collect_keys(const OrderedJson& value, std::set<std::string>& keys) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      keys.insert(key);
      collect_keys(member, keys);
    }
  } else if (value.is_array()) {
    for (const OrderedJson& element : value) collect_keys(element, keys);
  }
}

TEST(Schema, DefinesEveryFieldThatTheParserKnows) {
  const OrderedJson schema = OrderedJson::parse(read_file(source_path("models/schema.json")));
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  std::set<std::string> keys;
  collect_keys(schema, keys);
  for (const char* field : {"family",       "extends",     "abstract",     "architectures",
                            "model_types",  "needs_args",  "needs_config", "side",
                            "sizes",        "indices",     "groups",       "rules",
                            "copies",       "ignore",      "config",       "about",
                            "args_if",      "default",     "optional",     "flag",
                            "first_wins",   "size",        "observed",     "use",
                            "for",          "megatron",    "hf",           "if",
                            "unless",       "one_of",      "transform",    "aliases",
                            "vocabulary",   "dtype",       "add",          "permute",
                            "shape",        "axis",        "extents",      "heads",
                            "head_dim",     "output_gate", "count",        "parts",
                            "role",         "rows",        "repeat",       "stride",
                            "offset",       "ways",        "value",        "original",
                            "emitted",      "kind",        "args",         "map",
                            "else",         "when_set",    "integer",      "inferred",
                            "beyond_args",  "inert",       "named",        "none_without",
                            "computed",     "alike",       "holds",        "latent_epsilon",
                            "mixer_epsilon"}) {
    EXPECT_TRUE(keys.contains(field)) << field;
  }
}

}  // namespace
}  // namespace shardwright
