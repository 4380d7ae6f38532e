// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_place.h"

#include <stdlib.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/fail.h"
#include "io/in_place.h"
#include "io/remote_path.h"
#include "io/remove_tree.h"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<DemoPlace> DemoPlace::make(const std::string& keep) {
  std::error_code error;
  if (!keep.empty()) {
    if (Status is_local = check_local_output(keep); !is_local) {
      return std::unexpected(std::move(is_local).error().within("--keep"));
    }
    fs::create_directories(keep, error);
    if (error) return fail_errno(error.value(), keep + translated(": cannot be made"));
    return DemoPlace(keep, false);
  }
  std::string pattern = (fs::temp_directory_path(error) / "shardwright-demo-XXXXXX").string();
  if (error || ::mkdtemp(pattern.data()) == nullptr) {
    return fail_errno(error ? error.value() : errno,
                      "a temporary folder cannot be made; set TMPDIR or give --keep DIR");
  }
  return DemoPlace(pattern, true);
}

DemoPlace::~DemoPlace() {
  if (!is_temporary_) return;
  (void)remove_tree(path_.c_str());
  forget_outputs();
}

DemoPlace::DemoPlace(DemoPlace&& other) noexcept
    : path_(std::move(other.path_)), is_temporary_(std::exchange(other.is_temporary_, false)) {}

Result<std::string> find_demo_checkpoint() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  // Python's own program is another: the package says where its files are.
  const char* package = std::getenv("SHARDWRIGHT_DEMO");
  const std::array<fs::path, 3> places = {
      program.parent_path().parent_path() / "share/shardwright/demo",
      fs::path(SHARDWRIGHT_SOURCE_DIR) / "tests/golden/hf/llama3/hf",
      package == nullptr ? "" : package};
  for (const fs::path& place : places) {
    if (fs::exists(place / "config.json", error)) return place.string();
  }
  return fail(Code::kNotFound, "{} has no model for the demonstration; give --checkpoint DIR",
              places[0].string());
}

}  // namespace shardwright::cli
