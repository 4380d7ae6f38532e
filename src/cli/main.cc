// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/run.h"

int main(int argc, char** argv) {
  using namespace shardwright::cli;
  Console console = Console::standard();
  return run_command_line(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                          console);
}
