// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardwright {

/// Raises this process's soft limit of open files to the hard one and returns the limit in force.
/// A program calls it once at its start: large checkpoints have more files than the usual 1024.
std::uint64_t raise_open_file_limit();

}  // namespace shardwright
