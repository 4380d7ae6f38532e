// SPDX-License-Identifier: Apache-2.0
#include "model/transform.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "model/apply.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using testing::ElementsAre;

/// A mapping of one rule, with numbers that config files of no family need.
Mapping one_rule(const std::string& rule) {
  const std::string json = R"({
    "family": "sample", "architectures": ["Sample"], "model_types": ["sample"],
    "sizes": {"heads": {"hf": "heads"}, "groups": {"hf": "groups"}, "head_dim": {"hf": "head_dim"},
              "experts": {"hf": "experts", "optional": true},
              "wide": {"hf": "wide", "optional": true},
              "vocab": {"hf": "vocab", "optional": true}},
    "indices": {"expert": {"size": "experts"}},
    "rules": [)" + rule + "]}";
  Result<Mapping> mapping = parse_mapping(json, "sample.json");
  if (!mapping) throw std::runtime_error(mapping.error().message);
  return *std::move(mapping);
}

TensorDesc desc(const std::string& name, const Dims& shape) {
  return TensorDesc{name, DType::kBF16, shape};
}

/// The origins of the Megatron elements `m[..]` in order, for tensors with one axis.
std::vector<std::string> order_of(const Correspondence& correspondence) {
  std::vector<std::string> order;
  const auto origins = element_origins(correspondence);
  for (const MappedTensor& tensor : correspondence.megatron) {
    for (std::int64_t i = 0; i < tensor.desc.shape[0]; ++i) {
      const auto found = origins.find(tensor.desc.name + to_string(Dims{i}));
      std::string origin = found == origins.end() ? "none" : found->second;
      std::erase(origin, ',');
      order.push_back(origin);
    }
  }
  return order;
}

struct Sample {
  std::string rule;
  ModelSizes sizes;
  std::vector<TensorDesc> hf;
};

/// Maps both ways and checks that the ways agree.
Correspondence both_ways(const Sample& sample) {
  const Mapping mapping = one_rule(sample.rule);
  const auto forth = map_from_hf(mapping, sample.sizes, sample.hf);
  EXPECT_TRUE(forth) << forth.error().message;
  if (!forth) return {};
  std::vector<TensorDesc> megatron;
  for (const MappedTensor& tensor : forth->megatron) megatron.push_back(tensor.desc);
  const auto back = map_from_megatron(mapping, sample.sizes, megatron);
  EXPECT_TRUE(back) << back.error().message;
  if (!back) return {};
  EXPECT_EQ(block_lines(*back), block_lines(*forth));
  EXPECT_EQ(tensor_lines(back->hf), tensor_lines(forth->hf));
  return *forth;
}

const std::string kQkv = R"({"megatron": "m", "transform": "qkv",
                             "hf": {"v": "v", "q": "q", "k": "k"}})";

TEST(Qkv, InterleavesByGroup) {
  const auto result = both_ways({kQkv,
                                 {{"heads", 4}, {"groups", 2}, {"head_dim", 1}},
                                 {desc("q", {4}), desc("k", {2}), desc("v", {2})}});
  EXPECT_THAT(order_of(result),
              ElementsAre("q(0)", "q(1)", "k(0)", "v(0)", "q(2)", "q(3)", "k(1)", "v(1)"));
}

TEST(Qkv, ValuesMayBeKeys) {
  const Correspondence c = both_ways(
      {R"({"megatron": "m", "transform": "qkv", "absent": {"v": "k"}, "hf": {"q": "q", "k": "k"}})",
       {{"heads", 2}, {"groups", 2}, {"head_dim", 1}},
       {desc("q", {2}), desc("k", {2})}});
  EXPECT_EQ(order_of(c),
            (std::vector<std::string>{"q(0)", "k(0)", "k(0)", "q(1)", "k(1)", "k(1)"}));
}

TEST(Qkv, KeysAndValuesMayBeAbsent) {
  const Correspondence c = both_ways(
      {R"({"megatron": "m", "transform": "qkv", "absent": {"k": 0, "v": 0}, "hf": {"q": "q"}})",
       {{"heads", 2}, {"groups", 2}, {"head_dim", 1}},
       {desc("q", {2})}});
  EXPECT_EQ(order_of(c),
            (std::vector<std::string>{"q(0)", "none", "none", "q(1)", "none", "none"}));
  EXPECT_EQ(c.megatron[0].rest, 0.0);
}

