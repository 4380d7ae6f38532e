// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "io/source_files.h"

namespace shardwright {

/// Reads what is missing of records of which only a part was read, so that the bytes that were are
/// compared with the records' CRC-32s too. `buffer_bytes`: for all threads. Error:
/// kPayloadDamaged.
[[nodiscard]] Status read_begun_records(SourceFiles& files, int threads,
                                        std::uint64_t buffer_bytes);

/// To be called when all that was needed was read, before anything is said of it: that, and whether
/// the files are still what they were when they were opened. Error: kSourceChanged too.
[[nodiscard]] Status finish_reading(SourceFiles& files, int threads);

}  // namespace shardwright
