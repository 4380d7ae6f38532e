// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/file_report.h"
#include "cli/json_writer.h"
#include "cli/pickle_warnings.h"
#include "shardwright/checkpoint.h"
#include "shardwright/diagnose.h"
#include "shardwright/prepared_conversion.h"

namespace shardwright::cli {

// What `--json` prints: each text is one JSON document whose `schema` is
// `shardwright/<command>/<version>`. Keys keep their order; sizes are whole numbers of bytes.

/// Opens the document of a command; close() ends it.
void begin_document(JsonWriter& json, std::string_view command);

/// `{"schema": "shardwright/convert/1", "error": {"code": "SW0107", "message": "..."}}`.
[[nodiscard]] std::string error_json(std::string_view command, const Error& error);

/// Tensors by index, in that order, with every chunk.
void write_tensors(JsonWriter& json, const Catalog& catalog,
                   const std::vector<std::size_t>& indices);

[[nodiscard]] std::string checkpoint_json(const Checkpoint& checkpoint,
                                          const std::vector<std::string>& globs,
                                          const PickleWarnings& warnings);
[[nodiscard]] std::string file_json(const FileReport& report,
                                    const std::vector<std::string>& globs);
/// `free_bytes`: on the target's disk, where that is known.
[[nodiscard]] std::string plan_json(const PreparedConversion& conversion,
                                    const ReplacedOutput& replaced,
                                    std::optional<std::uint64_t> free_bytes);

/// `"shape": [2, 3]` on one line.
void write_dims(JsonWriter& json, std::string_view name, const Dims& dims);

void write_layout(JsonWriter& json, const ParallelConfig& parallel);

}  // namespace shardwright::cli
