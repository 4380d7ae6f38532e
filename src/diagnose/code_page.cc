// SPDX-License-Identifier: Apache-2.0
#include "diagnose/code_page.h"

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

// The codes of the errors that have a section.
std::vector<std::string> error_codes() {
  constexpr std::string_view kHeading = "\n## SW";
  constexpr std::size_t kDigits = 4;
  std::vector<std::string> codes;
  const std::string_view guide = errors_guide_english();
  for (std::size_t at = guide.find(kHeading); at != std::string_view::npos;
       at = guide.find(kHeading, at + 1)) {
    codes.push_back("SW" + std::string(guide.substr(at + kHeading.size(), kDigits)));
  }
  return codes;
}

// The code as it is printed: `307`, `sw307` and `SW0307` are one.
std::string whole_code(std::string_view code) {
  constexpr std::size_t kDigits = 4;
  constexpr std::size_t kFewest = 3;  // fewer are the number of a finding
  std::string wanted(code);
  std::ranges::transform(wanted, wanted.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  std::string_view number = wanted;
  if (number.starts_with("SW")) number.remove_prefix(2);
  const bool is_number = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number || number.empty() || number.size() > kDigits) return wanted;
  if (number.size() < kFewest) return wanted == number ? fmt::format("L{:0>2}", number) : wanted;
  return fmt::format("SW{:0>4}", number);
}

std::string title_in(std::string_view guide, std::string_view code) {
  const std::string section = section_of(guide, std::string(code));
  if (section.empty()) return {};
  return section.substr(code.size() + 1, section.find('\n') - code.size() - 1);
}

}  // namespace

Phrase code_title(std::string_view code) {
  if (code.starts_with("SW")) {
    return {title_in(errors_guide_english(), code), title_in(errors_guide_chinese(), code)};
  }
  return {title_in(diagnose_guide_english(), code), title_in(diagnose_guide_chinese(), code)};
}

Result<std::string> code_page(std::string_view code, Language language) {
  const std::string wanted = whole_code(code);
  const bool is_chinese = language == Language::kChinese;
  const std::vector<std::string> findings = finding_codes();
  if (std::ranges::find(findings, wanted) != findings.end()) {
    return section_of(is_chinese ? diagnose_guide_chinese() : diagnose_guide_english(), wanted);
  }
  const std::vector<std::string> errors = error_codes();
  if (std::ranges::find(errors, wanted) != errors.end()) {
    return section_of(is_chinese ? errors_guide_chinese() : errors_guide_english(), wanted);
  }
  std::vector<std::string_view> candidates(findings.begin(), findings.end());
  candidates.insert(candidates.end(), errors.begin(), errors.end());
  const std::string_view meant = nearest_of(wanted, candidates);
  const std::string hint = meant.empty()
                               ? translated("expected {} to {} or {} to {}", findings.front(),
                                            findings.back(), errors.front(), errors.back())
                               : translated("did you mean {}?", meant);
  return fail(Code::kUsage, "explain: unknown code '{}'; {}", printable(code), hint);
}

}  // namespace shardwright
