// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/rank_groups.h"

#include <array>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/prepare_ahead.h"
#include "format/legacy/legacy_state.h"
#include "io/source_files.h"
#include "state/group_agreement.h"
#include "state/group_settings.h"
#include "state/joined_groups.h"
#include "state/plain_value.h"
#include "state/state_document.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;

constexpr std::string_view kGroups = "param_groups";

// The dict of an optimizer that has its groups.
Value holder_of_groups(Value optimizer) {
  const Value inner = optimizer.find("optimizer");
  return inner ? inner : optimizer;  // FP32Optimizer's dict is torch's own
}

std::string way_out() {
  return translated(
      "keep the files of one save only, or convert without optimizer states (--optimizer drop)");
}

class GroupJoining {
 public:
  explicit GroupJoining(Document& document) : document_(document) {}

  // `state`: a common state of `from`, the first one's of the document itself.
  Status add(Document& from, Value state, const std::string& path) {
    if (const Value scheduler = state.find("opt_param_scheduler")) {
      const std::array<Value, 1> one = {scheduler};
      SW_TRY(scheduler_.add(from, from.list(one), path));
    }
    const std::vector<Value> optimizers = chained_optimizers(state.find("optimizer"));
    for (std::size_t i = 0; i < optimizers.size(); ++i) {
      if (i == optimizers_.size()) {
        const bool is_own = &from == &document_;
        optimizers_.push_back(is_own ? optimizers[i]
                                     : SW_TRY(copy_plain_value(document_, optimizers[i])));
        groups_.emplace_back(document_, way_out());
      }
      SW_TRY(groups_[i].add(from, holder_of_groups(optimizers[i]).find(kGroups), path));
    }
    return {};
  }

  // Megatron chains optimizers where a rank has parameters for several.
  void finish(Value state) {
    for (std::size_t i = 0; i < optimizers_.size(); ++i) {
      document_.set(holder_of_groups(optimizers_[i]), kGroups, groups_[i].take());
    }
    if (optimizers_.size() == chained_optimizers(state.find("optimizer")).size()) return;
    Value joined = optimizers_.front();
    if (optimizers_.size() > 1) {
      joined = document_.dict();
      for (std::size_t i = 0; i < optimizers_.size(); ++i) {
        document_.add_pair(joined, document_.integer(static_cast<std::int64_t>(i)), optimizers_[i]);
      }
    }
    document_.set(state, "optimizer", joined);
  }

 private:
  Document& document_;
  GroupAgreement scheduler_{way_out()};
  std::vector<Value> optimizers_;
  std::deque<JoinedGroups> groups_;  // of each
};

}  // namespace

Result<std::string> join_rank_groups(const std::string& common_state, const Checkpoint& checkpoint,
                                     const LegacyRanks& ranks, std::optional<std::int64_t> step) {
  StateDocument state = SW_TRY(StateDocument::read(common_state));
  GroupJoining joining(state.document());
  const std::vector<LegacyRankFile>& files = ranks.files();
  SW_TRY(joining.add(state.document(), state.dict(), checkpoint.catalog.files[files.front().file]));
  const auto others = std::span(files).subspan(1);
  const auto read = [&](std::size_t i) -> Result<LegacyState<Document>> {
    const auto file = SW_TRY(checkpoint.files->get(others[i].file));
    return plain_state(*file, {LegacyStateParts::Optimizer::kGroups, step});
  };
  const auto take = [&](std::size_t i, Result<LegacyState<Document>> read_state) -> Status {
    LegacyState<Document> plain = SW_TRY(std::move(read_state));
    return joining.add(plain.state, plain.state.root(), checkpoint.catalog.files[others[i].file]);
  };
  SW_TRY(read_ahead(others.size(), read, take));
  joining.finish(state.dict());
  return state.encode();
}

}  // namespace shardwright
