// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_flags.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "cli/dialect.h"

namespace shardwright::cli {
namespace {

constexpr std::string_view kTimeoutFlag = "--rank-timeout";
constexpr std::string_view kIoTimeoutFlag = "--io-timeout";
constexpr int kLeastTimeout = 2;  // less is lost to a busy machine
constexpr int kMostTimeout = 86'400;

std::optional<int> seconds_from(std::string_view text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return seconds;
}

}  // namespace

Result<RankFlags> take_rank_flags(std::vector<std::string>& words) {
  RankFlags flags;
  std::vector<std::string> rest;
  words = to_canonical_flags(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {  // what follows are no flags
      rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    const std::string_view word = words[i];
    const std::string_view flag = word.substr(0, word.find('='));
    if (flag != kTimeoutFlag && flag != kIoTimeoutFlag) {
      rest.push_back(words[i]);
      continue;
    }
    std::string_view value;
    if (flag.size() < word.size()) {
      value = word.substr(flag.size() + 1);
    } else if (i + 1 < words.size()) {
      value = words[++i];
    }
    const std::optional<int> seconds = seconds_from(value);
    if (!seconds || *seconds < kLeastTimeout || *seconds > kMostTimeout) {
      return fail(Code::kUsage, "{}: found '{}', expected seconds from {} to {}", flag, value,
                  kLeastTimeout, kMostTimeout);
    }
    (flag == kTimeoutFlag ? flags.timeout : flags.io_timeout) = std::chrono::seconds(*seconds);
  }
  words = std::move(rest);
  return flags;
}

}  // namespace shardwright::cli
