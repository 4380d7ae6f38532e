// SPDX-License-Identifier: Apache-2.0
#include "tidy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

namespace shardwright::tidy {
namespace {

using std::string;
using std::string_view;

struct Layer {
  string_view name;
  std::vector<string_view> uses;
};

/// Which layer may include which: the table of ARCHITECTURE.md. plan, model, layout and tensor see
/// neither io nor format, so that they stay testable without files.
const std::vector<Layer>& layers() {
  static const std::vector<Layer> table = {
      {"testing", {}},  // what tests share: see is_for_tests
      {"base", {}},
      {"tensor", {"base"}},
      {"comm", {"base"}},
      {"io", {"base", "tensor"}},
      {"codec", {"base", "tensor", "io"}},
      {"layout", {"base", "tensor"}},
      {"format", {"base", "tensor", "io", "codec", "layout"}},
      {"model", {"base", "tensor", "layout", "codec"}},
      {"plan", {"base", "tensor", "layout", "model"}},
      {"exec", {"base", "tensor", "comm", "io", "codec", "format", "plan"}},
      {"convert",
       {"base", "tensor", "comm", "io", "codec", "format", "layout", "model", "plan", "exec"}},
      {"verify",
       {"base", "tensor", "comm", "io", "codec", "format", "layout", "model", "plan", "exec",
        "convert"}},
      {"cli",
       {"base", "tensor", "comm", "io", "codec", "format", "layout", "model", "plan", "exec",
        "verify", "convert"}},
      {"python",
       {"base", "tensor", "comm", "io", "codec", "format", "layout", "model", "plan", "exec",
        "verify", "convert", "cli"}},
  };
  return table;
}

/// Whose types a public header declares.
const std::map<string_view, string_view>& public_header_layers() {
  static const std::map<string_view, string_view> table = {
      {"error.h", "base"},      {"tensor.h", "tensor"},   {"catalog.h", "tensor"},
      {"storage.h", "io"},      {"format.h", "format"},   {"checkpoint.h", "format"},
      {"layout.h", "layout"},   {"parallel.h", "layout"}, {"mapping.h", "model"},
      {"plan.h", "plan"},       {"execute.h", "exec"},    {"verify.h", "verify"},
      {"convert.h", "convert"}, {"merge.h", "convert"},   {"diagnose.h", "layout"},
  };
  return table;
}

bool ends_with_any(string_view text, std::initializer_list<string_view> endings) {
  return std::ranges::any_of(endings, [&](string_view end) { return text.ends_with(end); });
}

bool is_cxx(string_view path) { return ends_with_any(path, {".cc", ".h"}); }

bool is_test(string_view path) { return path.starts_with("tests/") || path.ends_with("_test.cc"); }

/// Tests, and what those of one layer share.
bool is_for_tests(string_view path) {
  return is_test(path) || path.contains("golden") || path.contains("fixture");
}

/// What people wrote by hand: the word rules don't apply to recorded checkpoints.
bool is_source(string_view path) {
  return !path.starts_with("tests/golden/") &&
         (is_cxx(path) || ends_with_any(path, {".py", ".sh", ".cmake", "CMakeLists.txt", ".md"}) ||
          path == "dev" || path == ".ci/run");
}

std::vector<string_view> split_lines(string_view text) {
  std::vector<string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

string_view trim(string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// `word` in `text`, not as a part of a longer name of word characters or `also`.
bool has_word(string_view text, string_view word, string_view also = "") {
  const auto joins = [&](char c) { return is_word_char(c) || also.contains(c); };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !joins(text[at - 1])) && (end == text.size() || !joins(text[end]))) return true;
  }
  return false;
}

string_view file_name(string_view path) { return path.substr(path.rfind('/') + 1); }

string_view folder(string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? string_view{} : path.substr(0, slash);
}

const Layer* find_layer(string_view name) {
  const auto found = std::ranges::find(layers(), name, &Layer::name);
  return found == layers().end() ? nullptr : &*found;
}

/// The layer of a file below src/, include/ or python/; nullptr for files that have none.
const Layer* layer_of(string_view path) {
  if (path.starts_with("src/")) {
    const string_view rest = path.substr(4);
    return find_layer(rest.substr(0, rest.find('/')));
  }
  if (path.starts_with("python/")) return find_layer("python");
  if (path.starts_with("include/shardwright/")) {
    const auto found = public_header_layers().find(file_name(path));
    return found == public_header_layers().end() ? nullptr : find_layer(found->second);
  }
  return nullptr;
}

/// The name inside `#include "..."` or `#include <...>`, and which of the two.
struct Include {
  string_view name;
  bool quoted = false;
};

Include parse_include(string_view line) {
  line = trim(line);
  if (!line.starts_with('#')) return {};
  line = trim(line.substr(1));
  if (!line.starts_with("include")) return {};
  line = trim(line.substr(7));
  if (line.size() < 2 || (line[0] != '"' && line[0] != '<')) return {};
  const bool quoted = line[0] == '"';
  const std::size_t end = line.find(quoted ? '"' : '>', 1);
  return end == line.npos ? Include{} : Include{line.substr(1, end - 1), quoted};
}

void check_arrow(const string& path, const Layer& from, string_view name, Findings& findings) {
  // The package's own are not below src/.
  const bool is_beside = path.starts_with("python/") && !name.contains('/');
  const string header =
      is_beside ? fmt::format("{}/{}", folder(path), name)
                : fmt::format("{}{}", name.starts_with("shardwright/") ? "include/" : "src/", name);
  const Layer* to = layer_of(header);
  if (to == nullptr) {
    findings.push_back({"include-unknown", path,
                        fmt::format("\"{}\" belongs to no layer; give it one in the tables of "
                                    "tests/tidy.cc or write its path from src/",
                                    name)});
  } else if (to->name == "testing" && is_for_tests(path)) {
    return;
  } else if (to->name != from.name && std::ranges::find(from.uses, to->name) == from.uses.end()) {
    findings.push_back({"include-arrow", path,
                        fmt::format("{} may not use {} (\"{}\")", from.name, to->name, name)});
  }
}

void check_system_include(const string& path, string_view layer, string_view name,
                          Findings& findings) {
  const bool heavy = name.starts_with("yaml-cpp/") || name.starts_with("CLI/") ||
                     (name.starts_with("nlohmann/") && name != "nlohmann/json_fwd.hpp");
  if (heavy && path.ends_with(".h")) {
    findings.push_back(
        {"include-heavy", path, fmt::format("<{}> belongs in .cc files only", name)});
  }
  if ((name == "regex" || name == "iostream") && layer != "cli") {
    findings.push_back(
        {"include-banned", path, fmt::format("<{}> has no place in the library", name)});
  }
  if (name == "mpi.h") {
    findings.push_back({"include-banned", path, "<mpi.h> belongs to the mpi target only"});
  }
}

void check_lengths(const string& path, string_view text, Findings& findings) {
  const auto lines = split_lines(text);
  const std::size_t limit = path.ends_with(".h") ? 250 : is_test(path) ? 1000 : 500;
  if (lines.size() > limit) {
    findings.push_back(
        {"file-lines", path, fmt::format("{} lines, limit {}", lines.size(), limit)});
  }
  if (!is_cxx(path)) return;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // A column is a code point: what is not a UTF-8 continuation byte.
    const auto columns = std::ranges::count_if(
        lines[i], [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    if (columns > 100) {
      findings.push_back({"columns", path, fmt::format("line {}: {} columns", i + 1, columns)});
    }
  }
}

string without_comments(string_view cmake) {
  string result;
  for (const string_view line : split_lines(cmake)) {
    result += line.substr(0, line.find('#'));
    result += '\n';
  }
  return result;
}

bool is_listed(string_view path, string_view cmake) {
  const string_view name = file_name(path);
  if (has_word(cmake, name, ".-")) return true;
  for (const string_view prefix : {"fuzz_", "bench_"}) {
    if (!name.starts_with(prefix)) continue;
    const string call = fmt::format("sw_{}({}", prefix.substr(0, prefix.size() - 1),
                                    name.substr(prefix.size(), name.size() - prefix.size() - 3));
    if (has_word(cmake, call, "-")) return true;
  }
  return false;
}

/// The words of a path, cut at everything that is not a letter or digit.
std::set<string> path_words(string_view path) {
  std::set<string> words;
  string word;
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else {
      words.insert(std::exchange(word, {}));
    }
  }
  words.insert(word);
  return words;
}

bool says_nothing(string_view path, string_view word) {
  for (const string_view banned : {"util", "utils", "helper", "helpers", "misc"}) {
    if (word == banned) return true;
  }
  // As a part of a name it is a term of the format: common.pt, common_state.
  return word == "common" && (path.contains("/common/") || path.contains("/common."));
}

void check_licence(const string& path, string_view text, Findings& findings) {
  const bool hash = path == "dev" || path == ".ci/run" || ends_with_any(path, {".py", ".sh"});
  if (!is_cxx(path) && !hash) return;
  const auto lines = split_lines(text);
  const std::size_t row = !lines.empty() && lines[0].starts_with("#!") ? 1 : 0;
  const string expected = fmt::format("{} SPDX-License-Identifier: Apache-2.0", hash ? "#" : "//");
  if (lines.size() <= row || lines[row] != expected) {
    findings.push_back({"licence", path, fmt::format("line {} is not '{}'", row + 1, expected)});
  }
}

}  // namespace