TEST(Qkv, WithOneGroupIsPlainConcatenation) {
  const auto result = both_ways({kQkv,
                                 {{"heads", 2}, {"groups", 1}, {"head_dim", 2}},
                                 {desc("q", {4}), desc("k", {2}), desc("v", {2})}});
  EXPECT_THAT(order_of(result),
              ElementsAre("q(0)", "q(1)", "q(2)", "q(3)", "k(0)", "k(1)", "v(0)", "v(1)"));
}

TEST(Qkv, KeepsTheOutputGateOfAGroupTogether) {
  const std::string rule = R"({"megatron": "m", "transform": "qkv", "output_gate": true,
                               "hf": {"q": "q", "k": "k", "v": "v"}})";
  const auto result = both_ways({rule,
                                 {{"heads", 4}, {"groups", 2}, {"head_dim", 1}},
                                 {desc("q", {8}), desc("k", {2}), desc("v", {2})}});
  // HF q holds q0 z0 q1 z1 q2 z2 q3 z3.
  EXPECT_THAT(order_of(result), ElementsAre("q(0)", "q(2)", "q(1)", "q(3)", "k(0)", "v(0)", "q(4)",
                                            "q(6)", "q(5)", "q(7)", "k(1)", "v(1)"));
}

TEST(Qkv, UnpacksAConcatenatedTensor) {
  const auto result = both_ways({R"({"megatron": "m", "transform": "qkv", "hf": "h"})",
                                 {{"heads", 2}, {"groups", 2}, {"head_dim", 1}},
                                 {desc("h", {6})}});
  EXPECT_THAT(order_of(result), ElementsAre("h(0)", "h(2)", "h(4)", "h(1)", "h(3)", "h(5)"));
}

TEST(Grouped, InterleavesKeyAndValue) {
  const std::string rule = R"({"megatron": "m", "transform": "grouped", "count": "groups",
      "hf": {"k": "k", "v": "v"},
      "parts": [{"role": "k", "rows": "head_dim"}, {"role": "v", "rows": "head_dim"}]})";
  const auto result = both_ways(
      {rule, {{"heads", 2}, {"groups", 2}, {"head_dim", 1}}, {desc("k", {2}), desc("v", {2})}});
  EXPECT_THAT(order_of(result), ElementsAre("k(0)", "v(0)", "k(1)", "v(1)"));
}

TEST(Grouped, AllowsValuesNarrowerThanKeys) {
  const std::string rule = R"({"megatron": "m", "transform": "grouped", "count": "groups",
      "hf": {"q": "q", "k": "k", "v": "v"},
      "parts": [{"role": "q", "rows": "heads / groups * head_dim"},
                {"role": "k", "rows": "head_dim"}, {"role": "v", "rows": "1"}]})";
  const auto result = both_ways({rule,
                                 {{"heads", 2}, {"groups", 1}, {"head_dim", 2}},
                                 {desc("q", {4}), desc("k", {2}), desc("v", {1})}});
  EXPECT_THAT(order_of(result),
              ElementsAre("q(0)", "q(1)", "q(2)", "q(3)", "k(0)", "k(1)", "v(0)"));
}

TEST(Concat, PutsTheGateBeforeTheUpProjection) {
  const auto result = both_ways({R"({"megatron": "m", "transform": "concat", "hf": ["g", "u"]})",
                                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                                 {desc("u", {4}), desc("g", {4})}});
  EXPECT_THAT(order_of(result),
              ElementsAre("g(0)", "g(1)", "g(2)", "g(3)", "u(0)", "u(1)", "u(2)", "u(3)"));
}

TEST(Concat, TakesUnequalPartsFromItsExtents) {
  const auto result = both_ways({R"({"megatron": "m", "transform": "concat", "axis": 0,
                                     "hf": ["a", "b"], "extents": ["heads", "wide"]})",
                                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}, {"wide", 2}},
                                 {desc("a", {1}), desc("b", {2})}});
  EXPECT_THAT(order_of(result), ElementsAre("a(0)", "b(0)", "b(1)"));
}

