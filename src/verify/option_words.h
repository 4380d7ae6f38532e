// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// An error of the steps that conversions share, for a caller who has options and no command line:
/// `--hf-config` becomes `hf_config=`, `--to safetensors` the stored names. What has no option
/// stays as it is.
[[nodiscard]] Error in_words_of_options(Error error);

/// Text of a command for a caller who gives arguments: `--hf-config DIR` as `hf_config=DIR`,
/// `--overwrite` as `overwrite=True`, `--tp` as `tp`. Command lines in quotes stay what they are,
/// but those that ask for help.
[[nodiscard]] std::string in_words_of_arguments(std::string_view text);

}  // namespace shardwright
