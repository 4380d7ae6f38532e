// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"

namespace shardwright::cli {

/// Runs the command that the words after the program's name ask for, in any dialect of flags, and
/// gives the exit status. What fails is told on the console; nothing is thrown.
[[nodiscard]] int run_command_line(const std::vector<std::string>& words, Console& console);

/// The same as one of several ranks, all of which do a part. Messages are rank 0's, which should
/// have the only console that anybody reads. Waits until all ranks are through.
[[nodiscard]] int run_rank(const std::vector<std::string>& words, Console& console,
                           RankSession& session);

/// From here on the process ends with a message and kExitFailure where memory runs out in a place
/// that can't be caught, instead of aborting.
void expect_no_memory() noexcept;

/// The whole program: `words` are those of main. Where memory runs out so early or so thoroughly
/// that the console can't tell, one line of standard error does.
[[nodiscard]] int run_program(int count, const char* const* words) noexcept;

}  // namespace shardwright::cli