TEST(Split, CutsOneTensorIntoSeveral) {
  const auto result = both_ways({R"({"megatron": ["a", "b"], "transform": "split",
                                     "hf": "h", "extents": ["heads", "wide"]})",
                                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}, {"wide", 2}},
                                 {desc("h", {3})}});
  EXPECT_THAT(order_of(result), ElementsAre("h(0)", "h(1)", "h(2)"));
  ASSERT_EQ(result.megatron.size(), 2U);
  EXPECT_EQ(result.megatron[1].desc.shape, (Dims{2}));
}

TEST(Split, ExtentsMustFillTheTensor) {
  const Sample sample{R"({"megatron": ["a", "b"], "transform": "split",
                          "hf": "h", "extents": ["heads", "wide"]})",
                      {{"heads", 1}, {"groups", 1}, {"head_dim", 1}, {"wide", 2}},
                      {}};
  for (const std::int64_t rows : {2, 4}) {
    const auto result =
        map_from_hf(one_rule(sample.rule), sample.sizes, std::vector{desc("h", {rows})});
    ASSERT_FALSE(result) << rows;
    EXPECT_EQ(result.error().code, Code::kShapeMismatch);
  }
  const auto back = map_from_megatron(one_rule(sample.rule), sample.sizes,
                                      std::vector{desc("a", {2}), desc("b", {1})});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, Code::kShapeMismatch);
}

TEST(Split, TheLastPartMayBeWhatIsLeft) {
  const Sample sample{R"({"megatron": ["a", "b"], "transform": "split",
                          "hf": "h", "extents": ["heads"]})",
                      {{"heads", 2}, {"groups", 1}, {"head_dim", 1}},
                      {desc("h", {5})}};
  const auto result = both_ways(sample);
  ASSERT_EQ(result.megatron.size(), 2U);
  EXPECT_EQ(result.megatron[0].desc.shape, (Dims{2}));
  EXPECT_EQ(result.megatron[1].desc.shape, (Dims{3}));
  const auto nothing =
      map_from_hf(one_rule(sample.rule), sample.sizes, std::vector{desc("h", {2})});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Code::kShapeMismatch);
}

TEST(Repeat, IsEachOfSeveralAndTheFirstGoesBack) {
  const Sample sample{R"({"megatron": ["a", "b"], "transform": "repeat", "hf": "h"})",
                      {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                      {desc("h", {5, 2})}};
  const auto result = both_ways(sample);
  ASSERT_EQ(result.megatron.size(), 2U);
  EXPECT_EQ(result.megatron[1].desc.shape, (Dims{5, 2}));
  ASSERT_EQ(result.blocks.size(), 2U);
  EXPECT_FALSE(result.blocks[0].repeats);
  EXPECT_TRUE(result.blocks[1].repeats);
  EXPECT_EQ(result.blocks[1].hf, result.blocks[0].hf);
  const auto unequal = map_from_megatron(one_rule(sample.rule), sample.sizes,
                                         std::vector{desc("a", {5, 2}), desc("b", {5, 3})});
  ASSERT_FALSE(unequal);
  EXPECT_EQ(unequal.error().code, Code::kShapeMismatch);
}

TEST(Interleaved, SeparatesAlternatingRows) {
  const auto result = both_ways({R"({"megatron": "m", "transform": "interleaved", "hf": "h"})",
                                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                                 {desc("h", {4})}});
  EXPECT_THAT(order_of(result), ElementsAre("h(0)", "h(2)", "h(1)", "h(3)"));
}

TEST(Grouped, ARowMayStandInMegatronSeveralTimes) {
  // Step 3.5's gates: one number of each head, in Megatron one of each of its channels.
  const std::string rule =
      R"({"megatron": "m", "transform": "grouped", "count": "groups", "hf": {"q": "q", "g": "g"},
          "parts": [{"role": "q", "rows": "head_dim"},
                    {"role": "g", "rows": 1, "repeat": "heads / groups", "copies": "head_dim"}]})";
  const auto result = both_ways(
      {rule, {{"heads", 4}, {"groups", 2}, {"head_dim", 3}}, {desc("q", {6}), desc("g", {4})}});
  EXPECT_THAT(order_of(result),
              ElementsAre("q(0)", "q(1)", "q(2)", "g(0)", "g(0)", "g(0)", "g(1)", "g(1)", "g(1)",
                          "q(3)", "q(4)", "q(5)", "g(2)", "g(2)", "g(2)", "g(3)", "g(3)", "g(3)"));
  const auto wide = map_from_hf(one_rule(rule), {{"heads", 4}, {"groups", 1}, {"head_dim", 1}},
                                std::vector{desc("q", {1}), desc("g", {4})});
  EXPECT_TRUE(wide) << "copies of one are none";
  for (const auto& [sizes, code] :
       {std::pair{ModelSizes{{"heads", 1 << 20}, {"groups", 1}, {"head_dim", 1 << 20}},
                  Code::kLimit},
        {ModelSizes{{"heads", 1 << 20}, {"groups", 1}, {"head_dim", 2}}, Code::kLimit}}) {
    const auto bad =
        map_from_hf(one_rule(rule), sizes, std::vector{desc("q", {1}), desc("g", {4})});
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, code);
  }
  const auto rows = map_from_hf(
      one_rule(R"({"megatron": "m", "transform": "grouped", "count": 1, "hf": {"g": "g"},
                   "parts": [{"role": "g", "rows": 2, "copies": 2}]})"),
      {{"heads", 1}, {"groups", 1}, {"head_dim", 1}}, std::vector{desc("g", {2})});
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Code::kShapeMismatch);
}

