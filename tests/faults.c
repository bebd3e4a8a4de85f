/*
 * Lets one chosen file operation fail, in whichever process of a program makes it: for LD_PRELOAD.
 *
 * Beside the compiled library lies a file named as the library plus ".plan" (struct plan below), which every process
 * maps. It says below which folder operations count, and which of them fail and how. Each operation that changes
 * something there takes the next number, and adds a line "number, process, call, path" to the file ".log" beside; those
 * that fail have a "!" in front. Without a plan, nothing is done. Nothing comes from the environment, as a program may start
 * others with little of it.
 *
 * Linux with the GNU C library. Seen are the calls of CPython, NumPy, SQLite, Rust and C++, not what the C library does
 * inside itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* in the machine's own byte order; 64-bit fields first, so that there are no gaps */
struct plan {
    _Atomic uint64_t count; /* operations so far */
    uint64_t first, last;   /* those that fail, counted from 1; 0 and 0 for none */
    int64_t error;          /* the errno they get */
    char call[32], end[128]; /* if not empty, only calls of this name count, on paths that end so */
    char folder[PATH_MAX];  /* absolute, without links and without a slash at the end */
};

static struct plan *plan;
static char log_path[PATH_MAX];

__attribute__((constructor)) static void read_plan(void) {
    Dl_info own;
    char path[PATH_MAX];
    if (!dladdr((void *)read_plan, &own)) return;
    snprintf(path, sizeof path, "%s.plan", own.dli_fname);
    snprintf(log_path, sizeof log_path, "%s.log", own.dli_fname);
    /* raw system calls, here and below: our own must not be counted */
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (mapped != MAP_FAILED) plan = mapped;
}

/* The path behind a descriptor; a pipe has one that is below no folder. */
static void path_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, descriptor == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
}

static void absolute(int folder, const char *name, char *path) {
    path[0] = 0;
    if (name[0] != '/') {
        path_of(folder, path);
        strncat(path, "/", PATH_MAX - strlen(path) - 1);
    }
    strncat(path, name, PATH_MAX - strlen(path) - 1);
}

/* Count an operation below the folder; true if it is to fail. The name is relative to the descriptor, or NULL. */
static int refused(const char *call, int descriptor, const char *name) {
    if (!plan) return 0;
    int kept = errno, length, fails;
    char path[PATH_MAX], line[PATH_MAX + 64];
    if (name) absolute(descriptor, name, path);
    else path_of(descriptor, path);
    errno = kept;
    size_t folder = strlen(plan->folder);
    if (strncmp(path, plan->folder, folder) || (path[folder] != '/' && path[folder])) return 0;
    if (*plan->call && strcmp(call, plan->call)) return 0;
    if (strlen(path) < strlen(plan->end) || strcmp(path + strlen(path) - strlen(plan->end), plan->end)) return 0;
    uint64_t number = atomic_fetch_add(&plan->count, 1) + 1;
    fails = number >= plan->first && number <= plan->last;
    length = snprintf(line, sizeof line, "%s%lu\t%d\t%s\t%s\n", fails ? "!" : "", (unsigned long)number, (int)getpid(),
                      call, path);
    int file = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    syscall(SYS_write, file, line, (size_t)length);
    syscall(SYS_close, file);
    errno = fails ? (int)plan->error : kept;
    return fails;
}

