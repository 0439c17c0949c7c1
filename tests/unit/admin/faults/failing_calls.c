/* Calls of the C library that fail once, for the tests in this folder: built and preloaded by them, never
 * installed. A call counts when its file's path has the wanted part; the wanted one fails in the wanted way.
 *
 *   cc -shared -fPIC -o failing_calls.so failing_calls.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum how { NEVER, EIO_ONCE, ENOSPC_ONCE, SHORT_ONCE, EIO_FROM_THEN };

static enum how fail_how = NEVER;
static long fail_at = 0, seen = 0;
static char part[256] = "";

void fail_set(int how, long at, const char *of)
{
    fail_how = how, fail_at = at, seen = 0;
    snprintf(part, sizeof part, "%s", of);
}

long fail_seen(void) { return seen; }

static int counts(int fd)
{
    char link[64], path[1024];
    ssize_t size;
    if (fail_how == NEVER)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return 0;
    path[size] = 0;
    if (!strstr(path, part))
        return 0;
    seen++;
    return seen == fail_at || (fail_how == EIO_FROM_THEN && seen > fail_at);
}

/* 0: call the real one; -1: failed; more: write only so many bytes */
static ssize_t verdict(int fd, size_t size, int is_write)
{
    if (!counts(fd))
        return 0;
    if (fail_how == SHORT_ONCE)
        return is_write && size > 1 ? (ssize_t)(size / 2) : 0;
    errno = fail_how == ENOSPC_ONCE ? ENOSPC : EIO;
    return -1;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(write);
    ssize_t found = verdict(fd, size, 1);
    return found < 0 ? -1 : real(fd, data, found ? (size_t)found : size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    REAL(pwrite);
    ssize_t found = verdict(fd, size, 1);
    return found < 0 ? -1 : real(fd, data, found ? (size_t)found : size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    REAL(pwrite64);
    ssize_t found = verdict(fd, size, 1);
    return found < 0 ? -1 : real(fd, data, found ? (size_t)found : size, at);
}

int fsync(int fd)
{
    REAL(fsync);
    return verdict(fd, 0, 0) < 0 ? -1 : real(fd);
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    return verdict(fd, 0, 0) < 0 ? -1 : real(fd);
}

int ftruncate(int fd, off_t size)
{
    REAL(ftruncate);
    return verdict(fd, 0, 0) < 0 ? -1 : real(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    REAL(ftruncate64);
    return verdict(fd, 0, 0) < 0 ? -1 : real(fd, size);
}