TEST(Unstack, PartsLackTheAxis) {
  for (const auto& [axis, shape, last] : {std::tuple{0, Dims{2, 3, 4}, "h(1, 2, 3)"},
                                          {1, Dims{3, 2, 4}, "h(2, 1, 3)"},
                                          {2, Dims{3, 4, 2}, "h(2, 3, 1)"}}) {
    const auto result =
        both_ways({fmt::format(R"({{"megatron": ["a", "b"], "transform": "unstack", "axis": {},
                                    "hf": "h"}})",
                               axis),
                   {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                   {desc("h", shape)}});
    ASSERT_EQ(result.megatron.size(), 2U);
    EXPECT_EQ(result.megatron[1].desc.shape, (Dims{3, 4}));
    EXPECT_EQ(element_origins(result).at("b(2, 3)"), last);
  }
  const Mapping mapping =
      one_rule(R"({"megatron": ["a", "b"], "transform": "unstack", "axis": 1, "hf": "h"})");
  const ModelSizes sizes{{"heads", 1}, {"groups", 1}, {"head_dim", 1}};
  for (const Dims& shape : {Dims{2}, Dims{2, 3}}) {
    const auto bad = map_from_hf(mapping, sizes, std::vector{desc("h", shape)});
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, Code::kShapeMismatch);
  }
  for (const auto& [a, b] : {std::pair{Dims{2}, Dims{3}}, {Dims{}, Dims{}}}) {
    const auto bad = map_from_megatron(mapping, sizes, std::vector{desc("a", a), desc("b", b)});
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, Code::kShapeMismatch);
  }
}

TEST(Swapped, ExchangesTheHalvesOfAnAxis) {
  const auto result =
      both_ways({R"({"megatron": "m", "transform": "swapped", "axis": 1, "hf": "h"})",
                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                 {desc("h", {1, 4})}});
  const auto origins = element_origins(result);
  EXPECT_EQ(origins.at("m(0, 0)"), "h(0, 2)");
  EXPECT_EQ(origins.at("m(0, 1)"), "h(0, 3)");
  EXPECT_EQ(origins.at("m(0, 2)"), "h(0, 0)");
}

TEST(UnitAxis, IsThereInHfAlone) {
  for (const auto& [axis, shape, last] : {std::tuple{0, Dims{1, 2, 3}, "h(0, 1, 2)"},
                                          {1, Dims{2, 1, 3}, "h(1, 0, 2)"},
                                          {2, Dims{2, 3, 1}, "h(1, 2, 0)"}}) {
    const auto result =
        both_ways({fmt::format(R"({{"megatron": "m", "transform": "unit_axis", "axis": {},
                                    "hf": "h"}})",
                               axis),
                   {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                   {desc("h", shape)}});
    ASSERT_EQ(result.megatron.size(), 1U);
    EXPECT_EQ(result.megatron[0].desc.shape, (Dims{2, 3}));
    EXPECT_EQ(element_origins(result).at("m(1, 2)"), last);
  }
}

