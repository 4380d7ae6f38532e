// SPDX-License-Identifier: Apache-2.0
#include "codec/json_text.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/allowance.h"
#include "base/fail.h"
#include "codec/stand_in.h"

namespace shardwright {
namespace {

/// Builds the document and stops at the first thing that is not allowed.
template <class Json>
class DocumentBuilder final : public nlohmann::json_sax<Json> {
 public:
  using typename nlohmann::json_sax<Json>::number_integer_t;
  using typename nlohmann::json_sax<Json>::number_unsigned_t;
  using typename nlohmann::json_sax<Json>::number_float_t;
  using typename nlohmann::json_sax<Json>::string_t;
  using typename nlohmann::json_sax<Json>::binary_t;

  DocumentBuilder(std::size_t max_depth, std::uint64_t text_bytes)
      : max_depth_(max_depth), allowance_(text_bytes) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override {
    return take(kStringBytes + value.size()) && add(std::move(value));
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (stack_.back()->contains(name)) {
      error_ = {Code::kJsonCorrupt, translated("the key '{}' twice", name), 0};
      return false;
    }
    key_ = std::move(name);
    return take(kMemberBytes + key_.size());
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& exception) override {
    error_ = {Code::kJsonCorrupt, json_reason(exception.what()), 0};
    return false;
  }

  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  // What the parser's values take in memory, their allocations' heads and an array's growth
  // included.
  static constexpr std::uint64_t kValueBytes = 3 * sizeof(Json);
  static constexpr std::uint64_t kStringBytes = sizeof(std::string) + 16;
  static constexpr std::uint64_t kContainerBytes = 64;
  static constexpr std::uint64_t kMemberBytes = 96;

  bool take(std::uint64_t bytes) {
    const Status status = allowance_.take(bytes, "its values");
    if (!status) error_ = status.error();
    return status.has_value();
  }
  template <class Value>
  Json* place(Value&& value) {
    if (stack_.empty()) {
      root_ = Json(std::forward<Value>(value));
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(Json(std::forward<Value>(value)));
      return &parent.back();
    }
    Json& slot = parent[key_];
    slot = Json(std::forward<Value>(value));
    return &slot;
  }
  template <class Value>
  bool add(Value&& value) {
    if (!take(kValueBytes)) return false;
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json container) {
    if (stack_.size() == max_depth_) {
      error_ = {Code::kLimit, translated("more than {} levels of nesting", max_depth_), 0};
      return false;
    }
    if (!take(kValueBytes + kContainerBytes)) return false;
    // A container's address is safe while it is open: only its own children move meanwhile.
    stack_.push_back(place(std::move(container)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  std::size_t max_depth_;
  Allowance allowance_;
  Json root_;
  std::vector<Json*> stack_;
  string_t key_;
  Error error_{Code::kJsonCorrupt, "no JSON", 0};
};

/// The text with Python's `NaN`, `Infinity` and `-Infinity` outside of strings made null, or
/// nothing where there are none.
std::optional<std::string> without_python_floats(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {"-Infinity", "Infinity", "NaN"};
  if (text.find("Infinity") == std::string_view::npos &&
      text.find("NaN") == std::string_view::npos) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      out += text.substr(i, 2);
      ++i;
      continue;
    }
    if (c == '"') in_string = !in_string;
    const auto word = std::ranges::find_if(
        kWords, [&](std::string_view candidate) { return text.substr(i).starts_with(candidate); });
    if (!in_string && word != kWords.end()) {
      out += "null";
      i += word->size() - 1;
    } else {
      out += c;
    }
  }
  return out;
}

template <class Json>
Result<Json> parse(std::string_view text, std::string_view name, const JsonLimits& limits) {
  if (text.size() > limits.text_bytes) {
    return fail(Code::kLimit, "{}: found {} bytes of JSON, expected at most {}", name, text.size(),
                limits.text_bytes);
  }
  const std::optional<std::string> replaced = without_python_floats(text);
  const std::string_view source = replaced ? *replaced : text;
  DocumentBuilder<Json> builder(limits.depth, text.size());
  if (Json::sax_parse(source.begin(), source.end(), &builder)) return builder.take();
  SW_TRY(refuse_stand_in(Code::kJsonCorrupt, name, text.substr(0, kHeadBytes), "a JSON text",
                         Contents::kText));
  return fail(builder.error().code, "{}: found {}, expected a JSON text", name,
              builder.error().message);
}

}  // namespace

namespace {

std::string_view number_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + word.size());
  return text.substr(0, text.find_first_not_of("0123456789"));
}

}  // namespace

std::string json_reason(std::string_view exception_text) {
  const std::size_t bracket = exception_text.find("] ");
  if (bracket != std::string_view::npos) exception_text.remove_prefix(bracket + 2);
  if (speaks_english()) return std::string(exception_text);
  // "parse error at line 1, column 6: syntax error while ...": where it is says the most.
  const std::string_view line = number_behind(exception_text, "line ");
  const std::string_view column = number_behind(exception_text, "column ");
  if (line.empty() || column.empty()) return std::string(exception_text);
  return translated("a mistake at line {}, column {}", line, column);
}

Result<nlohmann::json> parse_json(std::string_view text, std::string_view name,
                                  const JsonLimits& limits) {
  return parse<nlohmann::json>(text, name, limits);
}

Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, std::string_view name,
                                                  const JsonLimits& limits) {
  return parse<nlohmann::ordered_json>(text, name, limits);
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

}  // namespace shardwright
