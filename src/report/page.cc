// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "codec/base64.h"
#include "codec/sha256.h"

namespace shardwright {
namespace {

// What HTML's parser looks for in a script's text begins with `<`; JSON may spell it otherwise.
std::string json_text_for_html(const nlohmann::ordered_json& document) {
  using Json = nlohmann::ordered_json;
  const std::string json = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
}

// The digest of a script or style sheet as a policy names it: base64 of SHA-256.
std::string policy_digest(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return "'sha256-" + to_base64(sha.finish_bytes()) + "'";
}

}  // namespace

std::string html_page(const nlohmann::ordered_json& document, std::string_view language) {
  const PageParts parts = page_parts();
  std::string html = fmt::format(
      R"(<!doctype html>
<html lang="{}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src {} {}; style-src {}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>shardwright</title>
<style>)",
      language, policy_digest(parts.library), policy_digest(parts.script),
      policy_digest(parts.style));
  html += parts.style;
  html += "</style>\n</head>\n<body>\n<div id=\"app\"></div>\n";
  html += "<script type=\"application/json\" id=\"document\">";
  html += json_text_for_html(document);
  html += "</script>\n<script>";
  html += parts.library;
  html += "</script>\n<script>";
  html += parts.script;
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace shardwright