TEST(UnitAxis, SeveralOfThemAreInMegatron) {
  for (const auto& [axis, shape, last] : {std::tuple{0, Dims{1, 1, 2, 3}, "m(0, 0, 1, 2)"},
                                          {1, Dims{2, 1, 1, 3}, "m(1, 0, 0, 2)"},
                                          {2, Dims{2, 3, 1, 1}, "m(1, 2, 0, 0)"}}) {
    const auto result =
        both_ways({fmt::format(R"({{"megatron": "m", "transform": "unit_axis", "axis": {},
                                    "count": 2, "side": "megatron", "hf": "h"}})",
                               axis),
                   {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                   {desc("h", {2, 3})}});
    ASSERT_EQ(result.megatron.size(), 1U);
    EXPECT_EQ(result.megatron[0].desc.shape, shape);
    EXPECT_EQ(element_origins(result).at(last), "h(1, 2)");
  }
}

TEST(Permute, UnpacksTransposedQueriesKeysAndValues) {
  // GPT-2's c_attn: input by output, [q | k | v].
  const auto result = both_ways({R"({"megatron": "m", "transform": "qkv", "permute": [1, 0],
                                     "hf": "h"})",
                                 {{"heads", 2}, {"groups", 2}, {"head_dim", 1}},
                                 {desc("h", {5, 6})}});
  EXPECT_EQ(result.megatron[0].desc.shape, (Dims{6, 5}));
  const auto origins = element_origins(result);
  EXPECT_EQ(origins.at("m(1, 4)"), "h(4, 2)") << "behind the first query its key";
  EXPECT_EQ(origins.at("m(3, 0)"), "h(0, 1)") << "then the second query";
}

TEST(Permute, SwapsAxesEvenOfSquareMatrices) {
  const auto result = both_ways({R"({"megatron": "m", "hf": "h", "permute": [1, 0]})",
                                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                                 {desc("h", {2, 2})}});
  const auto origins = element_origins(result);
  EXPECT_EQ(origins.at("m(0, 1)"), "h(1, 0)");
  EXPECT_EQ(origins.at("m(1, 0)"), "h(0, 1)");
}

TEST(Permute, CombinesWithInterleavedRows) {
  // A packed gate and up projection as GPT-OSS stores it: [experts, hidden, 2 * ffn].
  const auto result = both_ways({R"({"megatron": "m", "transform": "interleaved", "axis": 1,
                                     "hf": "h", "permute": [0, 2, 1]})",
                                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                                 {desc("h", {2, 3, 4})}});
  ASSERT_EQ(result.megatron.size(), 1U);
  EXPECT_EQ(result.megatron[0].desc.shape, (Dims{2, 4, 3}));
  const auto origins = element_origins(result);
  EXPECT_EQ(origins.at("m(1, 1, 2)"), "h(1, 2, 2)") << "second gate row is HF column 2";
  EXPECT_EQ(origins.at("m(1, 2, 0)"), "h(1, 0, 1)") << "first up row is HF column 1";
}

TEST(Stack, PutsExpertsAlongALeadingAxis) {
  const auto result = both_ways({R"({"megatron": "m", "transform": "concat",
                                     "hf": ["e.{expert}.g", "e.{expert}.u"]})",
                                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}, {"experts", 2}},
                                 {desc("e.0.g", {1, 3}), desc("e.0.u", {1, 3}),
                                  desc("e.1.g", {1, 3}), desc("e.1.u", {1, 3})}});
  ASSERT_EQ(result.megatron.size(), 1U);
  EXPECT_EQ(result.megatron[0].desc.shape, (Dims{2, 2, 3}));
  const auto origins = element_origins(result);
  EXPECT_EQ(origins.size(), 12U);
  EXPECT_EQ(origins.at("m(1, 0, 2)"), "e.1.g(0, 2)");
  EXPECT_EQ(origins.at("m(0, 1, 0)"), "e.0.u(0, 0)");
}

