// SPDX-License-Identifier: Apache-2.0
// common.pt: Megatron-Core's common state, with parameter groups of optimizers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "expect.h"
#include "state/common_state.h"

namespace shardwright {
namespace {

void read(const std::string& bytes) {
  const Result<CommonState> state = CommonState::read(bytes);
  if (!state) return;
  static_cast<void>(state->iteration());
  std::vector<std::string> notes;
  const Result<std::string> written = state->encode({}, notes);
  if (!written) return;
  const Result<CommonState> again = CommonState::read(*written);
  expect(again.has_value(), "what was written can be read");
  expect(again->iteration() == state->iteration(), "the iteration stays what it was");
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read(std::string(data, data + size));
  return 0;
}
