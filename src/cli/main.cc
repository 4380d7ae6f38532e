// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

namespace {

// Before anything else of the program is made: its statics need memory too.
[[gnu::constructor(101)]] void begin_program() { shardwright::cli::expect_no_memory(); }

}  // namespace

int main(int argc, char** argv) { return shardwright::cli::run_program(argc, argv); }
