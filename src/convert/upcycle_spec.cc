// SPDX-License-Identifier: Apache-2.0
#include "convert/upcycle_spec.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

struct UpcyclingKey {
  std::string_view name;
  std::int64_t Upcycling::* number;
  std::int64_t least;
  std::int64_t most;
};

constexpr std::int64_t kMostSeeds = 1'000'000'000;
constexpr std::string_view kPreSoftmax = "pre_softmax";
constexpr std::array kUpcyclingKeys = {
    UpcyclingKey{"experts", &Upcycling::experts, 1, kMostExperts},
    UpcyclingKey{"granularity", &Upcycling::granularity, 1, kMostExperts},
    UpcyclingKey{"topk", &Upcycling::top_k, 1, kMostExperts},
    UpcyclingKey{"seed", &Upcycling::seed, 0, kMostSeeds},
};

Status read_word(std::string_view word, Upcycling& result, std::set<std::string_view>& given) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = word.substr(0, equals);
  std::string_view value = word.substr(std::min(equals + 1, word.size()));
  const auto key = std::ranges::find(kUpcyclingKeys, name, &UpcyclingKey::name);
  if (equals == word.size() || (key == kUpcyclingKeys.end() && name != kPreSoftmax)) {
    return fail(Code::kUsage,
                "found '{}', expected experts=N and perhaps granularity=, topk=, pre_softmax= or "
                "seed=",
                printable(word));
  }
  if (!given.insert(name).second) {
    return fail(Code::kUsage, "found '{}' twice, expected it once", name);
  }
  if (name == kPreSoftmax) {
    result.softmax_before_top = value == "true";
    if (value == "true" || value == "false") return {};
    return fail(Code::kUsage, "found '{}' for {}, expected true or false", printable(value), name);
  }
  std::string_view rest = value;
  const auto number = take_number(rest);
  if (!number || !rest.empty() || *number < key->least || *number > key->most) {
    return fail(Code::kUsage, "found '{}' for {}, expected a whole number from {} to {}",
                printable(value), name, key->least, key->most);
  }
  result.*key->number = *number;
  return {};
}

}  // namespace

Result<Upcycling> parse_upcycling(std::string_view text) {
  Upcycling result;
  std::set<std::string_view> given;
  while (true) {
    const std::string_view word = text.substr(0, text.find(','));
    SW_TRY(read_word(word, result, given));
    if (word.size() == text.size()) break;
    text.remove_prefix(word.size() + 1);
  }
  if (!given.contains("experts")) {
    return fail(Code::kUsage, "experts=N is missing");
  }
  if (!given.contains("topk")) result.top_k = std::min(result.top_k, result.experts);
  return result;
}

}  // namespace shardwright
