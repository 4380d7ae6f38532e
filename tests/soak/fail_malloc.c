/* SPDX-License-Identifier: Apache-2.0
   Preloaded: of the program's allocations the one that FAIL_MALLOC numbers gives no memory, and with
   FAIL_MALLOC_ON all behind it. With FAIL_MALLOC_COUNT the count is written there in the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);

static atomic_long made;
static long failing = -1;
static int goes_on;

/* Run when libraries are loaded, before the program's own constructors: the first allocations of all
   are counted too. */
__attribute__((constructor(101))) static void begin(void) {
  const char* number = getenv("FAIL_MALLOC");
  if (number) failing = atol(number);
  goes_on = getenv("FAIL_MALLOC_ON") != NULL;
}

__attribute__((destructor)) static void end(void) {
  const char* path = getenv("FAIL_MALLOC_COUNT");
  if (!path) return;
  char text[32];
  int size = snprintf(text, sizeof text, "%ld", atomic_load(&made));
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd >= 0 && write(fd, text, (size_t)size) != size) _exit(99);
  if (fd >= 0) close(fd);
}

static int fails(void) {
  long number = atomic_fetch_add(&made, 1) + 1;
  int is_it = number == failing || (goes_on && failing > 0 && number > failing);
  if (is_it) errno = ENOMEM;
  return is_it;
}

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
