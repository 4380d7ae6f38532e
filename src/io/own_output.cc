// SPDX-License-Identifier: Apache-2.0
#include "io/own_output.h"

#include <sys/stat.h>
#include <unistd.h>

namespace shardwright {
namespace {

bool is_behind(int descriptor, const FileVersion& file) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_dev == file.device && status.st_ino == file.number;
}

}  // namespace

bool is_own_output(const FileVersion& file) {
  return is_behind(STDOUT_FILENO, file) || is_behind(STDERR_FILENO, file);
}

}  // namespace shardwright
