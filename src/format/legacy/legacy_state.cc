// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_state.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_file.h"
#include "codec/torch_layout.h"
#include "state/param_group.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::array<std::string_view, 5> kKept = {"args", "checkpoint_version", "iteration",
                                                   "opt_param_scheduler",
                                                   "num_floating_point_operations_so_far"};
constexpr std::uint64_t kMostLegacyPickleBytes = std::uint64_t{1} << 30;

// The dict of one optimizer with its groups and without states: those are tensors of their own.
Result<Value> plain_optimizer(Document& document, Value optimizer, std::optional<std::int64_t> step,
                              bool is_distributed, bool& drops_loss_scale) {
  Value inner = optimizer.find("optimizer");
  if (!inner) inner = optimizer.find("optimizer_state_dict");
  // FP32Optimizer's dict is torch's own, and stays so where no run has a distributed one.
  const bool is_torchs_own = !inner;
  if (is_torchs_own) inner = optimizer;
  const Value list = inner.find("param_groups");
  std::vector<Value> groups;
  for (std::size_t g = 0; g < list.size(); ++g) {
    const Value group = document.dict();
    for (std::size_t i = 0; i < list[g].size(); ++i) {
      if (list[g].key(i).as_string() == "params") continue;
      if (has_storage(document, list[g].value(i))) {
        return fail(Code::kStateUnreadable,
                    "optimizer: found '{}' of a parameter group to be a tensor, expected a plain "
                    "value; convert without it (--optimizer drop)",
                    list[g].key(i).text());
      }
      document.add_pair(group, list[g].key(i), list[g].value(i));
    }
    // Muon, beside Adam, counts none.
    if (step && read_param_group(list[g]).has_betas) {
      document.set(group, "step", document.integer(*step));
    }
    groups.push_back(group);
  }
  const Value with_groups = document.dict();
  document.set(with_groups, "param_groups", document.list(groups));
  // Without a distributed optimizer torch's Adam is given its parameters' steps by this alone.
  if (step && !is_distributed && std::ranges::any_of(groups, has_own_steps)) {
    const Value states = document.dict();
    document.set(states, "common_step", document.real(static_cast<double>(*step)));
    document.set(with_groups, "state", states);
  }
  if (is_torchs_own && !is_distributed) return with_groups;
  const Value plain = document.dict();
  document.set(plain, "optimizer", with_groups);
  const Value scaler = optimizer.find("grad_scaler");
  if (scaler && has_storage(document, scaler)) {
    drops_loss_scale = true;
  } else if (scaler) {
    document.set(plain, "grad_scaler", scaler);
  }
  if (is_distributed) {
    document.set(plain, "param_state_sharding_type", document.string("fully_reshardable"));
  }
  return plain;
}

// Chained ones are numbered.
Result<Value> plain_optimizers(Document& document, Value optimizer,
                               std::optional<std::int64_t> step, bool& drops_loss_scale) {
  if (!optimizer.is(Kind::kList))
    return plain_optimizer(document, optimizer, step, true, drops_loss_scale);
  std::vector<OptimizerGroup> all;
  for (std::size_t i = 0; i < optimizer.size(); ++i) {
    for (const Value group : param_groups_of(optimizer[i])) all.push_back(read_param_group(group));
  }
  // States get names of a distributed optimizer's, but for Muon and Lion, which have none.
  const bool is_distributed = !has_adam_beside(all);
  const Value numbered = document.dict();
  for (std::size_t i = 0; i < optimizer.size(); ++i) {
    document.add_pair(
        numbered, document.integer(static_cast<std::int64_t>(i)),
        SW_TRY(plain_optimizer(document, optimizer[i], step, is_distributed, drops_loss_scale)));
  }
  return numbered;
}

}  // namespace

bool has_storage(const Document& document, Value value) {
  std::vector<bool> seen(document.node_count(), false);
  std::vector<Value> pending{value};
  while (!pending.empty()) {
    const Value next = pending.back();
    pending.pop_back();
    if (seen[next.id()]) continue;
    seen[next.id()] = true;
    if (next.is(Kind::kPersistentId)) return true;
    document.append_references(next, pending);
  }
  return false;
}

Result<LegacyState<Document>> plain_state(const ReadableFile& file, const LegacyStateParts& parts) {
  const TorchFile torch = SW_TRY(TorchFile::open(file));
  const std::string text = SW_TRY(torch.pickle(kMostLegacyPickleBytes));
  Document document = SW_TRY(pickle::decode(as_bytes(text)));
  const Value root = document.root();
  const Value state = document.dict();
  for (const std::string_view key : kKept) {
    const Value value = root.find(key);
    if (value && !has_storage(document, value)) document.set(state, key, value);
  }
  bool drops_loss_scale = false;
  const Value optimizer = root.find("optimizer");
  using Optimizer = LegacyStateParts::Optimizer;
  if (optimizer && parts.optimizer == Optimizer::kAsItIs) {
    document.set(state, "optimizer", optimizer);
  } else if (optimizer && parts.optimizer == Optimizer::kGroups) {
    document.set(state, "optimizer",
                 SW_TRY(plain_optimizers(document, optimizer, parts.step, drops_loss_scale)));
  }
  document.set_root(state);
  return LegacyState<Document>{std::move(document), drops_loss_scale};
}

Result<LegacyState<std::string>> read_legacy_state(const ReadableFile& file,
                                                   const LegacyStateParts& parts) {
  const LegacyState<Document> plain = SW_TRY(plain_state(file, parts));
  TorchLayoutOptions options;
  options.prefix = "common";
  const std::string text = SW_TRY(pickle::encode(plain.state, pickle::Protocol::kTwo));
  return LegacyState<std::string>{SW_TRY(encode_torch_object(text, options)),
                                  plain.drops_loss_scale};
}

}  // namespace shardwright
