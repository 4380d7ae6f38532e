// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/console.h"
#include "shardwright/diagnose.h"

namespace shardwright::cli {

/// One JSON document of schema `shardwright/diagnose/1`. Sentences are in the language; keys, codes
/// and values that a script may ask for are the same in both.
[[nodiscard]] std::string diagnosis_json(const Diagnosis& diagnosis, Language language);

/// For people, in the console's language: layout, reason, expected names, loader, mismatches, next
/// command, in this order.
[[nodiscard]] std::string diagnosis_text(const Diagnosis& diagnosis, const Console& console);

}  // namespace shardwright::cli
