// SPDX-License-Identifier: Apache-2.0
#include "codec/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shardwright {
namespace {

using ::testing::HasSubstr;

void expect_json_refused(const std::string& text, Code code, const std::string& fragment) {
  const auto result = parse_json(text, "config.json");
  ASSERT_FALSE(result.has_value()) << text;
  EXPECT_EQ(result.error().code, code);
  EXPECT_THAT(result.error().message, HasSubstr(fragment)) << text;
  EXPECT_THAT(result.error().message, ::testing::StartsWith("config.json: "));
}

TEST(ParseJson, GivesTheDocument) {
  const std::string text = R"({"a": [1, -2, 2.5, true, null, "x\u00e9"], "b": {"c": {}}, "d": [],)"
                           R"( "e": 18446744073709551615})";
  EXPECT_EQ(parse_json(text, "x").value(), nlohmann::json::parse(text));
  EXPECT_EQ(parse_json("3", "x").value(), 3);
  EXPECT_EQ(parse_json("[[1],[2,[3]]]", "x").value().dump(), "[[1],[2,[3]]]");
}

TEST(ParseJson, KeepsTheOrderOfKeysWhenAsked) {
  const std::string text = R"({"z":1,"a":{"y":2,"b":3}})";
  EXPECT_EQ(parse_ordered_json(text, "x").value().dump(), text);
  EXPECT_EQ(parse_json(text, "x").value().dump(), R"({"a":{"b":3,"y":2},"z":1})");
}

TEST(ParseJson, RefusesMalformedTexts) {
  for (const char* text :
       {"{",           "}",        "[1,]",  "{\"a\":1,}", "{'a':1}", "{\"a\" 1}", "[1 2]",
        "01",          "+1",       "1.",    ".5",         "tru",     "\"\xff\"",  "\"\xc0\xaf\"",
        "\"\\ud800\"", "\"\x01\"", "[1] x", "// c\n1",    "\"abc",   "Infinit",   "nan"}) {
    expect_json_refused(text, Code::kJsonCorrupt, "expected a JSON text");
  }
  expect_json_refused("1e999", Code::kJsonCorrupt, "1e999");
}

TEST(ParseJson, RefusesRepeatedKeys) {
  expect_json_refused(R"({"a":1,"a":1})", Code::kJsonCorrupt, "the key 'a' twice");
  expect_json_refused(R"({"a":1,"\u0061":2})", Code::kJsonCorrupt, "the key 'a' twice");
  expect_json_refused(R"({"x":[{"b":{},"c":1,"b":{}}]})", Code::kJsonCorrupt, "the key 'b' twice");
  EXPECT_TRUE(parse_json(R"([{"a":1},{"a":2}])", "x"));
}

TEST(ParseJson, KeepsToItsLimits) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(100), "x"));
  expect_json_refused(nested(101), Code::kLimit, "more than 100 levels");
  expect_json_refused(nested(1'000'000), Code::kLimit, "more than 100 levels");
  expect_json_refused(std::string(1'000'000, '{'), Code::kJsonCorrupt, "parse error");
  EXPECT_EQ(parse_json("[1,2]", "x", {.text_bytes = 4}).error().code, Code::kLimit);
  EXPECT_TRUE(parse_json("[1,2]", "x", {.text_bytes = 5}));
}

TEST(ParseJson, TakesPythonsFloatsAsNull) {
  const auto document =
      parse_json(R"({"limit":[0.0, Infinity, -Infinity, NaN],"text":"Infinity \" NaN","NaN":1})",
                 "config.json");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->dump(), R"({"NaN":1,"limit":[0.0,null,null,null],"text":"Infinity \" NaN"})");
  expect_json_refused("NaNa", Code::kJsonCorrupt, "parse error");
}

TEST(JsonString, EscapesWhatMustBe) {
  EXPECT_EQ(json_string("a\"b\\c/\n\r\t\b\f\x01\x7f\xc3\xa9"),
            "\"a\\\"b\\\\c/\\n\\r\\t\\b\\f\\u0001\x7f\xc3\xa9\"");
}

TEST(JsonReason, DropsTheClassification) {
  EXPECT_EQ(json_reason("[json.exception.parse_error.101] parse error at line 1"),
            "parse error at line 1");
  EXPECT_EQ(json_reason("plain"), "plain");
}

}  // namespace
}  // namespace shardwright
