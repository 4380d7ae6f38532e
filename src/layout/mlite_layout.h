// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shardwright/catalog.h"
#include "shardwright/error.h"

namespace shardwright {

/// A tensor of routed experts by MLite's names: `…experts.fc1.weight3`, where 3 is the number of
/// the expert on its EP rank.
struct MliteExpert {
  std::string_view module;  ///< up to and without `experts.`
  int layer = 1;            ///< 1 or 2: fc1, fc2
  std::int64_t local = 0;   ///< number of the expert on its rank
};

/// Borrows `name`. nullopt for other tensors, those of shared experts among them.
[[nodiscard]] std::optional<MliteExpert> split_mlite_expert(std::string_view name);

/// Whether the names are those of MLite: `model.` or `model_pp0.` and grouped experts.
[[nodiscard]] bool has_mlite_names(const Catalog& catalog);

/// Sizes that the caller gives because nothing on disk tells them.
struct MliteGiven {
  std::optional<std::int64_t> expert;
  std::optional<std::int64_t> expert_tensor;
  std::optional<std::int64_t> tensor;
};

/// What an early MLite did not write although it seemed to.
enum class MliteLoss : std::uint8_t {
  kNone,
  kExperts,        ///< EP ranks took each other's shards for replicas: one rank's experts are there
  kRows,           ///< expert data ranks did: a part of each expert is there
  kExpertsOrRows,  ///< one of the two; both would leave these files
};

struct MliteLayout {
  std::int64_t expert = 1;         ///< EP
  std::int64_t expert_tensor = 1;  ///< ETP
  std::int64_t expert_data = 1;    ///< EDP
  std::int64_t tensor = 1;         ///< TP
  std::int64_t data = 1;           ///< DP with CP
  std::int64_t experts = 0;        ///< of a layer, over all ranks
  MliteLoss loss = MliteLoss::kNone;
  std::string lost;  ///< a tensor that shows the loss
};

/// Reads the sizes out of shapes and chunks: EP is the router's rows divided by the experts of a
/// rank, ETP the cuts of fc2's second axis, EDP what is left of the chunks. Error: kUsage where
/// they do not agree, with the flag that would settle it.
[[nodiscard]] Result<MliteLayout> read_mlite_layout(const Catalog& catalog,
                                                    const MliteGiven& given = {});

/// How many of the chunks along `axis` begin at different places.
[[nodiscard]] std::int64_t cuts_of(const StoredTensor& tensor, int axis);

}  // namespace shardwright
