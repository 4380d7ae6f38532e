// SPDX-License-Identifier: Apache-2.0
#include "format/quantizer_values.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "base/translated.h"
#include "layout/quantizer_value.h"

namespace shardwright {

void leave_quantizer_values_out(Catalog& catalog, Notes& notes) {
  const auto is_left_out = [](const StoredTensor& tensor) {
    const std::string& name = tensor.desc.name;
    return is_quantizer_value(name) && !is_smoothing_scale(name);
  };
  std::vector<StoredTensor>& tensors = catalog.tensors;
  const auto first = std::ranges::find_if(tensors, is_left_out);
  if (first == tensors.end()) return;
  const std::string name = first->desc.name;
  notes.push_back(translated(
      "{} values of ModelOpt's quantizers are left out ({} is the first): the weights stay as they "
      "are, and whoever quantises them calibrates anew",
      std::erase_if(tensors, is_left_out), printable(name)));
}

Status check_not_smoothed(const Catalog& catalog) {
  const auto scale = std::ranges::find_if(catalog.tensors, [](const StoredTensor& tensor) {
    return is_smoothing_scale(tensor.desc.name);
  });
  if (scale == catalog.tensors.end()) return {};
  return fail(Code::kUnsupportedFormat,
              "{}: the weights beside it were divided by it, and are no model's without it; let "
              "ModelOpt export them, or convert the checkpoint that it quantised",
              printable(scale->desc.name));
}

}  // namespace shardwright
