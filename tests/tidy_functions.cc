// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "tidy.h"

namespace shardwright::tidy {
namespace {

using std::string;
using std::string_view;

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Copies source text with everything blanked that is not code.
class Blanker {
 public:
  explicit Blanker(string_view text) : text_(text) { out_.reserve(text.size()); }

  string run() {
    while (at_ < text_.size()) step();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool sees(string_view what) const { return text_.substr(at_).starts_with(what); }

  void blank_to(std::size_t end) {
    for (end = std::min(end, text_.size()); at_ < end; ++at_) {
      out_ += text_[at_] == '\n' ? '\n' : ' ';
    }
  }

  void step() {
    const char c = text_[at_];
    const char before = at_ == 0 ? '\n' : text_[at_ - 1];
    if (sees("//")) {
      blank_to(text_.find('\n', at_));
    } else if (sees("/*")) {
      const std::size_t end = text_.find("*/", at_ + 2);
      blank_to(end == text_.npos ? end : end + 2);
    } else if (sees("R\"") && !is_name_char(before)) {
      raw_string();
    } else if (c == '"' || (c == '\'' && !is_name_char(before))) {
      // An apostrophe after a name character is a digit separator.
      quoted(c);
    } else if (c == '#' && at_line_start()) {
      directive();
    } else {
      out_ += c;
      ++at_;
    }
  }

  [[nodiscard]] bool at_line_start() const {
    const std::size_t line = out_.rfind('\n') + 1;
    return std::ranges::all_of(string_view(out_).substr(line), is_space);
  }

  void raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == text_.npos) return blank_to(text_.npos);
    const string close = ")" + string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    const std::size_t end = text_.find(close, open);
    blank_to(end == text_.npos ? end : end + close.size());
  }

  void quoted(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    blank_to(end + 1);
  }

  void directive() {
    std::size_t end = text_.find('\n', at_);
    while (end != text_.npos && text_[end - 1] == '\\') end = text_.find('\n', end + 1);
    blank_to(end);
  }

  string_view text_;
  std::size_t at_ = 0;
  string out_;
};

/// Follows the braces of formatted code. Only what stands directly in a namespace or a class is of
/// interest: the words since the last `;` or brace there (the head) tell what a brace opens.
class BraceWalker {
 public:
  std::vector<Function> run(string_view code) {
    for (const char c : code) {
      feed(c);
      if (c == '\n') ++line_;
      previous_ = c;
    }
    return std::move(functions_);
  }

 private:
  enum class Kind { kContainer, kFunction, kInitializer, kOther };

  [[nodiscard]] bool at_declarations() const {
    return open_.empty() || open_.back() == Kind::kContainer;
  }

  void feed(char c) {
    if (c == '{') return open();
    if (c == '}') return close();
    if (!at_declarations()) return;
    if (c == ';') return reset();
    if (c == ':' && (head_ == "public" || head_ == "private" || head_ == "protected")) {
      return reset();
    }
    if (head_.empty() && is_space(c)) return;
    if (head_.empty()) head_line_ = line_;
    head_ += c;
  }

  void open() {
    if (!at_declarations()) {
      open_.push_back(Kind::kOther);
      return;
    }
    open_.push_back(classify());
    if (open_.back() == Kind::kContainer) reset();
  }

  void close() {
    if (open_.empty()) return;
    const Kind kind = open_.back();
    open_.pop_back();
    if (!at_declarations() || kind == Kind::kInitializer) return;
    if (kind == Kind::kFunction) functions_.push_back({head_line_, line_ - head_line_ + 1});
    reset();
  }

  [[nodiscard]] Kind classify() const {
    // clang-format puts a space before the brace of a body, and none before an initializer's.
    if (is_name_char(previous_) || previous_ == '>') return Kind::kInitializer;
    const std::size_t last = head_.find_last_not_of(" \n");
    if (last != head_.npos && (head_[last] == '=' || head_[last] == ',' || head_[last] == '(')) {
      return Kind::kInitializer;
    }
    const string_view head = without_template(head_);
    for (const string_view word : {"namespace", "class", "struct", "union", "enum", "extern"}) {
      // Not so `struct tm now() {`.
      if (head.starts_with(word) && head_[last] != ')') return Kind::kContainer;
    }
    if (head.empty()) return Kind::kOther;
    return head.find('(') == head.npos ? Kind::kInitializer : Kind::kFunction;
  }

  static string_view without_template(string_view head) {
    while (head.starts_with("template")) {
      std::size_t at = head.find('<');
      int depth = 0;
      for (; at < head.size(); ++at) {
        depth += head[at] == '<' ? 1 : head[at] == '>' ? -1 : 0;
        if (depth == 0) break;
      }
      head.remove_prefix(std::min(at + 1, head.size()));
      while (!head.empty() && is_space(head.front())) head.remove_prefix(1);
    }
    return head;
  }

  void reset() { head_.clear(); }

  std::vector<Kind> open_;
  std::vector<Function> functions_;
  string head_;
  std::size_t head_line_ = 1;
  std::size_t line_ = 1;
  char previous_ = '\n';
};

}  // namespace

string code_only(string_view text) { return Blanker(text).run(); }

std::vector<Function> find_functions(string_view text) {
  return BraceWalker().run(code_only(text));
}

}  // namespace shardwright::tidy
