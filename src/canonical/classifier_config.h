// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// Whether PEFT's task_type is of a model with a classifier's head: SEQ_CLS (rewards too) and
/// TOKEN_CLS.
[[nodiscard]] bool is_classifier_task(std::string_view task_type);

/// config.json of the same model with such a head of `labels` rows instead of its output layer, as
/// transformers writes it: another class, and names for the labels where their number is another.
/// What is such a model already stays, byte for byte. REQUIRES: is_classifier_task(task_type).
/// Errors: kJsonCorrupt; kUnsupportedFormat for a class of which transformers has none with a head.
[[nodiscard]] Result<std::string> classifier_config(const std::string& config,
                                                    std::string_view task_type,
                                                    std::int64_t labels);

}  // namespace shardwright
