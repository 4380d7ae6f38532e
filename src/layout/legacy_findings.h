// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layout/legacy_coverage.h"
#include "layout/legacy_reading.h"

namespace shardwright {

// What there is to say about a reading. Each function adds findings to the diagnosis.

/// Folders that are missing, too many, overwritten or stale: L06 to L09, L27, L30, L31, L36. Fills
/// in missing, unexpected and complete.
void add_folder_findings(const LegacyEvidence& evidence, const LegacyReading& reading,
                         Diagnosis& diagnosis);

/// What the files' names and contents show: L10, L12, L13, L16 to L18, L20, L21, L24, L25,
/// L33, L35, L39, L40.
void add_content_findings(const LegacyEvidence& evidence, const LegacyReading& reading,
                          Diagnosis& diagnosis);

/// What the caller believes against what is there: L01 to L03, L05, L11, L19, L32.
void add_caller_findings(const LegacyEvidence& evidence, const LegacyReading& reading,
                         Diagnosis& diagnosis);

/// `2/2/1/1`: sizes in the order of `TP/PP/EP/ETP`; `-` for an absent one.
[[nodiscard]] std::string sizes_text(const AxisSizes& sizes);

/// `shardwright convert PATH OUT --to torch_dist --tp 2`: flags for what is not 1.
[[nodiscard]] std::string convert_command(std::string_view path, std::string_view format,
                                          const AxisSizes& sizes);

}  // namespace shardwright
