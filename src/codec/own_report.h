// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace shardwright {

/// How much of a file's beginning shows whether it is one of these.
inline constexpr std::size_t kReportHeadBytes = 2000;

/// Whether a file begins as the log of `--log-file` does.
[[nodiscard]] bool is_log(std::string_view head);

/// Whether it begins as a page of `report` does.
[[nodiscard]] bool is_page(std::string_view head);

/// Whether it begins as what this program tells about checkpoints and never keeps in one: logs,
/// pages, saved plans, digests of `hash`, documents of `--json`.
[[nodiscard]] bool is_own_report(std::string_view head);

}  // namespace shardwright