Tree read_tree(const std::filesystem::path& root) {
  const std::set<string> skipped = {"build", "__pycache__", "venv"};
  Tree tree;
  std::filesystem::recursive_directory_iterator entry(root);
  for (; entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    const string name = entry->path().filename().string();
    const bool hidden_folder = entry->is_directory() && name.starts_with('.') && name != ".ci";
    if (hidden_folder || skipped.contains(name)) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file() || entry->is_symlink()) continue;
    std::ifstream file(entry->path(), std::ios::binary);
    string text{std::istreambuf_iterator<char>(file), {}};
    if (text.contains('\0')) continue;
    tree.emplace(entry->path().lexically_relative(root).generic_string(), std::move(text));
  }
  return tree;
}

Findings check_includes(const Tree& tree) {
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!is_cxx(path) || !(path.starts_with("src/") || path.starts_with("include/") ||
                           path.starts_with("python/"))) {
      continue;
    }
    const Layer* from = layer_of(path);
    if (from == nullptr) {
      findings.push_back(
          {"include-unknown", path, "is in no layer; see the tables of tests/tidy.cc"});
      continue;
    }
    for (const string_view line : split_lines(text)) {
      const Include include = parse_include(line);
      if (include.name.empty()) continue;
      if (include.quoted) {
        check_arrow(path, *from, include.name, findings);
      } else {
        check_system_include(path, from->name, include.name, findings);
      }
    }
  }
  return findings;
}