/* Defines a function as the next library's, but failing when it is its turn. */
#define WRAP(type, failed, call, parameters, arguments, descriptor, name)              \
    type call parameters {                                                             \
        static type(*real) parameters;                                                 \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #call);                 \
        return refused(#call, descriptor, name) ? failed : real arguments;             \
    }

#define CHANGES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))
#define WRAP_OPEN(call, parameters, given, descriptor)                                 \
    int call parameters {                                                              \
        static int(*real) parameters;                                                  \
        if (!real) real = (int(*) parameters)dlsym(RTLD_NEXT, #call);                  \
        va_list rest;                                                                  \
        va_start(rest, flags);                                                         \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                      \
        va_end(rest);                                                                  \
        return CHANGES(flags) && refused(#call, descriptor, name) ? -1 : real given;   \
    }

WRAP_OPEN(open, (const char *name, int flags, ...), (name, flags, mode), AT_FDCWD)
WRAP_OPEN(open64, (const char *name, int flags, ...), (name, flags, mode), AT_FDCWD)
WRAP_OPEN(openat, (int at, const char *name, int flags, ...), (at, name, flags, mode), at)
WRAP_OPEN(openat64, (int at, const char *name, int flags, ...), (at, name, flags, mode), at)
WRAP(int, -1, creat, (const char *name, mode_t mode), (name, mode), AT_FDCWD, name)
WRAP(int, -1, creat64, (const char *name, mode_t mode), (name, mode), AT_FDCWD, name)

FILE *fopen(const char *name, const char *mode) {
    static FILE *(*real)(const char *, const char *);
    if (!real) real = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen64");
    return strpbrk(mode, "wa+") && refused("fopen", AT_FDCWD, name) ? NULL : real(name, mode);
}
FILE *fopen64(const char *name, const char *mode) { return fopen(name, mode); }

/* A full disk shows when a buffer is written, so at the latest when the file is closed, and what was in it is lost. */
#define WRITES(file) (plan && __fwritable(file))
#define HOLDS(file) (WRITES(file) && __fpending(file))
size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
    static size_t (*real)(const void *, size_t, size_t, FILE *);
    if (!real) real = (size_t(*)(const void *, size_t, size_t, FILE *))dlsym(RTLD_NEXT, "fwrite");
    return WRITES(file) && refused("fwrite", fileno(file), NULL) ? 0 : real(data, size, count, file);
}
int fclose(FILE *file) {
    static int (*real)(FILE *);
    if (!real) real = (int (*)(FILE *))dlsym(RTLD_NEXT, "fclose");
    int fails = HOLDS(file) && refused("fclose", fileno(file), NULL), error = errno;
    if (fails) __fpurge(file);
    int done = real(file);
    if (fails) errno = error;
    return fails ? EOF : done;
}

#define DATA const void *data, size_t size
#define PIECES const struct iovec *pieces, int count
WRAP(ssize_t, -1, write, (int file, DATA), (file, data, size), file, NULL)
WRAP(ssize_t, -1, writev, (int file, PIECES), (file, pieces, count), file, NULL)
WRAP(ssize_t, -1, pwrite, (int file, DATA, off_t place), (file, data, size, place), file, NULL)
WRAP(ssize_t, -1, pwrite64, (int file, DATA, off64_t place), (file, data, size, place), file, NULL)
WRAP(ssize_t, -1, pwritev, (int file, PIECES, off_t place), (file, pieces, count, place), file, NULL)
WRAP(ssize_t, -1, pwritev64, (int file, PIECES, off64_t place), (file, pieces, count, place), file, NULL)
WRAP(ssize_t, -1, sendfile, (int to, int from, off_t *place, size_t size), (to, from, place, size), to, NULL)
WRAP(ssize_t, -1, sendfile64, (int to, int from, off64_t *place, size_t size), (to, from, place, size), to, NULL)
WRAP(ssize_t, -1, copy_file_range,
     (int from, off64_t *there, int to, off64_t *here, size_t size, unsigned int flags),
     (from, there, to, here, size, flags), to, NULL)
WRAP(int, -1, ftruncate, (int file, off_t size), (file, size), file, NULL)
WRAP(int, -1, ftruncate64, (int file, off64_t size), (file, size), file, NULL)
WRAP(int, -1, truncate, (const char *name, off_t size), (name, size), AT_FDCWD, name)
WRAP(int, -1, truncate64, (const char *name, off64_t size), (name, size), AT_FDCWD, name)
WRAP(int, -1, fallocate, (int file, int mode, off_t place, off_t size), (file, mode, place, size), file, NULL)
WRAP(int, -1, fallocate64, (int file, int mode, off64_t place, off64_t size), (file, mode, place, size), file, NULL)
/* these give the error instead of setting it */
WRAP(int, errno, posix_fallocate, (int file, off_t place, off_t size), (file, place, size), file, NULL)
WRAP(int, errno, posix_fallocate64, (int file, off64_t place, off64_t size), (file, place, size), file, NULL)
WRAP(int, EOF, fflush, (FILE *file), (file), file && HOLDS(file) ? fileno(file) : -1, NULL)
WRAP(int, -1, fsync, (int file), (file), file, NULL)
WRAP(int, -1, fdatasync, (int file), (file), file, NULL)

WRAP(int, -1, rename, (const char *name, const char *to), (name, to), AT_FDCWD, to)
WRAP(int, -1, renameat, (int at, const char *name, int there, const char *to), (at, name, there, to), there, to)
WRAP(int, -1, renameat2, (int at, const char *name, int there, const char *to, unsigned int flags),
     (at, name, there, to, flags), there, to)
WRAP(int, -1, link, (const char *name, const char *to), (name, to), AT_FDCWD, to)
WRAP(int, -1, linkat, (int at, const char *name, int there, const char *to, int flags), (at, name, there, to, flags),
     there, to)
WRAP(int, -1, symlink, (const char *target, const char *name), (target, name), AT_FDCWD, name)
WRAP(int, -1, mkdir, (const char *name, mode_t mode), (name, mode), AT_FDCWD, name)
WRAP(int, -1, mkdirat, (int at, const char *name, mode_t mode), (at, name, mode), at, name)
WRAP(int, -1, unlink, (const char *name), (name), AT_FDCWD, name)
WRAP(int, -1, unlinkat, (int at, const char *name, int flags), (at, name, flags), at, name)
WRAP(int, -1, rmdir, (const char *name), (name), AT_FDCWD, name)
WRAP(int, -1, remove, (const char *name), (name), AT_FDCWD, name)
