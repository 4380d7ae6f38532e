// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// What the text of a config or its like may have: 64 MiB.
inline constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 20;

/// The whole of a file, or nothing where it is not there. Errors: those of reading.
[[nodiscard]] Result<std::string> read_if_there(const Directory& directory, std::string_view path,
                                                std::uint64_t limit);

/// Makes a file of the directory an entry of the catalog, so that it can be carried along.
[[nodiscard]] StoredObject add_file(Checkpoint& checkpoint, const std::string& path,
                                    std::uint64_t size);

/// A Hugging Face model's config, and its files that are not weights, of a folder of the directory.
[[nodiscard]] Status read_hf_artifacts(Checkpoint& checkpoint, Defects& defects,
                                       std::string_view folder = {});

/// What lies beside a Megatron checkpoint's entries, or its ranks' folders.
[[nodiscard]] Status read_carried(Checkpoint& checkpoint, Defects& defects);

/// What is carried along unread must be what it is called: loaders of the copy would fail.
[[nodiscard]] Status check_carried(const Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright
