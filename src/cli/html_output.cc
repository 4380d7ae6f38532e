// SPDX-License-Identifier: Apache-2.0
#include "cli/html_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "cli/named_output.h"
#include "codec/own_report.h"

namespace shardwright::cli {
namespace {

bool start_program(const std::string& program, const std::string& argument) {
  std::string name = program;
  std::string file = argument;
  char* words[] = {name.data(), file.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  }
  pid_t child = 0;
  const int failed = posix_spawnp(&child, name.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0;
}

}  // namespace

Status check_page_place(std::string_view flag, const std::string& path, bool overwrite) {
  const bool is_there = SW_TRY(check_named_output(flag, path, is_page));
  if (!is_there || overwrite) return {};
  return fail(Code::kTargetExists, "{} {}: a page is there already; give --overwrite to replace it",
              flag, printable(path));
}

void open_in_browser(const std::string& path, Console& console) {
  std::vector<std::string> programs;
  if (const char* named = std::getenv("BROWSER"); named != nullptr && *named != '\0') {
    programs.emplace_back(named);
  } else {
    programs = {"xdg-open", "open"};
  }
  std::error_code ignored;
  const std::string file = std::filesystem::absolute(path, ignored).string();
  for (const std::string& program : programs) {
    if (start_program(program, file)) return;
  }
  console.message(
      translated("--open: found no program that shows it ({} is not there); open {} "
                 "in a browser, or name one in $BROWSER",
                 programs.front(), file));
}

}  // namespace shardwright::cli
