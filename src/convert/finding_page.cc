// SPDX-License-Identifier: Apache-2.0
#include "convert/finding_page.h"

#include <algorithm>
#include <cctype>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "shardwright/diagnose.h"

namespace shardwright {
namespace {

// The section `## L07 ...` without its marks, up to the next one.
std::string section_of(std::string_view guide, const std::string& code) {
  const std::string heading = "\n## " + code + " ";
  const std::size_t at = guide.find(heading);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + 4;
  const std::size_t end = guide.find("\n## ", begin);
  std::string text(guide.substr(begin, end == std::string_view::npos ? end : end - begin));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text + "\n";
}

}  // namespace

Result<std::string> finding_page(std::string_view code, Language language) {
  std::string wanted(code);
  std::ranges::transform(wanted, wanted.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  const std::vector<std::string> codes = finding_codes();
  if (std::ranges::find(codes, wanted) != codes.end()) {
    return section_of(
        language == Language::kChinese ? diagnose_guide_chinese() : diagnose_guide_english(),
        wanted);
  }
  const std::vector<std::string_view> candidates(codes.begin(), codes.end());
  const std::string_view meant = nearest_of(wanted, candidates);
  const std::string hint = meant.empty()
                               ? fmt::format("expected {} to {}", codes.front(), codes.back())
                               : fmt::format("did you mean {}?", meant);
  return fail(Code::kUsage, "explain: found the unknown code '{}'; {}", printable(code), hint);
}

}  // namespace shardwright
