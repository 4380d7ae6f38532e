// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The rules of the house that a compiler does not know, as pure functions over text, so that the
// rules themselves can be tested on planted text.
namespace shardwright::tidy {

/// The project's text files: path relative to the root -> contents.
using Tree = std::map<std::string, std::string, std::less<>>;

/// One broken rule. `rule` and `path` together are what an exception names.
struct Finding {
  std::string rule;
  std::string path;
  std::string message;

  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

/// All text files below `root`, except build and hidden folders such as .git.
[[nodiscard]] Tree read_tree(const std::filesystem::path& root);

/// `#include` arrows between layers, and headers that belong in .cc files only.
[[nodiscard]] Findings check_includes(const Tree& tree);
/// Lines per file, columns per line, lines per function.
[[nodiscard]] Findings check_sizes(const Tree& tree);
/// Every .cc is named in a CMakeLists.txt of its folder or of one above it.
[[nodiscard]] Findings check_listed(const Tree& tree);
/// File names that say nothing, notes to self, missing licence lines.
[[nodiscard]] Findings check_words(const Tree& tree);
/// Paths of one machine and hosts of package registries.
[[nodiscard]] Findings check_machine_traces(const Tree& tree);
/// Error codes: every number once. Public headers: at most twelve.
[[nodiscard]] Findings check_public_api(const Tree& tree);

/// All of the above.
[[nodiscard]] Findings check_all(const Tree& tree);

/// Takes the findings that `allow` excuses away. A line of `allow` is `RULE PATH: REASON`; one that
/// excuses nothing, or has no reason, becomes a finding itself.
[[nodiscard]] Findings apply_exceptions(Findings findings, std::string_view allow);

/// Source text with comments, literals and preprocessor lines blanked, newlines kept.
[[nodiscard]] std::string code_only(std::string_view text);

struct Function {
  std::size_t first_line = 0;
  std::size_t lines = 0;
};
/// Function bodies of clang-formatted code, from the first line of the signature to the brace.
[[nodiscard]] std::vector<Function> find_functions(std::string_view text);

}  // namespace shardwright::tidy
