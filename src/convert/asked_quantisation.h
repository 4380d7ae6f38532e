// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "format/target_format.h"
#include "model/quantise_choice.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Whether weights of the target can be quantised, where that is asked for. Error: kUsage.
[[nodiscard]] Status check_quantisable(const ConvertRequest& request, const TargetTraits& target);

/// In which form the request's target has its weights: that of `config_text`, the model's
/// config.json, of the release that the source is or was made of, or a new one. REQUIRES: the
/// request asks for one. Errors: those of choose_quantisation.
[[nodiscard]] Result<QuantiseChoice> choose_quantisation(const ConvertRequest& request,
                                                         std::string_view config_text,
                                                         const ReleasedQuantisation& released);

}  // namespace shardwright
