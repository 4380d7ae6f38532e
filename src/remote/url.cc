// SPDX-License-Identifier: Apache-2.0
#include "remote/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

bool is_host(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return is_unreserved(c) || c == ':' || c == '[' || c == ']';
  });
}

// What a browser's address line would escape.
std::string cleaned(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) > ' ' && static_cast<unsigned char>(c) < 0x7f && c != '"' &&
        c != '<' && c != '>' && c != '\\') {
      result += c;
    } else {
      result += percent_encoded(std::string_view(&c, 1));
    }
  }
  return result;
}

}  // namespace

std::string Url::text() const {
  return origin() + path + (query.empty() ? std::string() : "?" + query);
}

Result<Url> parse_url(std::string_view text) {
  const std::string shown = printable(shown_url(text));
  const std::size_t colon = text.find("://");
  Url url;
  if (colon != std::string_view::npos) url.scheme = lower_case(text.substr(0, colon));
  if (url.scheme != "https" && url.scheme != "http") {
    return fail(Code::kUsage, "{}: not a web address; it must begin with https://", shown);
  }
  std::string_view rest = text.substr(colon + 3);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t question = rest.find('?');
  if (question != std::string_view::npos) url.query = cleaned(rest.substr(question + 1));
  rest = rest.substr(0, question);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) {
    return fail(Code::kUsage,
                "{}: found a user's name in the address, expected none; put it and the password "
                "into ~/.netrc",
                shown);
  }
  url.host = lower_case(authority);
  if (!is_host(url.host)) return fail(Code::kUsage, "{}: the server's name is none", shown);
  url.path = slash == rest.size() ? "/" : cleaned(rest.substr(slash));
  return url;
}

std::string with_lower_scheme(std::string_view path) {
  const std::size_t colon = path.find("://");
  if (colon == std::string_view::npos) return std::string(path);
  return lower_case(path.substr(0, colon)) + std::string(path.substr(colon));
}

std::string percent_encoded(std::string_view text, bool with_slashes) {
  std::string result;
  for (const char c : text) {
    if (is_unreserved(c) || (c == '/' && !with_slashes)) {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

Result<std::string> percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    const auto high = i + 1 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low) {
      return fail(Code::kUsage, "{}: found %, expected two hexadecimal digits behind it",
                  printable(text));
    }
    result += static_cast<char>(*high << 4U | *low);
    i += 2;
  }
  return result;
}

std::string shown_url(std::string_view text) {
  text = text.substr(0, text.find_first_of("?#"));
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::string(text);
  const std::size_t begin = colon + 3;
  const std::size_t end = std::min(text.find('/', begin), text.size());
  const std::size_t at = text.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(text);
  return std::string(text.substr(0, begin)) + std::string(text.substr(at + 1));
}

}  // namespace shardwright
