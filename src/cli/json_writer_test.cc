// SPDX-License-Identifier: Apache-2.0
#include "cli/json_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace shardwright::cli {
namespace {

TEST(JsonWriter, KeepsTheOrderOfTheCalls) {
  JsonWriter json;
  json.open_object().text("schema", "x/1").number("z", std::int64_t{-1});
  json.key("shape").open_row().number(std::int64_t{2}).number(std::int64_t{3}).close();
  json.key("a").open_list().open_object().flag("yes", true).close().null().close();
  json.key("none").open_list().close();
  json.key("empty").open_object().close();
  json.close();
  EXPECT_EQ(json.take(), R"({
  "schema": "x/1",
  "z": -1,
  "shape": [2, 3],
  "a": [
    {
      "yes": true
    },
    null
  ],
  "none": [],
  "empty": {}
}
)");
}

TEST(JsonWriter, EscapesText) {
  JsonWriter json;
  json.text("a\"b\\c\nd\x01\x7f\xff模");
  EXPECT_EQ(json.take(), "\"a\\\"b\\\\c\\nd\\u0001\\u007f\xEF\xBF\xBD模\"\n");
}

TEST(JsonWriter, WritesExtremeNumbers) {
  JsonWriter json;
  json.open_row();
  json.number(std::numeric_limits<std::int64_t>::min());
  json.number(std::numeric_limits<std::uint64_t>::max());
  json.real(0.5).real(std::numeric_limits<double>::infinity()).close();
  EXPECT_EQ(json.take(), "[-9223372036854775808, 18446744073709551615, 0.5, \"inf\"]\n");
}

TEST(JsonWriter, TextThatIsANumberIsOne) {
  for (const std::string number : {"0", "-0", "7", "-12", "0.5", "1e-05", "1E+7", "-1.25e300",
                                   "340282366920938463463374607431768211456"}) {
    JsonWriter json;
    json.number_text(number);
    EXPECT_EQ(json.take(), number + "\n");
  }
  for (const std::string text : {"", "-", "+1", "01", "1.", ".5", "1e", "1e+", "nan", "inf", "-inf",
                                 "1+2j", "0x1", "1 ", "True"}) {
    JsonWriter json;
    json.number_text(text);
    EXPECT_EQ(json.take(), "\"" + text + "\"\n");
  }
}

RC_GTEST_PROP(JsonWriter, AnyTextIsReadBackByAnotherParser, (const std::string& text)) {
  JsonWriter json;
  json.open_object().text(text, text).close();
  const nlohmann::json parsed = nlohmann::json::parse(json.take());
  RC_ASSERT(parsed.size() == 1u);
  RC_ASSERT(parsed.begin().key() == parsed.begin().value().get<std::string>());
}

}  // namespace
}  // namespace shardwright::cli
