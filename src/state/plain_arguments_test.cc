// SPDX-License-Identifier: Apache-2.0
#include "state/plain_arguments.h"

#include <gtest/gtest.h>

#include <array>

#include "state/common_state.h"

namespace shardwright {
namespace {

using Named = std::vector<std::pair<std::string, ArgValue>>;

Arguments stored(const Named& arguments) {
  return CommonState::read(new_common_state(arguments, 1, false).value()).value().arguments();
}

TEST(PlainArguments, AreAsTheyWereStored) {
  const Named arguments = {{"a", ArgValue{}},
                           {"b", true},
                           {"c", std::int64_t{-3}},
                           {"d", 0.5},
                           {"e", std::string("text")},
                           {"f", std::vector<std::int64_t>{1, 2}},
                           {"g", std::vector<std::string>{"x", "y"}},
                           {"h", std::vector<double>{0.5, 2.0}}};
  EXPECT_EQ(stored(arguments), Arguments(arguments.begin(), arguments.end()));
}

// `--window-size 127,0` is one, and MindSpeed's `noop_layers` the other.
TEST(PlainArguments, TuplesAndSetsAreLists) {
  pickle::Document document;
  const std::array numbers = {document.integer(127), document.integer(0)};
  const pickle::Value args = document.object(document.global("argparse", "Namespace"));
  document.set_attribute(args, "window_size", document.sequence(pickle::Kind::kTuple, numbers));
  document.set_attribute(args, "noop_layers", document.sequence(pickle::Kind::kSet, numbers));
  const ArgValue list{std::vector<std::int64_t>{127, 0}};
  EXPECT_EQ(plain_arguments(args).value().at("window_size"), list);
  EXPECT_EQ(plain_arguments(args).value().at("noop_layers"), list);
}

TEST(PlainArguments, SayTheTypeOfMasterWeights) {
  pickle::Document document;
  const pickle::Value args = document.object(document.global("argparse", "Namespace"));
  document.set_attribute(args, "main_params_dtype", document.global("torch", "float16"));
  document.set_attribute(args, "params_dtype", document.global("torch", "bfloat16"));
  const Arguments arguments = plain_arguments(args).value();
  EXPECT_EQ(arguments.at("main_params_dtype"), ArgValue{std::string("float16")});
  EXPECT_FALSE(arguments.contains("params_dtype"));
}

// Stages and depths of prediction have no place in the older ones.
TEST(PlainArguments, SayANewLayerPatternTheOldWayToo) {
  const Arguments arguments = stored({{"hybrid_layer_pattern", std::string("M-M|*-/MM/MM")},
                                      {"hybrid_override_pattern", ArgValue{}}});
  EXPECT_EQ(arguments.at("hybrid_layer_pattern"), ArgValue{std::string("M-M|*-/MM/MM")});
  EXPECT_EQ(arguments.at("hybrid_override_pattern"), ArgValue{std::string("M-M*-")});
  EXPECT_EQ(arguments.at("mtp_hybrid_override_pattern"), ArgValue{std::string("MM")});
  const Arguments plain = stored({{"hybrid_layer_pattern", std::string("M*")}});
  EXPECT_EQ(plain.at("hybrid_override_pattern"), ArgValue{std::string("M*")});
  EXPECT_FALSE(plain.contains("mtp_hybrid_override_pattern"));
}

TEST(PlainArguments, KeepAnOldLayerPattern) {
  const Arguments both = stored({{"hybrid_layer_pattern", std::string("M*")},
                                 {"hybrid_override_pattern", std::string("MM*")}});
  EXPECT_EQ(both.at("hybrid_override_pattern"), ArgValue{std::string("MM*")});
  EXPECT_TRUE(stored({{"hybrid_layer_pattern", ArgValue{}}}).contains("hybrid_layer_pattern"));
}

}  // namespace
}  // namespace shardwright
