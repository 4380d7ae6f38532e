// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "testing/golden_files.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// What a browser takes for the document's text.
std::string document_of(const std::string& html) {
  const std::string begin = R"(id="document">)";
  const std::size_t from = html.find(begin) + begin.size();
  return html.substr(from, html.find("</script>", from) - from);
}

TEST(Page, KeepsHostileTextsInside) {
  const std::vector<std::string> hostile = {"</script><script>alert(1)</script>",
                                            "<!--<script>",
                                            "]]>",
                                            "\xe2\x80\xa8",
                                            "&lt;",
                                            "\" onload=\"alert(1)",
                                            "\xff\xfe"};
  const std::string html = html_page(Json{{"names", hostile}}, "en");
  EXPECT_EQ(count_of(html, "<script"), 3u);
  EXPECT_EQ(count_of(html, "</script>"), 3u);
  EXPECT_THAT(html, Not(HasSubstr("<!--")));
  const Json read = Json::parse(document_of(html));
  for (std::size_t i = 0; i + 1 < hostile.size(); ++i) EXPECT_EQ(read["names"][i], hostile[i]);
  EXPECT_EQ(read["names"].back(), "\xef\xbf\xbd\xef\xbf\xbd");
}

// Whoever passes a page on passes d3 on, which its licences allow with their texts.
TEST(Page, HasTheLicenceOfWhatItDrawsWith) {
  const std::string licence = read_file(source_path("licenses/d3.txt"));
  for (const char* words : {"Mike Bostock", "Robert Penner", "Cynthia Brewer", "Charles Karney",
                            "and this permission notice appear in all copies"}) {
    EXPECT_THAT(licence, HasSubstr(words));
  }
  EXPECT_THAT(html_page(Json::object(), "en"), HasSubstr("<script>/*!\n" + licence + "*/\n"));
}

// The policy names what may run by its digest; tests in a browser show that it does run.
TEST(Page, LetsOnlyItsOwnScriptsRun) {
  const std::string html = html_page(Json::object(), "zh");
  EXPECT_THAT(html, HasSubstr("<html lang=\"zh\">"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(html, Not(HasSubstr("unsafe")));
  EXPECT_EQ(count_of(html.substr(0, html.find("<title>")), "'sha256-"), 3u);
}

TEST(Page, HasNothingInItsPartsThatEndsThem) {
  const PageParts parts = page_parts();
  EXPECT_THAT(parts.library, HasSubstr("// https://d3js.org v"));
  for (const std::string_view part : {parts.library, parts.script}) {
    EXPECT_EQ(count_of(part, "</script"), 0u);
    EXPECT_EQ(count_of(part, "<!--"), 0u);
  }
  EXPECT_EQ(count_of(parts.style, "</"), 0u);
  // Texts of checkpoints become text nodes: there is no other way in the page.
  for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                          ".html(", "eval(", "new Function"}) {
    EXPECT_EQ(count_of(parts.script, way), 0u) << way;
  }
}

}  // namespace
}  // namespace shardwright
