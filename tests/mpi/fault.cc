// SPDX-License-Identifier: Apache-2.0
// Preloaded into the ranks of a test: at a certain system call of one of them something happens.
// FAULT_RANK; FAULT_CALL (open, pread, pwrite, fdatasync, fsync, rename, unlink; renamed: once
// that is done) of a path that contains FAULT_PATH; FAULT_LEAST: of at least so
// many bytes; FAULT_AT: the how-manieth of them; FAULT_KIND (kill, exit, stop, enospc, eio, hang);
// FAULT_MARK: a file that appears then. FAULT_ABORT: MPI_Abort hangs, and
// no mpirun is to be seen. The work is shared out as
// ranks ask for it, so the others don't write while that rank has yet to do so many writes, or
// reads of FAULT_LEAST: on a busy machine it would come to none. NOTE_FILE: each rank notes there
// (with its number behind) what it opens and reads of paths that contain NOTE_PATH.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace {

std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string path_of(int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length < 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

// Another launcher's ranks tell it by MPI_Abort that the job is to end.
[[gnu::constructor]] void hide_mpirun() {
  if (!setting("FAULT_ABORT").empty()) ::unsetenv("OMPI_MCA_orte_hnp_uri");
}

bool is_of_faulty_rank() { return setting("OMPI_COMM_WORLD_RANK") == setting("FAULT_RANK"); }

void leave_mark(std::string_view ending) {
  const std::string path = std::string(setting("FAULT_MARK")).append(ending);
  const int mark = ::open(path.c_str(), O_CREAT | O_WRONLY, 0644);
  if (mark >= 0) ::close(mark);
}

// Whether this call fails, with errno set; does not return where the process is to end.
bool fails(std::string_view call, std::string_view path) {
  static std::atomic<int> count{0};
  if (setting("FAULT_CALL") != call || !is_of_faulty_rank()) return false;
  if (path.find(setting("FAULT_PATH")) == std::string_view::npos) return false;
  if (++count != std::atoi(std::string(setting("FAULT_AT")).c_str())) return false;
  leave_mark(".turn");
  leave_mark("");
  const std::string_view kind = setting("FAULT_KIND");
  if (kind == "kill") ::kill(::getpid(), SIGKILL);
  if (kind == "exit") ::_exit(3);
  if (kind == "stop") ::kill(::getpid(), SIGSTOP);
  while (kind == "hang") ::pause();  // this thread only
  errno = kind == "enospc" ? ENOSPC : EIO;
  return kind == "enospc" || kind == "eio";
}

std::size_t least() {
  return static_cast<std::size_t>(std::atoll(std::string(setting("FAULT_LEAST")).c_str()));
}

// Once: the faulty rank may have come to an end without its turn, and there are many writes.
void await_turn(std::string_view ending) {
  static std::atomic<bool> was_in_vain{false};
  const std::string turn = std::string(setting("FAULT_MARK")).append(ending);
  for (int waits = 0; ::access(turn.c_str(), F_OK) != 0; ++waits) {
    if (waits == 2000) was_in_vain = true;
    if (was_in_vain) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// The same before a long read, if that is what is to fail.
void take_turns_in_reading(std::string_view path, std::size_t size) {
  if (setting("FAULT_CALL") != "pread" || least() == 0 || size < least()) return;
  if (path.find(setting("FAULT_PATH")) == std::string_view::npos) return;
  if (is_of_faulty_rank()) {
    leave_mark(".read");
  } else {
    await_turn(".read");
  }
}

// Before a write of `path`: the faulty rank's turn comes first. What is short may be of rank 0
// before it shares the work out.
void take_turns(std::string_view path, std::size_t size) {
  static std::atomic<int> count{0};
  constexpr std::size_t kShort = 32768;
  if (setting("FAULT_MARK").empty() || path.find(".partial-") == std::string_view::npos) return;
  if (is_of_faulty_rank()) {
    const bool is_awaited = setting("FAULT_CALL") == "pwrite";
    const int awaited = is_awaited ? std::atoi(std::string(setting("FAULT_AT")).c_str()) : 1;
    if (++count != awaited) return;
    leave_mark(".turn");
    // What it did before is told to rank 0 meanwhile.
    if (awaited > 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return;
  }
  if (size < kShort) return;
  await_turn(".turn");
}

std::size_t size_of(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  return size;
}

// A line of what this rank does with a file.
void note(std::string_view call, const std::string& path, std::size_t size) {
  if (setting("NOTE_FILE").empty()) return;
  if (path.find(setting("NOTE_PATH")) == std::string::npos) return;
  const std::string file =
      std::string(setting("NOTE_FILE")) + "." + std::string(setting("OMPI_COMM_WORLD_RANK"));
  const std::string line = std::string(call) + " " + std::to_string(size) + " " + path + "\n";
  const long fd = ::syscall(SYS_openat, AT_FDCWD, file.c_str(),
                            O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(static_cast<int>(fd), line.data(), line.size());
  ::close(static_cast<int>(fd));
}

int open_or_fail(int folder, const char* name, int flags, mode_t mode) {
  const bool is_whole = name[0] == '/' || folder == AT_FDCWD;
  const std::string path = is_whole ? name : path_of(folder) + "/" + name;
  if (fails("open", path)) return -1;
  const long fd = ::syscall(SYS_openat, folder, name, flags, mode);
  if (fd >= 0) note("open", path_of(static_cast<int>(fd)), 0);
  return static_cast<int>(fd);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_or_fail(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_or_fail(folder, path, flags, mode);
}

ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  static const auto real = next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  note("read", path_of(fd), size);
  take_turns_in_reading(path_of(fd), size);
  const bool fails_now = size >= least() && fails("pread", path_of(fd));
  return fails_now ? -1 : real(fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  take_turns(path_of(fd), size);
  return fails("pwrite", path_of(fd)) ? -1 : real(fd, bytes, size, offset);
}

ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int, off_t)>("pwritev");
  take_turns(path_of(fd), size_of(std::span(parts, static_cast<std::size_t>(count))));
  return fails("pwrite", path_of(fd)) ? -1 : real(fd, parts, count, offset);
}

int fdatasync(int fd) {
  static const auto real = next<int (*)(int)>("fdatasync");
  return fails("fdatasync", path_of(fd)) ? -1 : real(fd);
}

int fsync(int fd) {
  static const auto real = next<int (*)(int)>("fsync");
  return fails("fsync", path_of(fd)) ? -1 : real(fd);
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  static const auto real = next<int (*)(int, const char*, int)>("unlinkat");
  const bool is_whole = name[0] == '/' || folder == AT_FDCWD;
  const std::string path = is_whole ? name : path_of(folder) + "/" + name;
  return fails("unlink", path) ? -1 : real(folder, name, flags);
}

// MPI's, which then never comes back.
int MPI_Abort(void* job, int status) {
  static const auto real = next<int (*)(void*, int)>("MPI_Abort");
  while (!setting("FAULT_ABORT").empty()) ::pause();
  return real(job, status);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  if (fails("rename", from)) return -1;
  const int result = real(from, to);
  return result == 0 && fails("renamed", from) ? -1 : result;
}
}
