// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardwright {

/// Whether this process has put an output in its place since forget_outputs(): an error that comes
/// later, such as no memory for the report, is not one of the work. None of these needs memory.
[[nodiscard]] bool is_output_in_place() noexcept;
void note_output_in_place() noexcept;
void forget_outputs() noexcept;

}  // namespace shardwright
