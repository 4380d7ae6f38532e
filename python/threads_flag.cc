// SPDX-License-Identifier: Apache-2.0
// Archives that were compiled for programs, as Debian's are, reach libc's flag in a way that a
// shared module cannot offer. The module gets one of its own, which always says that there are
// threads: then reference counts are atomic, as they must be in a process that it knows nothing of.
extern "C" {

[[gnu::visibility("hidden")]] extern char __libc_single_threaded;
char __libc_single_threaded = 0;

}  // extern "C"
