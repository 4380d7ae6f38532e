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
#include "io/named_file.h"
#include "io/replace_file.h"

namespace shardwright::cli {
namespace {

// Whether a file begins as html_page() writes it.
bool is_page(const std::string& path) {
  constexpr std::uint64_t kMostPageBytes = std::uint64_t{1} << 30;
  const auto text = read_named_file(path, kMostPageBytes);
  return text && std::string_view(*text).substr(0, 2000).find("<title>shardwright</title>") !=
                     std::string_view::npos;
}

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
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    return check_replaceable(path);
  }
  if (!is_page(path)) {
    return fail(Code::kTargetExists,
                "{} {}: what lies there is no page of shardwright and is left alone; choose "
                "another path or remove it",
                flag, printable(path));
  }
  if (overwrite) return check_replaceable(path);
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