TEST(Constant, HasNoBlocksAndIsReadBack) {
  const Mapping mapping = one_rule(
      R"({"megatron": "m", "transform": "constant", "value": 1, "shape": ["heads", "groups"]})");
  const ModelSizes sizes{{"heads", 3}, {"groups", 2}, {"head_dim", 1}};
  const auto forth = map_from_hf(mapping, sizes, {});
  ASSERT_TRUE(forth) << forth.error().message;
  ASSERT_EQ(forth->megatron.size(), 1U);
  EXPECT_EQ(forth->megatron[0].constant, 1.0);
  EXPECT_EQ(forth->megatron[0].desc.shape, (Dims{3, 2}));
  const std::vector<TensorDesc> good{desc("m", {3, 2})};
  const auto back = map_from_megatron(mapping, sizes, good);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->megatron[0].constant, 1.0);
  EXPECT_TRUE(back->blocks.empty());
  const std::vector<TensorDesc> bad{desc("m", {2, 3})};
  EXPECT_EQ(map_from_megatron(mapping, sizes, bad).error().code, Code::kShapeMismatch);
}

TEST(Traits, ReachBothSides) {
  const auto result = both_ways({R"({"megatron": "m", "hf": "h", "add": -1, "dtype": "float32"})",
                                 {{"heads", 1}, {"groups", 1}, {"head_dim", 1}},
                                 {TensorDesc{"h", DType::kF32, {2}}}});
  ASSERT_EQ(result.megatron.size(), 1U);
  EXPECT_EQ(result.megatron[0].offset, -1.0);
  EXPECT_EQ(result.hf[0].offset, -1.0);
  EXPECT_TRUE(result.megatron[0].pinned_dtype);
}

TEST(Traits, APinnedDtypeOverridesThatOfHf) {
  const Mapping mapping = one_rule(R"({"megatron": "m", "hf": "h", "dtype": "float32"})");
  const ModelSizes sizes{{"heads", 1}, {"groups", 1}, {"head_dim", 1}};
  const std::vector<TensorDesc> hf{desc("h", {2})};
  const auto result = map_from_hf(mapping, sizes, hf);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->megatron[0].desc.dtype, DType::kF32);
  EXPECT_EQ(result->hf[0].desc.dtype, DType::kBF16);
}

struct BadShapes {
  std::string what;
  Sample sample;
  Code code;
  std::string message;
};