Findings check_sizes(const Tree& tree) {
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (path.starts_with("tests/golden/")) continue;
    if (!is_cxx(path) && !path.ends_with(".py")) continue;
    check_lengths(path, text, findings);
    if (!is_cxx(path)) continue;
    for (const Function& function : find_functions(text)) {
      if (function.lines <= 70) continue;
      findings.push_back({"function-lines", path,
                          fmt::format("the function at line {} has {} lines, limit 70",
                                      function.first_line, function.lines)});
    }
  }
  return findings;
}

Findings check_listed(const Tree& tree) {
  // What the functions of cmake/ add by themselves is built as well.
  string everywhere;
  for (const auto& [path, text] : tree) {
    if (path.starts_with("cmake/")) everywhere += without_comments(text);
  }
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".cc") || path.starts_with("tests/golden/")) continue;
    bool listed = is_listed(path, everywhere);
    for (string_view at = folder(path); !at.empty() && !listed; at = folder(at)) {
      const auto cmake = tree.find(fmt::format("{}/CMakeLists.txt", at));
      listed = cmake != tree.end() && is_listed(path, without_comments(cmake->second));
    }
    if (!listed) {
      findings.push_back({"unlisted", path, "is in no CMakeLists.txt, so nothing builds it"});
    }
  }
  return findings;
}

