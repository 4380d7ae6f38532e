// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shardwright {

/// RFC 4648, with padding. At most 1 GiB.
[[nodiscard]] std::string to_base64(std::span<const std::byte> bytes);

/// The bytes of a text that has nothing but digits and padding; nothing for any other text.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace shardwright
