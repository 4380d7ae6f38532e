// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>

#include "canonical/model_facts.h"
#include "convert/drafting.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// Whether a draft is a table with a row for each token: embedding, head.
using IsTable = std::function<bool(const DraftTensor& tensor)>;

/// The names of Hugging Face's tables, copies among them.
[[nodiscard]] std::set<std::string> hf_tables(const Correspondence& correspondence);

/// How many rows of the model's tables mean something. Error: kUsage for a family without any.
[[nodiscard]] Result<std::int64_t> vocabulary_of(const ModelFacts& facts);

/// Gives each table the rows that the request asks for, if it does. `rows` is how many mean
/// something now. A new row is the mean of those: sums in float64, row by row, divided by their
/// number and rounded once to the type that the table is written in. Rows behind the new ones are
/// zero. Reads the tables. Errors: kUsage where there are as many rows already, or no table;
/// kOptimizerUnsupported where optimizer states are kept; kShapeMismatch for a tensor that is no
/// such table and whose name ends as one of `others`, the family's token_tables; those of reading.
[[nodiscard]] Status extend_vocabulary(Drafting& drafting, std::int64_t rows,
                                       const IsTable& is_table,
                                       std::span<const std::string> others);

}  // namespace shardwright
