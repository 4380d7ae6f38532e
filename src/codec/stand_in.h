// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "shardwright/error.h"
#include "shardwright/storage.h"

namespace shardwright {

/// How much of a file's beginning shows what it is.
inline constexpr std::uint64_t kHeadBytes = 512;

/// What kind of bytes a reader expects: text, in which words are no surprise, or binary.
enum class Contents : std::uint8_t { kText, kBinary };

/// Whether a file begins like something that is often left in the place of another: nothing at all,
/// a Git LFS pointer, a web page or a service's error message, the zeros of a download that is not
/// finished. `head` is the file's first kHeadBytes or all of it, `wanted` what should be there
/// ("a safetensors file"). The error says what it is and how to get the real one.
[[nodiscard]] Status refuse_stand_in(Code code, std::string_view name, std::string_view head,
                                     std::string_view wanted, Contents contents);

/// The same for an open file. Errors: also those of reading.
[[nodiscard]] Status refuse_stand_in(Code code, const ReadableFile& file, std::string_view wanted,
                                     Contents contents);

}  // namespace shardwright
