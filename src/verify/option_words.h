// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/error.h"

namespace shardwright {

/// An error of the steps that conversions share, for a caller who has options and no command line:
/// `--hf-config` becomes `hf_config=`, `--to safetensors` the stored names. What has no option
/// stays as it is.
[[nodiscard]] Error in_words_of_options(Error error);

}  // namespace shardwright
