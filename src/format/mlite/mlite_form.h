// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/model_form.h"

namespace shardwright {

/// MLite's: experts and stages have the numbers that their ranks gave them. Megatron's names come
/// of a family's (canonical/mlite_naming).
[[nodiscard]] const ModelForm& mlite_form();

}  // namespace shardwright
