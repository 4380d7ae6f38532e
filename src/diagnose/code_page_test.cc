// SPDX-License-Identifier: Apache-2.0
// Every error code has a page in both languages, and a test that expects it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <sstream>

#include "shardwright/diagnose.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// `kHole` -> `SW0307`, from the header itself.
std::map<std::string, std::string> all_codes() {
  std::istringstream header(read_file(source_path("include/shardwright/error.h")));
  std::map<std::string, std::string> codes;
  for (std::string line; std::getline(header, line);) {
    const std::size_t equals = line.find(" = ");
    if (!line.starts_with("  k") || !line.ends_with(",") || equals == std::string::npos) continue;
    const int number = std::stoi(line.substr(equals + 3));
    codes[line.substr(2, equals - 2)] = code_name(static_cast<Code>(number));
  }
  return codes;
}

// `Code::kHole` and nothing longer.
bool names_code(const std::string& text, const std::string& name) {
  const std::string code = "Code::" + name;
  for (std::size_t at = text.find(code); at != std::string::npos; at = text.find(code, at + 1)) {
    const char next = text[at + code.size()];
    if (std::isalnum(static_cast<unsigned char>(next)) == 0) return true;
  }
  return false;
}

// All tests' texts: C++ ones, those of the command line, of other software and of servers.
std::string all_tests() {
  std::string texts;
  for (const char* folder : {"src", "tests/cli", "tests/interop", "tests/remote"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path(folder))) {
      const std::string path = entry.path().string();
      const bool is_this = path.ends_with("code_page_test.cc");
      if (path.ends_with("_test.cc") || path.ends_with(".test") || path.ends_with(".py")) {
        if (!is_this) texts += read_file(path);
      }
    }
  }
  return texts;
}

// Whether a text in UTF-8 has characters of three bytes: U+0800 and above.
bool has_chinese(const std::string& text) {
  constexpr unsigned char kThreeBytes = 0xE0;
  return std::ranges::any_of(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xF0U) == kThreeBytes; });
}

TEST(CodePage, ThereIsOneForEachErrorInBothLanguages) {
  const auto codes = all_codes();
  ASSERT_GT(codes.size(), 50u);
  for (const auto& [language, file, action] :
       {std::tuple{Language::kEnglish, "docs/errors.md", "\nDo: "},
        std::tuple{Language::kChinese, "docs/errors_zh.md", "\n处理："}}) {
    const std::string guide = read_file(source_path(file));
    for (const auto& [name, code] : codes) {
      const auto page = code_page(code, language);
      ASSERT_TRUE(page) << name << ": " << page.error().message;
      EXPECT_THAT(*page, StartsWith(code + " "));
      EXPECT_THAT(*page, HasSubstr(action)) << code;
      EXPECT_THAT(guide, HasSubstr("\n## " + *page));
      const std::string title = code_title(code).in(language);
      EXPECT_EQ(page->substr(0, page->find('\n')), code + " " + title);
      EXPECT_EQ(has_chinese(title), language == Language::kChinese) << code << " " << title;
    }
    std::size_t headings = 0;
    for (std::size_t at = guide.find("\n## SW"); at != std::string::npos;
         at = guide.find("\n## SW", at + 1)) {
      ++headings;
    }
    EXPECT_EQ(headings, codes.size()) << file;
  }
}

TEST(CodePage, IsFoundByTheNumberAlone) {
  for (const char* code : {"SW0307", "sw0307", "0307", "307", "SW307"}) {
    const auto page = code_page(code, Language::kEnglish);
    ASSERT_TRUE(page) << code << ": " << page.error().message;
    EXPECT_THAT(*page, StartsWith("SW0307 ")) << code;
  }
  for (const char* code : {"L07", "l07", "7", "07"}) {
    const auto page = code_page(code, Language::kEnglish);
    ASSERT_TRUE(page) << code << ": " << page.error().message;
    EXPECT_THAT(*page, StartsWith("L07 ")) << code;
  }
  for (const char* code : {"", "SW", "SW12345", "398", "0", "99", "L"}) {
    EXPECT_FALSE(code_page(code, Language::kEnglish)) << code;
  }
}

TEST(CodePage, TheTitleOfAFindingIsItsPagesToo) {
  EXPECT_THAT(code_page("L09", Language::kChinese).value(),
              StartsWith("L09 " + code_title("L09").chinese + "\n"));
  EXPECT_EQ(code_title("SW0398").english, "");
  EXPECT_EQ(code_title("").chinese, "");
}

TEST(CodePage, EachErrorIsExpectedByATest) {
  const std::string tests = all_tests();
  for (const auto& [name, code] : all_codes()) {
    // Nothing can make a fault of our own happen on purpose.
    if (name == "kInternal") continue;
    const bool is_expected = names_code(tests, name) || tests.find(code) != std::string::npos;
    EXPECT_TRUE(is_expected) << name << " (" << code << ")";
  }
}

}  // namespace
}  // namespace shardwright
