// SPDX-License-Identifier: Apache-2.0
#include "model/model_part.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostNamings = 256;
constexpr std::string_view kLanguagePart = "language";

bool is_word(std::string_view text) { return !text.empty() && !text.starts_with('.'); }

// Words that end with a dot, of which the part alone may have none; or two whole names.
bool is_prefix_pair(const PartPrefix& prefix) {
  if (!is_word(prefix.whole)) return false;
  if (!prefix.whole.ends_with('.')) return is_word(prefix.alone) && !prefix.alone.ends_with('.');
  return prefix.alone.empty() || (is_word(prefix.alone) && prefix.alone.ends_with('.'));
}

Status check_name(const std::string& name) {
  if (name == kWholeModelFolder) {
    return fail(Code::kMappingInvalid,
                "component {}: found a name that split needs for the whole model's other files, "
                "expected another",
                name);
  }
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  if (!name.empty() && name[0] != '-' && std::ranges::all_of(name, is_plain)) return {};
  return fail(Code::kMappingInvalid,
              "component '{}' cannot name a folder; it must be a word of letters, digits, _ and -",
              printable(name));
}

// The longest prefix of `name` on the side that `text_of` gives.
template <class TextOf>
const PartPrefix* longest(std::span<const PartPrefix> prefixes, std::string_view name,
                          TextOf text_of) {
  const PartPrefix* best = nullptr;
  for (const PartPrefix& prefix : prefixes) {
    const std::string& text = prefix.*text_of;
    const bool is_name = !text.empty() && !text.ends_with('.');
    if (is_name ? name != text : !name.starts_with(text)) continue;
    if (best == nullptr || text.size() > (best->*text_of).size()) best = &prefix;
  }
  return best;
}

// By what a part alone is called: the prefixes that the whole model may have for it.
std::vector<std::vector<PartPrefix>> alternatives(const ModelPart& part) {
  std::vector<std::vector<PartPrefix>> groups;
  std::map<std::string, std::size_t, std::less<>> places;
  for (const PartPrefix& prefix : part.prefixes) {
    const auto [place, is_new] = places.emplace(prefix.alone, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(prefix);
  }
  return groups;
}

}  // namespace

Status check_parts(std::span<const ModelPart> parts) {
  std::map<std::string, std::string, std::less<>> owners;
  for (const ModelPart& part : parts) {
    SW_TRY(check_name(part.name));
    for (const PartPrefix& prefix : part.prefixes) {
      if (!is_prefix_pair(prefix)) {
        return fail(Code::kMappingInvalid,
                    "component {}: found the prefixes '{}' and '{}', expected words that each end "
                    "with a dot, or two whole names",
                    part.name, prefix.whole, prefix.alone);
      }
      const auto [owner, is_new] = owners.emplace(prefix.whole, part.name);
      if (is_new) continue;
      return fail(Code::kMappingInvalid, "component {}: found the prefix '{}', which is {}'s",
                  part.name, prefix.whole, owner->second);
    }
  }
  return {};
}

PartName part_name(std::span<const ModelPart> parts, std::string_view whole) {
  const ModelPart* owner = nullptr;
  const PartPrefix* best = nullptr;
  for (const ModelPart& part : parts) {
    const PartPrefix* found = longest(part.prefixes, whole, &PartPrefix::whole);
    if (found == nullptr) continue;
    if (best != nullptr && best->whole.size() >= found->whole.size()) continue;
    owner = &part;
    best = found;
  }
  if (best == nullptr) return {};
  return {owner, best->alone + std::string(whole.substr(best->whole.size()))};
}

// Modules that see and those that read lie side by side in `model`, and a head beside that.
std::string module_name(std::span<const ModelPart> parts, std::string_view whole) {
  const PartName own = part_name(parts, whole);
  if (own.part == nullptr || own.part->name != kLanguagePart) return std::string(whole);
  const PartPrefix* const now = longest(own.part->prefixes, whole, &PartPrefix::whole);
  const auto rank = [](const PartPrefix& prefix) {
    const auto size = static_cast<std::int64_t>(prefix.whole.size());
    return std::pair(prefix.whole.ends_with("model.language_model."), -size);
  };
  const PartPrefix* best = now;
  for (const PartPrefix& prefix : own.part->prefixes) {
    if (prefix.alone == now->alone && rank(prefix) > rank(*best)) best = &prefix;
  }
  return best->whole + std::string(whole.substr(now->whole.size()));
}

std::string PartNaming::whole(std::string_view alone) const {
  const PartPrefix* prefix = longest(chosen_, alone, &PartPrefix::alone);
  if (prefix == nullptr) return std::string(alone);
  return prefix->whole + std::string(alone.substr(prefix->alone.size()));
}

Result<std::vector<PartNaming>> namings_of(std::span<const ModelPart> parts, const ModelPart& part,
                                           std::span<const std::string> names) {
  std::vector<std::vector<PartPrefix>> choices(1);
  for (const std::vector<PartPrefix>& group : alternatives(part)) {
    std::vector<std::vector<PartPrefix>> longer;
    for (const std::vector<PartPrefix>& choice : choices) {
      for (const PartPrefix& prefix : group) {
        longer.push_back(choice);
        longer.back().push_back(prefix);
      }
    }
    choices = std::move(longer);
    if (choices.size() > kMostNamings) {
      return fail(Code::kLimit, "component {}: found more than {} ways to name its tensors",
                  part.name, kMostNamings);
    }
  }
  std::vector<PartNaming> namings;
  for (std::vector<PartPrefix>& choice : choices) namings.emplace_back(std::move(choice));
  const bool are_whole = std::ranges::all_of(
      names, [&](const std::string& name) { return part_name(parts, name).part == &part; });
  if (are_whole) namings.push_back(PartNaming::unchanged());
  return namings;
}

}  // namespace shardwright
