// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_parts.h"
#include "model/arguments.h"
#include "model/vocabulary_rows.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// What the arguments call the vocabulary, and what the family has beyond it. Only padding may go:
/// where they don't explain the rows that there are, nothing tells which of them are.
[[nodiscard]] VocabularyRows meant_rows(const ConvertRequest& request, const Checkpoint& source,
                                        const TargetParts& parts);

/// A vocabulary tensor keeps its stored height, which TP has to divide; on request it becomes what
/// Megatron would pad the rows to that mean something. `edits` gets the arguments that say so.
/// Error: kVocabularyNotDivisible.
[[nodiscard]] Status fit_vocabulary(const ConvertRequest& request, const VocabularyRows& vocabulary,
                                    TargetParts& parts, ArgumentList& edits);

}  // namespace shardwright
