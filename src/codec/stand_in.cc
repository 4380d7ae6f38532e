// SPDX-License-Identifier: Apache-2.0
#include "codec/stand_in.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

constexpr std::string_view kAgain = "download the file again";

struct StandIn {
  std::string_view begins;  ///< in lower case
  std::string_view what;
  std::string_view remedy;
};

constexpr std::array kStandIns = {
    StandIn{"version https://git-lfs", "a Git LFS pointer",
            "run 'git lfs pull' in the repository, or download the file itself"},
    StandIn{"<!doctype html", "a web page (HTML)", kAgain},
    StandIn{"<html", "a web page (HTML)", kAgain},
    StandIn{"<?xml", "an XML document", kAgain},
    StandIn{"<error", "an error message in XML", kAgain},
};

// Without a byte order mark and spaces in front, in lower case.
std::string normalized(std::string_view head) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (head.starts_with(kMark)) head.remove_prefix(kMark.size());
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  std::string text(head);
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

bool is_plain_text(std::string_view head) {
  return std::ranges::all_of(
      head, [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; });
}

}  // namespace

Status refuse_stand_in(Code code, std::string_view name, std::string_view head,
                       std::string_view wanted, Contents contents) {
  constexpr std::size_t kLeastZeros = 8;
  constexpr int kShownColumns = 60;
  if (head.empty()) return fail(code, "{}: this file is empty, not {}; {}", name, wanted, kAgain);
  const std::string text = normalized(head);
  for (const StandIn& known : kStandIns) {
    if (!text.starts_with(known.begins)) continue;
    return fail(code, "{}: this is {}, not {}; {}", name, known.what, wanted, known.remedy);
  }
  if (head.size() >= kLeastZeros && std::ranges::all_of(head, [](char c) { return c == '\0'; })) {
    return fail(code,
                "{}: begins with {} zero bytes, as an unfinished download does, not with {}; {}",
                name, head.size(), wanted, kAgain);
  }
  if (contents == Contents::kText || !is_plain_text(head)) return {};
  return fail(code, "{}: this is text, not {}: \"{}\"; {}", name, wanted,
              fit_width(printable(head.substr(0, head.find('\n'))), kShownColumns), kAgain);
}

Status refuse_stand_in(Code code, const ReadableFile& file, std::string_view wanted,
                       Contents contents) {
  std::string head(static_cast<std::size_t>(std::min(kHeadBytes, file.size())), '\0');
  SW_TRY(file.read_at(0, std::as_writable_bytes(std::span(head))));
  return refuse_stand_in(code, file.name(), head, wanted, contents);
}

}  // namespace shardwright