Findings check_words(const Tree& tree) {
  // Cut in two, or this file would find itself.
  const std::array<string, 4> leftovers = {
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X",
      "HA"
      "CK"};
  Findings findings;
  for (const auto& [path, text] : tree) {
    if (!is_source(path)) continue;
    for (const string& word : path_words(path)) {
      if (!says_nothing(path, word)) continue;
      findings.push_back(
          {"file-name", path, fmt::format("'{}' says nothing; name what is in it", word)});
    }
    for (const string& word : leftovers) {
      if (has_word(text, word)) {
        findings.push_back(
            {"leftover", path, fmt::format("has a {}; do it or open an issue", word)});
      }
    }
    check_licence(path, text, findings);
  }
  return findings;
}

Findings check_machine_traces(const Tree& tree) {
  const std::array<string, 9> traces = {
      "/wo"
      "rk/",
      "/ro"
      "ot/",
      "/tmp/ba"
      "sh_",
      ".libr"
      "ary",
      "/fa"
      "rm/",
      "pypi"
      ".org",
      "python"
      "hosted",
      "deb."
      "debian",
      "archive."
      "ubuntu"};
  Findings findings;
  for (const auto& [path, text] : tree) {
    for (const string& trace : traces) {
      if (text.contains(trace)) {
        findings.push_back({"machine-trace", path, fmt::format("contains '{}'", trace)});
      }
    }
  }
  return findings;
}

Findings check_public_api(const Tree& tree) {
  Findings findings;
  const auto headers = std::ranges::count_if(tree, [](const auto& file) {
    return file.first.starts_with("include/shardwright/") && file.first.ends_with(".h");
  });
  if (headers > 12) {
    findings.push_back({"public-headers", "include/shardwright",
                        fmt::format("{} public headers, limit 12", headers)});
  }
  const string path = "include/shardwright/error.h";
  const auto file = tree.find(path);
  if (file == tree.end()) {
    findings.push_back({"error-codes", path, "not found"});
    return findings;
  }
  std::map<string, string> seen;
  const string code = code_only(file->second);
  for (const string_view line : split_lines(code)) {
    const string_view entry = trim(line);
    const std::size_t equals = entry.find(" = ");
    if (!entry.starts_with('k') || equals == entry.npos || !entry.ends_with(',')) continue;
    const string name(entry.substr(0, equals));
    const string number(entry.substr(equals + 3, entry.size() - equals - 4));
    const auto [other, fresh] = seen.emplace(number, name);
    if (!fresh) {
      findings.push_back(
          {"error-codes", path, fmt::format("{} and {} are both {}", other->second, name, number)});
    }
  }
  if (seen.empty()) findings.push_back({"error-codes", path, "no codes found"});
  return findings;
}

Findings check_all(const Tree& tree) {
  Findings all;
  for (const auto check : {check_includes, check_sizes, check_listed, check_words,
                           check_machine_traces, check_public_api}) {
    std::ranges::move(check(tree), std::back_inserter(all));
  }
  return all;
}

Findings apply_exceptions(Findings findings, string_view allow) {
  Findings wrong;
  for (const string_view raw : split_lines(allow)) {
    const string_view line = trim(raw);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t space = line.find(' ');
    const std::size_t colon = line.find(": ");
    if (space == line.npos || colon == line.npos || colon < space) {
      wrong.push_back({"exceptions", string(line), "is not 'RULE PATH: REASON'"});
      continue;
    }
    const string_view rule = line.substr(0, space);
    const string_view path = trim(line.substr(space, colon - space));
    const auto removed = std::erase_if(findings, [&](const Finding& finding) {
      return finding.rule == rule && finding.path == path;
    });
    if (removed == 0) {
      wrong.push_back({"exceptions", string(line), "excuses nothing; remove it"});
    }
  }
  std::ranges::move(wrong, std::back_inserter(findings));
  return findings;
}

}  // namespace shardwright::tidy
