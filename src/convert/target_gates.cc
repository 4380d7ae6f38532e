// SPDX-License-Identifier: Apache-2.0
#include "convert/target_gates.h"

#include <algorithm>

#include "base/fail.h"
#include "base/translated.h"
#include "canonical/stored_gates.h"
#include "layout/state_name.h"
#include "model/adapter_tensors.h"
#include "plan/gate_rows.h"

namespace shardwright {
namespace {

// How the target's run will have gates, whose arguments are written already.
Result<StoredGates> gates_of_target(const Drafting& drafting, const StoredGates& source) {
  const ParallelConfig& parallel = drafting.request().parallel;
  StoredGates gates;
  gates.weights = gates_on(parallel, SW_TRY(interleaved_gates(drafting.parts.arguments)));
  gates.states = gates.weights;
  // Megatron-FSDP's weights are its main weights too, and lie otherwise than the other states.
  const bool keeps_run = has_blocks_in_run_only(source) && drafting.traits().has_run_config &&
                         !drafting.source().location.traits.weights_are_main;
  if (keeps_run) gates.states = gates_on(parallel, source.states);
  return gates;
}

// What Megatron-Bridge leaves in blocks it reads back on as many ranks only.
Status check_states_of_bridge(const DraftTensor& tensor, const GateBlocks& blocks,
                              const TargetTraits& target) {
  const bool is_state = split_state_name(tensor.desc.name).has_value();
  if (!is_state || !tensor.desc.name.contains("linear_fc1.")) return {};
  return fail(Code::kOptimizerUnsupported,
              "tensor {}: run_config.yaml says that its rows lie in blocks of {} on each of {} "
              "tensor ranks (moe_mlp_glu_interleave_size), which the weights that Megatron-Bridge "
              "stores do not; such states go to another torch_dist of as many ranks only (--tp, "
              "--etp), not to this {}; --optimizer drop leaves states out",
              tensor.desc.name, blocks.rows, blocks.ranks, target.name);
}

// Whatever a torch_dist loads with otherwise.
void tell_ranks(const StoredGates& gates, Drafting& drafting) {
  const bool has_experts =
      std::ranges::any_of(drafting.parts.tensors, [&](const DraftTensor& tensor) {
        const std::string& name = tensor.desc.name;
        return blocks_of(split_state_name(name) ? gates.states : gates.weights, name).rows > 0;
      });
  if (!has_experts || drafting.traits().is_of_fixed_ranks) return;
  const ParallelConfig& parallel = drafting.request().parallel;
  drafting.tell(translated(
      "gates of experts lie in blocks on each tensor rank (moe_mlp_glu_interleave_size): what is "
      "written loads with TP {} and ETP {} only, as Megatron-Core does not move their rows",
      parallel.tensor, parallel.expert_tensor));
}

}  // namespace

Status move_gates_to_target(Drafting& drafting) {
  const StoredGates from = SW_TRY(stored_gates(drafting.source()));
  const StoredGates to = SW_TRY(gates_of_target(drafting, from));
  drafting.gates = to.weights;
  for (const DraftTensor& tensor : drafting.parts.tensors) {
    const GateBlocks then = blocks_of(from.states, tensor.desc.name);
    if (then == blocks_of(to.states, tensor.desc.name)) continue;
    if (is_adapter_name(tensor.desc.name)) return refuse_adapters_of_blocks();
    if (has_blocks_in_run_only(from)) {
      SW_TRY(check_states_of_bridge(tensor, then, drafting.traits()));
    }
  }
  tell_ranks(to, drafting);
  return move_gates(drafting.catalog, from, to, drafting.parts.tensors);
}

}  // namespace shardwright
