// SPDX-License-Identifier: Apache-2.0
#include "layout/tower_evidence.h"

#include <algorithm>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::string_view kArgument = "encoder_tensor_model_parallel_size";

struct Choice {
  std::int64_t size = 1;
  std::string reason;
};

std::unexpected<Error> refuse(const TowerClue& clue, std::int64_t tensor, const Choice& choice) {
  return fail(Code::kLegacyLayout,
              "tensor {}: found {} different shards of it in {} tensor ranks, expected {}, so that "
              "ranks t and t+{} hold the same, as {}; is this a mix of two checkpoints, or is one "
              "damaged?",
              clue.tensor, clue.size, tensor, choice.size, choice.size, choice.reason);
}

// What most of them say; of two that are said as often the one that is said first.
const TowerClue& most_common(const std::vector<TowerClue>& clues) {
  const auto said = [&](const TowerClue& clue) {
    return std::ranges::count(clues, clue.size, &TowerClue::size);
  };
  return *std::ranges::max_element(clues, {}, said);
}

// What is told speaks of encoders; a projection behind one may have any number of ranks.
Result<Choice> choose(const TowerEvidence& tower, std::optional<std::int64_t> told,
                      std::int64_t tensor) {
  if (told && tower.has_layers) return Choice{*told, fmt::format("{} says", kArgument)};
  if (!tower.by_bytes.empty()) {
    const TowerClue& clue = most_common(tower.by_bytes);
    return Choice{clue.size, translated("the bytes of {} show", clue.tensor)};
  }
  if (tower.by_patch) {
    return Choice{tower.by_patch->size, translated("the rows of {} show", tower.by_patch->tensor)};
  }
  const auto& projection = tower.by_projection;
  if (projection && tensor % projection->size == 0) {
    return Choice{projection->size, translated("the columns of {} show", projection->tensor)};
  }
  if (told) return Choice{*told, fmt::format("{} says", kArgument)};
  return Choice{tensor, "nothing tells otherwise"};
}

Status check(const TowerEvidence& tower, const Choice& choice, std::int64_t tensor) {
  for (const TowerClue& clue : tower.by_bytes) {
    if (clue.size != choice.size) return refuse(clue, tensor, choice);
  }
  if (tower.by_patch && tower.by_patch->size != choice.size) {
    return refuse(*tower.by_patch, tensor, choice);
  }
  return {};
}

}  // namespace

Result<std::vector<SettledTower>> settle_towers(const std::vector<TowerEvidence>& towers,
                                                std::optional<std::int64_t> recorded,
                                                std::int64_t tensor) {
  // 0 says: as the language model's, whatever that is.
  const auto told = recorded.value_or(0) >= 1 ? recorded : std::nullopt;
  std::vector<SettledTower> settled;
  for (const TowerEvidence& tower : towers) {
    if (told && tensor % *told != 0) {
      return fail(Code::kLegacyLayout,
                  "{}: found {} {} in the saved arguments, expected a divisor of the {} tensor "
                  "ranks whose folders there are",
                  tower.tower, kArgument, *told, tensor);
    }
    Choice choice = SW_TRY(choose(tower, told, tensor));
    SW_TRY(check(tower, choice, tensor));
    if (choice.size == tensor) continue;
    settled.push_back({tower.tower, choice.size, std::move(choice.reason)});
  }
  return settled;
}

}  // namespace shardwright
