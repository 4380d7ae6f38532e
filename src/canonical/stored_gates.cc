// SPDX-License-Identifier: Apache-2.0
#include "canonical/stored_gates.h"

#include "base/fail.h"
#include "canonical/model_facts.h"

namespace shardwright {

Result<StoredGates> stored_gates(const Checkpoint& source) {
  StoredGates gates;
  gates.weights = SW_TRY(interleaved_gates(source.arguments));
  gates.states = gates.weights;
  if (gates.weights.are_any() || source.run_config.empty()) return gates;
  // Where arguments are there too, it may be a file that nobody reads.
  const Result<Arguments> config = run_config_arguments(source);
  if (config) gates.states = SW_TRY(interleaved_gates(*config));
  return gates;
}

std::unexpected<Error> refuse_adapters_of_blocks() {
  return fail(Code::kUnmatchedSource,
              "the gates of experts are stored in blocks (moe_mlp_glu_interleave_size), and no "
              "rule says how the rows of their adapters are; merge the adapter where it was "
              "trained");
}

}  // namespace shardwright
