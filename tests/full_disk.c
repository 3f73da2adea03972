/* Preloaded: makes a folder behave as one of a disk that is full, over its quota or read-only.
 *
 * FULL_DISK_FOLDER names the folder, FULL_DISK_ERROR the number of the error. Each process may write
 * FULL_DISK_ROOM bytes there; the write that goes beyond is cut short. Of EROFS no file opens. Each
 * process's first write there takes FULL_DISK_SLEEP seconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static _Atomic long used;
static atomic_flag slept = ATOMIC_FLAG_INIT;

static int error_there(void) { return atoi(getenv("FULL_DISK_ERROR")); }

static int is_there(const char *path) {
  const char *folder = getenv("FULL_DISK_FOLDER");
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_open_there(int descriptor) {
  char link[64];
  char path[PATH_MAX + 1] = {0};
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  return readlink(link, path, PATH_MAX) > 0 && is_there(path);
}

/* How many of the bytes fit; -1 sets errno: none. */
static ssize_t fit(size_t count) {
  const char *room = getenv("FULL_DISK_ROOM");
  const long left = (room == NULL ? 0 : atol(room)) - atomic_load(&used);
  if (left <= 0 && count > 0) {
    errno = error_there();
    return -1;
  }
  const size_t taken = count < (size_t)left ? count : (size_t)left;
  atomic_fetch_add(&used, (long)taken);
  return (ssize_t)taken;
}

ssize_t write(int descriptor, const void *data, size_t count) {
  ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  if (!is_open_there(descriptor)) return real(descriptor, data, count);
  const char *seconds = getenv("FULL_DISK_SLEEP");
  if (seconds != NULL && !atomic_flag_test_and_set(&slept)) sleep((unsigned)atoi(seconds));
  const ssize_t taken = fit(count);
  return taken < 0 ? -1 : real(descriptor, data, (size_t)taken);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
  ssize_t (*real)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
  if (!is_open_there(descriptor)) return real(descriptor, parts, count);
  return count == 0 ? 0 : write(descriptor, parts->iov_base, parts->iov_len);
}

static int opened(const char *name, const char *path, int flags, mode_t mode) {
  int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, name);
  const int writes = (flags & O_ACCMODE) != O_RDONLY;
  if (writes && is_there(path) && error_there() == EROFS) {
    errno = EROFS;
    return -1;
  }
  return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened("open64", path, flags, mode);
}
