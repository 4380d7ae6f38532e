// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/rank_groups.h"

#include <array>
#include <vector>

#include "base/fail.h"
#include "format/legacy/legacy_state.h"
#include "io/source_files.h"
#include "state/group_agreement.h"
#include "state/group_settings.h"
#include "state/param_group.h"
#include "state/plain_value.h"
#include "state/state_document.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;

std::string way_out() {
  return translated(
      "keep the files of one save only, or convert without optimizer states (--optimizer drop)");
}

class Joining {
 public:
  explicit Joining(StateDocument& state) : state_(state) {}

  Status add(Document& rank, const std::string& path) {
    const bool is_first = agreements_.empty();
    if (const Value scheduler = rank.root().find("opt_param_scheduler")) {
      const std::array<Value, 1> one = {scheduler};
      SW_TRY(scheduler_.add(rank, rank.list(one), path));
    }
    const std::vector<Value> parts = chained_optimizers(rank.root().find("optimizer"));
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const bool is_new = p == agreements_.size();
      if (is_new) agreements_.emplace_back(way_out());
      const Value groups = parts[p].find("optimizer").find("param_groups");
      const std::vector<std::size_t> fresh = SW_TRY(agreements_[p].add(rank, groups, path));
      if (is_first) continue;
      if (is_new) {
        SW_TRY(add_optimizer(parts[p]));
        continue;
      }
      const Value known = chained_optimizers(optimizer())[p].find("optimizer").find("param_groups");
      for (const std::size_t g : fresh) {
        state_.document().append(known, SW_TRY(copy_plain_value(state_.document(), groups[g])));
      }
    }
    return {};
  }

 private:
  [[nodiscard]] Value optimizer() const { return state_.dict().find("optimizer"); }

  // Megatron chains optimizers where a rank has parameters for several.
  Status add_optimizer(Value part) {
    Document& document = state_.document();
    const std::vector<Value> parts = chained_optimizers(optimizer());
    const Value chained = document.dict();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      document.add_pair(chained, document.integer(static_cast<std::int64_t>(i)), parts[i]);
    }
    document.add_pair(chained, document.integer(static_cast<std::int64_t>(parts.size())),
                      SW_TRY(copy_plain_value(document, part)));
    document.set(state_.dict(), "optimizer", chained);
    return {};
  }

  StateDocument& state_;
  GroupAgreement scheduler_{way_out()};
  std::vector<GroupAgreement> agreements_;  // of each optimizer of a chain
};

}  // namespace

Result<std::string> join_rank_groups(const std::string& common_state, const Checkpoint& checkpoint,
                                     const LegacyRanks& ranks, std::optional<std::int64_t> step) {
  StateDocument state = SW_TRY(StateDocument::read(common_state));
  Joining joining(state);
  for (const LegacyRankFile& rank : ranks.files()) {
    const auto file = SW_TRY(checkpoint.files->get(rank.file));
    auto plain = SW_TRY(plain_state(*file, {LegacyStateParts::Optimizer::kGroups, step}));
    SW_TRY(joining.add(plain.state, checkpoint.catalog.files[rank.file]));
  }
  return state.encode();
}

}  // namespace shardwright
