// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compare/listed_digests.h"
#include "exec/jobs.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What Megatron writes with --verify-integrity (0.18 and newer): the SHA-256 of each file beside
/// it, `{"algorithm": "sha256", "files": {"common.pt": "…"}}`.
inline constexpr std::string_view kIntegrityFile = "integrity.json";

/// Compares the files that it names; nothing is guarded where there is no such file. What is wrong
/// is told to `defects`: what check_listed() tells, and kJsonCorrupt.
[[nodiscard]] Result<ListedChecked> check_integrity_file(const Checkpoint& checkpoint,
                                                         const Workers& workers, Defects& defects);

/// One of these files, which lie in `folder` (with its `/`).
[[nodiscard]] GuardFile integrity_file_of(const std::string& folder,
                                          std::span<const ListedDigest> digests);

}  // namespace shardwright
