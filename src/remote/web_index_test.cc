// SPDX-License-Identifier: Apache-2.0
#include "remote/web_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(WebIndex, HasTheNamesOfAPageThatListsAFolder) {
  const WebNames names = names_on_page(
      "<TITLE>Index of /m/</TITLE><a HREF='../'>up</a><a href=\"?C=M;O=A\">sort</a>"
      "<a href=\"/m/\">self</a><a href=\"/other/x\">away</a><a href=\"https://h/y\">away</a>"
      "<a href=\"b%20c&amp;d.bin\">b</a><a href=\"./a.json\">a</a><a href=\"/m/z/\">z</a>"
      "<a href=\"a.json\">again</a><a href=\"deep/er\">deep</a><a href=\"%2e%2e\">up</a>"
      "<a href=\"%zz\">no</a><a href=bare>no</a><a href=\"q#part\">no</a>",
      "/m/");
  EXPECT_THAT(names.files, ElementsAre("a.json", "b c&d.bin"));
  EXPECT_THAT(names.folders, ElementsAre("z"));
}

TEST(WebIndex, TakesNoOtherPageForAList) {
  const WebNames names = names_on_page("<title>Welcome</title><a href=\"config.json\">x</a>", "/");
  EXPECT_THAT(names.files, IsEmpty());
  EXPECT_THAT(names_on_page("<h1>Directory listing for /</h1><a href=\"x\">x</a>", "/").files,
              ElementsAre("x"));
  EXPECT_THAT(names_on_page("Index of /<a href=\"x", "/").files, IsEmpty());
  EXPECT_THAT(names_on_page("Index of /<a href=", "/").files, IsEmpty());
}

TEST(WebIndex, KnowsTheListsOfCaddy) {
  const WebNames names = names_on_page(
      "<title>run</title><h1>Folder Path</h1><a href=\"../\">up</a><a href=\"./?layout=grid\">grid"
      "</a><a href=\"./common.pt\">c</a><a href=\"./hf/\">hf</a>",
      "/run/");
  EXPECT_THAT(names.files, ElementsAre("common.pt"));
  EXPECT_THAT(names.folders, ElementsAre("hf"));
}

TEST(WebIndex, EntitiesAreUndoneOnce) {
  EXPECT_THAT(names_on_page(
                  "Index of /<a href=\"a&amp;quot;&#39;&lt;\">x</a><a href=\"b&amp;c&amp;d\">", "/")
                  .files,
              ElementsAre("a&quot;'<", "b&c&d"));
}

TEST(WebIndex, ModelsNameTheirFiles) {
  const auto files = files_in_index(
      R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors", "c": "1.safetensors",
          "d": "../up", "e": "deep/er", "f": 7}})",
      "index");
  ASSERT_TRUE(files);
  EXPECT_THAT(*files, ElementsAre("1.safetensors", "2.safetensors"));
  for (const char* text : {"[]", "{}", R"({"weight_map": []})", "{"}) {
    const auto refused = files_in_index(text, "index");
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kJsonCorrupt);
  }
}

TEST(WebIndex, RanksFilesOfMetaAreNumbered) {
  EXPECT_EQ(next_rank_file("consolidated.00.pth"), "consolidated.01.pth");
  EXPECT_EQ(next_rank_file("consolidated.09.pth"), "consolidated.10.pth");
  EXPECT_EQ(next_rank_file("consolidated.99.pth"), std::nullopt) << "some servers have everything";
  for (const char* name : {"consolidated.pth", "consolidated.0x.pth", "consolidated.00.pt",
                           "consolidated.00.pth.md5", "model.00.pth", "consolidated.-1.pth"}) {
    EXPECT_EQ(next_rank_file(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace shardwright
