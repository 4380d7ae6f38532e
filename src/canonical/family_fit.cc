// SPDX-License-Identifier: Apache-2.0
#include "canonical/family_fit.h"

#include <algorithm>

#include "base/fail.h"
#include "canonical/correspond.h"
#include "model/convolutions.h"

namespace shardwright {

Status check_family_fit(const ModelFacts& facts, const Checkpoint& source,
                        std::vector<TensorDesc> canonical) {
  const WantedKeys keys = SW_TRY(wanted_keys(source));
  const auto flat = SW_TRY(flat_convolutions(*facts.mapping, facts.sizes, canonical));
  for (const TensorDesc& convolution : flat) {
    std::ranges::find(canonical, convolution.name, &TensorDesc::name)->shape = convolution.shape;
  }
  SW_TRY(correspond_from_megatron(facts, canonical, keys));
  return {};
}

}  // namespace shardwright