TEST(Shapes, ThatCannotBeMeantAreRefused) {
  const ModelSizes sizes{{"heads", 4}, {"groups", 2}, {"head_dim", 2}, {"experts", 2}};
  const ModelSizes odd{{"heads", 3}, {"groups", 2}, {"head_dim", 2}};
  const ModelSizes huge{{"heads", std::int64_t{1} << 40}, {"groups", 1}, {"head_dim", 1}};
  const std::string concat = R"({"megatron": "m", "transform": "concat", "hf": ["a", "b"]})";
  const std::vector<BadShapes> cases{
      {"k too short",
       {kQkv, sizes, {desc("q", {8}), desc("k", {3}), desc("v", {4})}},
       Code::kShapeMismatch,
       "4 rows in part 2"},
      {"columns differ",
       {kQkv, sizes, {desc("q", {8, 5}), desc("k", {4, 5}), desc("v", {4, 6})}},
       Code::kShapeMismatch,
       "(4, 6)"},
      {"heads and groups do not divide",
       {kQkv, odd, {desc("q", {6}), desc("k", {4}), desc("v", {4})}},
       Code::kNotDivisible,
       "3 / 2"},
      {"heads are absurd",
       {kQkv, huge, {desc("q", {8}), desc("k", {1}), desc("v", {1})}},
       Code::kShapeMismatch,
       "1099511627776"},
      {"a scalar",
       {kQkv, sizes, {desc("q", {}), desc("k", {4}), desc("v", {4})}},
       Code::kShapeMismatch,
       "at least 1 axes"},
      {"concat columns",
       {concat, sizes, {desc("a", {2, 3}), desc("b", {2, 4})}},
       Code::kShapeMismatch,
       "but for axis 0"},
      {"concat axes",
       {concat, sizes, {desc("a", {2, 3}), desc("b", {2})}},
       Code::kShapeMismatch,
       "(2,)"},
      {"odd interleaving",
       {R"({"megatron": "m", "transform": "interleaved", "hf": "h"})", sizes, {desc("h", {3})}},
       Code::kShapeMismatch,
       "multiple of 2"},
      {"swapped, odd",
       {R"({"megatron": "m", "transform": "swapped", "axis": 1, "hf": "h"})",
        sizes,
        {desc("h", {2, 7})}},
       Code::kShapeMismatch,
       "an even extent of axis 1"},
      {"swapped, too few axes",
       {R"({"megatron": "m", "transform": "swapped", "axis": 1, "hf": "h"})",
        sizes,
        {desc("h", {2})}},
       Code::kShapeMismatch,
       "at least 2 axes"},
      {"unit axis of two",
       {R"({"megatron": "m", "transform": "unit_axis", "hf": "h"})", sizes, {desc("h", {2, 4})}},
       Code::kShapeMismatch,
       "an extent of 1 at axis 0"},
      {"unit axis that is missing",
       {R"({"megatron": "m", "transform": "unit_axis", "axis": 1, "hf": "h"})",
        sizes,
        {desc("h", {4})}},
       Code::kShapeMismatch,
       "at least 2 axes"},
      {"split does not fit",
       {R"({"megatron": ["a", "b"], "transform": "split", "hf": "h",
            "extents": ["heads", "groups"]})",
        sizes,
        {desc("h", {7})}},
       Code::kShapeMismatch,
       "its 2 parts exactly"},
      {"permuted axes",
       {R"({"megatron": "m", "hf": "h", "permute": [1, 0]})", sizes, {desc("h", {7})}},
       Code::kShapeMismatch,
       "2 axes"},
      {"experts of different shape",
       {R"({"megatron": "m", "hf": "e.{expert}"})", sizes, {desc("e.0", {7}), desc("e.1", {8})}},
       Code::kShapeMismatch,
       "as in e.0"},
      {"expected shape",
       {R"({"megatron": "m", "hf": "h", "shape": ["heads", "2 * groups"]})",
        sizes,
        {desc("h", {4, 5})}},
       Code::kShapeMismatch,
       "expected (4, 4) = (heads, 2 * groups)"},
      {"mixed dtypes",
       {concat, sizes, {desc("a", {2}), TensorDesc{"b", DType::kF32, {2}}}},
       Code::kDtypeUnsupported,
       "found dtype float32, expected bfloat16"},
      {"overflow",
       {concat, sizes, {desc("a", {INT64_MAX}), desc("b", {INT64_MAX})}},
       Code::kLimit,
       "beyond 64 bits"},
  };
  for (const BadShapes& bad : cases) {
    const auto result = map_from_hf(one_rule(bad.sample.rule), bad.sample.sizes, bad.sample.hf);
    ASSERT_FALSE(result) << bad.what;
    EXPECT_EQ(result.error().code, bad.code) << bad.what << ": " << result.error().message;
    EXPECT_THAT(result.error().message, testing::HasSubstr(bad.message)) << bad.what;
  }
}

TEST(Shapes, OfMegatronTensorsAreRefusedTheSameWay) {
  const ModelSizes sizes{{"heads", 4}, {"groups", 2}, {"head_dim", 2}, {"experts", 2}};
  struct Case {
    std::string rule;
    Dims shape;
    std::string message;
  };
  const std::vector<Case> cases{
      {kQkv, {15, 3}, "16 rows in its groups"},
      {R"({"megatron": "m", "transform": "concat", "hf": ["a", "b"]})", {5}, "2 parts"},
      {R"({"megatron": "m", "hf": "e.{expert}"})", {3, 4}, "first axis of 2 ('expert')"},
      {R"({"megatron": "m", "hf": "e.{expert}"})", {}, "first axis of 2"},
      {R"({"megatron": "m", "transform": "interleaved", "hf": "h"})", {3}, "multiple of 2"},
      {R"({"megatron": "m", "hf": "h", "shape": ["groups"]})", {3}, "expected (2,) = (groups)"},
      {R"({"megatron": "m", "transform": "swapped", "hf": "h"})", {3}, "an even extent of axis 0"},
      {R"({"megatron": "m", "transform": "unit_axis", "axis": 2, "hf": "h"})", {3}, "2 to 7 axes"},
      {R"({"megatron": "m", "transform": "unit_axis", "count": 2, "side": "megatron", "hf": "h"})",
       {1, 2, 3},
       "an extent of 1 at axis 1"},
      {R"({"megatron": "m", "transform": "unit_axis", "count": 2, "side": "megatron", "hf": "h"})",
       {1},
       "at least 2 axes"},
  };
  for (const Case& bad : cases) {
    const std::vector<TensorDesc> megatron{desc("m", bad.shape)};
    const auto result = map_from_megatron(one_rule(bad.rule), sizes, megatron);
    ASSERT_FALSE(result) << bad.rule;
    EXPECT_EQ(result.error().code, Code::kShapeMismatch) << result.error().message;
    EXPECT_THAT(result.error().message, testing::HasSubstr(bad.message));
  }
}

