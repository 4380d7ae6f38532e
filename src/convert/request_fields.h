// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shardwright/convert_request.h"

namespace shardwright {

/// A request as JSON, key by key: the words of the command line. Left out is what each process says
/// for itself: threads, memory, resume. REQUIRES: all texts are UTF-8.
[[nodiscard]] nlohmann::ordered_json json_of_request(const ConvertRequest& request);

/// The same backwards, from a file that may be hostile: every key must be there, and no other, with
/// values that the command line allows. `name`: of the file, for messages. Error: kJsonCorrupt.
[[nodiscard]] Result<ConvertRequest> request_of_json(const nlohmann::ordered_json& json,
                                                     std::string_view name);

}  // namespace shardwright
