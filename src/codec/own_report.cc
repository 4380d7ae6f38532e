// SPDX-License-Identifier: Apache-2.0
#include "codec/own_report.h"

#include <algorithm>
#include <array>

namespace shardwright {
namespace {

constexpr std::string_view kStampShape = "0000-00-00T00:00:00Z ";

// Documents that are a checkpoint's own.
constexpr std::array<std::string_view, 3> kInCheckpoints = {"source_keys", "components", "digests"};

// Without what stands in front, spaces aside; nothing where something else does.
std::string_view behind(std::string_view text, std::string_view front) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text.starts_with(front) ? text.substr(front.size()) : std::string_view();
}

bool is_own_document(std::string_view head) {
  std::string_view rest = head;
  for (const std::string_view front : {"{", "\"schema\"", ":", "\"shardwright/"}) {
    rest = behind(rest, front);
  }
  const std::string_view what = rest.substr(0, rest.find('/'));
  return !what.empty() && std::ranges::find(kInCheckpoints, what) == kInCheckpoints.end();
}

}  // namespace

bool is_log(std::string_view head) {
  if (head.size() < kStampShape.size()) return false;
  for (std::size_t i = 0; i < kStampShape.size(); ++i) {
    const bool is_digit = head[i] >= '0' && head[i] <= '9';
    if (kStampShape[i] == '0' ? !is_digit : head[i] != kStampShape[i]) return false;
  }
  return true;
}

bool is_page(std::string_view head) {
  return head.substr(0, kReportHeadBytes).contains("<title>shardwright</title>");
}

bool is_own_report(std::string_view head) {
  const bool is_own_log =
      is_log(head) && head.substr(kStampShape.size()).starts_with("shardwright ");
  return is_own_log || is_page(head) || is_own_document(head);
}

}  // namespace shardwright