const std::string kDealt = R"({"transform": "grouped", "hf": "h", "count": "groups",
    "megatron": {"q": "mq", "k": "mk", "v": "mv"},
    "parts": [{"role": "q", "rows": 1}, {"role": "k", "rows": 1},
              {"role": "v", "rows": "heads / groups"}], "shape": ["2 * groups + heads"]})";

// A gated delta net of two key heads and four value heads.
TEST(Dealt, TakesTheGroupsOfOneTensorApart) {
  const auto result =
      both_ways({kDealt, {{"groups", 2}, {"heads", 4}, {"head_dim", 1}}, {desc("h", {8})}});
  EXPECT_THAT(order_of(result),
              ElementsAre("h(0)", "h(4)", "h(1)", "h(5)", "h(2)", "h(3)", "h(6)", "h(7)"));
}

TEST(Dealt, RefusesShapesThatItsGroupsDoNotMakeUp) {
  const Mapping mapping = one_rule(kDealt);
  const ModelSizes sizes{{"groups", 2}, {"heads", 4}, {"head_dim", 1}};
  const auto wrong = map_from_hf(mapping, sizes, std::vector{desc("h", {9})});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kShapeMismatch);
  const auto parts = map_from_megatron(
      mapping, sizes, std::vector{desc("mq", {2}), desc("mk", {3}), desc("mv", {4})});
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, Code::kShapeMismatch);
}

// Both forms have the same names; which one a file has, its shapes tell, of all tensors together.
TEST(Choice, GoesByTheShapesOfFormsThatHaveTheSameNames) {
  const Mapping mapping = one_rule(R"({"one_of": [
      [{"megatron": "a", "hf": "x", "permute": [1, 0], "shape": ["heads", "groups"]},
       {"megatron": "b", "hf": "y", "permute": [1, 0], "shape": ["groups", "head_dim"]}],
      [{"megatron": "a", "hf": "x", "shape": ["heads", "groups"]},
       {"megatron": "b", "hf": "y", "shape": ["groups", "head_dim"]}]]})");
  const ModelSizes sizes{{"groups", 3}, {"heads", 3}, {"head_dim", 5}};
  const auto axes = [&](const Dims& y) {
    const auto mapped = map_from_hf(mapping, sizes, std::vector{desc("x", {3, 3}), desc("y", y)});
    EXPECT_TRUE(mapped) << mapped.error().message;
    return mapped ? to_string(mapped->blocks[0].hf_axis) : "";
  };
  EXPECT_EQ(axes({5, 3}), "(1, 0)");
  EXPECT_EQ(axes({3, 5}), "(0, 1)") << "x is square, y tells";
  const std::vector<TensorDesc> canonical{desc("a", {3, 3}), desc("b", {3, 5})};
  const std::vector<TensorDesc> then{desc("x", {3, 3}), desc("y", {3, 5})};
  const HfWanted wanted{then};
  EXPECT_EQ(map_from_megatron(mapping, sizes, canonical)->hf[1].desc.shape, (Dims{5, 3}));
  EXPECT_EQ(map_from_megatron(mapping, sizes, canonical, &wanted)->hf[1].desc.shape, (Dims{3, 5}));
  EXPECT_FALSE(map_from_hf(mapping, sizes, std::vector{desc("x", {3, 3}), desc("y", {5, 5})}));
}

}  // namespace
}  // namespace shardwright
