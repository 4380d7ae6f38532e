// SPDX-License-Identifier: Apache-2.0
#include "state/common_step.h"

#include <cstring>

#include "base/fail.h"
#include "codec/torch_archive.h"
#include "codec/torch_record.h"
#include "codec/torch_tensor.h"
#include "io/memory_directory.h"
#include "state/group_settings.h"

namespace shardwright {
namespace {

// Of the first optimizer that says one: not all of a chain count steps.
pickle::Value find_common_step(pickle::Value optimizer) {
  for (const pickle::Value part : chained_optimizers(optimizer)) {
    pickle::Value states = part.find("optimizer").find("state");
    if (!states) states = part.find("state");  // FP32Optimizer's dict is torch's own
    if (const pickle::Value step = states.find("common_step")) return step;
  }
  return {};
}

Result<std::optional<double>> checked(std::optional<double> step) {
  constexpr double kMostSteps = 1e9;
  if (!step || (*step >= 0 && *step <= kMostSteps)) return step;
  return fail(
      Code::kStateUnreadable,
      "common_step: found {}, expected the number of the optimizer's steps; convert without "
      "it (--optimizer drop)",
      *step);
}

}  // namespace

Result<std::optional<double>> common_step(const std::string& common_state) {
  const auto file = make_memory_file("common.pt", common_state);
  const TorchArchive archive = SW_TRY(TorchArchive::open(*file));
  pickle::Value state = archive.root();
  if (state.is(pickle::Kind::kList) && state.size() == 1) state = state[0];
  const pickle::Value step = find_common_step(state.find("optimizer"));
  if (!is_tensor(step)) return checked(step.as_double());
  const LocatedTensor place = SW_TRY(archive.locate(step));
  if (place.dtype != DType::kF32 || place.range.length != sizeof(float)) {
    return fail(Code::kStateUnreadable, "common_step: found {} {}, expected one float32",
                torch_name(place.dtype), to_string(place.shape));
  }
  float value = 0;
  const std::string storage = SW_TRY(read_torch_storage(*file, place, common_state.size()));
  std::memcpy(&value, storage.data() + (place.range.offset - place.storage.offset), sizeof(value));
  return checked(static_cast<double>(value));
}

}  // namespace shardwright
