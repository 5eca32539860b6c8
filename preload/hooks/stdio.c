/*
 * stdio. The system calls inside a stream's functions pass no hook, so functions that may make one
 * show as slices. Where the stream's buffer is enough, they are not even timed.
 */
#include <features.h>
/*
 * The headers would turn scanf into C99's, which has a hook of its own; here scanf must stay scanf.
 */
#undef __GLIBC_USE_DEPRECATED_SCANF
#define __GLIBC_USE_DEPRECATED_SCANF 1

#include "thread_names.h"

#include "encoder/base/glibc.h"
#include "preload/bind/real.h"
#include "preload/life/process_end.h"
#include "preload/waits/fds.h"
#include "preload/waits/file_locks.h"
#include "preload/waits/slice.h"

#include <stdarg.h>

/*
 * Whether n bytes can be read or written without the kernel. If another thread changes the stream
 * meanwhile, the answer is a guess. For n = 0 libc does not look at the stream, which then may be
 * no stream. _IO_* as in libc's public bits/types/struct_FILE.h.
 */

static char *load(char *const *pointer)
{
    return __atomic_load_n(pointer, __ATOMIC_RELAXED);
}

static bool readable(const FILE *file, size_t n)
{
    return !n || file->_IO_read_end - file->_IO_read_ptr >= (ptrdiff_t)n;
}

static bool writable(const FILE *file, size_t n)
{
    if (!n)
        return true;
    const char *p = file->_IO_write_ptr, *end = file->_IO_buf_end;
    return !(file->_flags & (GT_STDIO_UNBUFFERED | GT_STDIO_BY_LINE)) && p && p < end &&
           (size_t)(end - p) > n;
}

/*
 * Whether the buffer holds a whole line. Pushed-back characters are in another buffer, so the two
 * pointers may be of different buffers. The bytes between them are read only if both are in the
 * stream's own buffer, which stays.
 */
static bool has_line(const FILE *file)
{
    const char *p = load(&file->_IO_read_ptr), *end = load(&file->_IO_read_end);
    const char *from = load(&file->_IO_buf_base), *to = load(&file->_IO_buf_end);
    return from <= p && p < end && end <= to && memchr(p, '\n', (size_t)(end - p));
}

/* A stream that is not wide has none. */
static const struct gt_stdio_wide *wide_of(const FILE *file)
{
    return file->_mode > 0 ? (const struct gt_stdio_wide *)file->_wide_data : NULL;
}

static bool wide_readable(const FILE *file)
{
    const struct gt_stdio_wide *wide = wide_of(file);
    return wide && wide->read_ptr < wide->read_end;
}

static bool wide_writable(const FILE *file)
{
    const struct gt_stdio_wide *wide = wide_of(file);
    return wide && wide->write_ptr < wide->write_end;
}

#define STDIO(enough, result, name, parameters, arguments)         \
    GT_EXPORT result name parameters                               \
    {                                                              \
        if (enough)                                                \
            return gt_real.name arguments;                         \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE); \
        return gt_real.name arguments;                             \
    }
#define STDIO_VOID(name, parameters, arguments)                    \
    GT_EXPORT void name parameters                                 \
    {                                                              \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE); \
        gt_real.name arguments;                                    \
    }
#include "preload/tables/stdio.def"

/* A wait for another thread. If the stream's lock is free, nothing is recorded. */
GT_EXPORT void flockfile(FILE *file)
{
    if (ftrylockfile(file) == 0)
        return;
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_flockfile, GT_SYNC);
    gt_real.flockfile(file);
}

#define FOPEN(name)                                                                    \
    GT_EXPORT FILE *name(const char *path, const char *mode)                           \
    {                                                                                  \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE);                     \
        FILE *file = gt_real.name(path, mode);                                         \
        if (file)                                                                      \
            gt_thread_names_opened(fileno_unlocked(file), path, strpbrk(mode, "wa+")); \
        return file;                                                                   \
    }

FOPEN(fopen)
FOPEN(fopen64)

/* Forgets the stream's descriptor, which `hook` will close. Some streams have none: -1. */
static int forget(enum gt_hook hook, FILE *file)
{
    GT_KEEP_ERRNO;
    int fd = fileno_unlocked(file);
    gt_file_lock_close(hook, fd);
    return gt_fd_forget(fd);
}

GT_EXPORT int fclose(FILE *file)
{
    struct gt_stream_name name = gt_thread_names_in(file);
    int r;
    {
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_fclose, GT_FILE);
        if (forget(GT_HOOK_fclose, file) == 2)
            gt_process_keep_stderr();
        r = gt_real.fclose(file);
    }
    if (r == 0)
        gt_thread_names_closed(&name);
    return r;
}

/* The stream may keep its descriptor number with a new meaning. */
#define FREOPEN(name)                                                    \
    GT_EXPORT FILE *name(const char *path, const char *mode, FILE *file) \
    {                                                                    \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE);       \
        forget(GT_HOOK_##name, file);                                    \
        return gt_real.name(path, mode, file);                           \
    }

FREOPEN(freopen)
FREOPEN(freopen64)

GT_EXPORT int pclose(FILE *file)
{
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_pclose, GT_FILE);
    forget(GT_HOOK_pclose, file);
    return gt_real.pclose(file);
}

/* Formatted output, whose length is not known beforehand. */

#define PRINTF(name, real, parameters, arguments)                  \
    GT_EXPORT int name parameters                                  \
    {                                                              \
        va_list ap;                                                \
        va_start(ap, format);                                      \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE); \
        int r = gt_real.real arguments;                            \
        va_end(ap);                                                \
        return r;                                                  \
    }

PRINTF(printf, vprintf, (const char *format, ...), (format, ap))
PRINTF(fprintf, vfprintf, (FILE * file, const char *format, ...), (file, format, ap))
PRINTF(__printf_chk, __vprintf_chk, (int flag, const char *format, ...), (flag, format, ap))
PRINTF(__fprintf_chk, __vfprintf_chk, (FILE * file, int flag, const char *format, ...),
       (file, flag, format, ap))
PRINTF(wprintf, vwprintf, (const wchar_t *format, ...), (format, ap))
PRINTF(fwprintf, vfwprintf, (FILE * file, const wchar_t *format, ...), (file, format, ap))
PRINTF(__wprintf_chk, __vwprintf_chk, (int flag, const wchar_t *format, ...), (flag, format, ap))
PRINTF(__fwprintf_chk, __vfwprintf_chk, (FILE * file, int flag, const wchar_t *format, ...),
       (file, flag, format, ap))
PRINTF(dprintf, vdprintf, (int fd, const char *format, ...), (fd, format, ap))
PRINTF(__dprintf_chk, __vdprintf_chk, (int fd, int flag, const char *format, ...),
       (fd, flag, format, ap))

/* Formatted input. */

PRINTF(scanf, vscanf, (const char *format, ...), (format, ap))
PRINTF(fscanf, vfscanf, (FILE * file, const char *format, ...), (file, format, ap))
PRINTF(wscanf, vwscanf, (const wchar_t *format, ...), (format, ap))
PRINTF(fwscanf, vfwscanf, (FILE * file, const wchar_t *format, ...), (file, format, ap))
PRINTF(__isoc99_scanf, __isoc99_vscanf, (const char *format, ...), (format, ap))
PRINTF(__isoc99_fscanf, __isoc99_vfscanf, (FILE * file, const char *format, ...),
       (file, format, ap))
PRINTF(__isoc99_wscanf, __isoc99_vwscanf, (const wchar_t *format, ...), (format, ap))
PRINTF(__isoc99_fwscanf, __isoc99_vfwscanf, (FILE * file, const wchar_t *format, ...),
       (file, format, ap))
PRINTF(__isoc23_scanf, __isoc23_vscanf, (const char *format, ...), (format, ap))
PRINTF(__isoc23_fscanf, __isoc23_vfscanf, (FILE * file, const char *format, ...),
       (file, format, ap))
PRINTF(__isoc23_wscanf, __isoc23_vwscanf, (const wchar_t *format, ...), (format, ap))
PRINTF(__isoc23_fwscanf, __isoc23_vfwscanf, (FILE * file, const wchar_t *format, ...),
       (file, format, ap))

#define MESSAGE(name, real, parameters, arguments)                 \
    GT_EXPORT void name parameters                                 \
    {                                                              \
        va_list ap;                                                \
        va_start(ap, format);                                      \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE); \
        gt_real.real arguments;                                    \
        va_end(ap);                                                \
    }

MESSAGE(syslog, vsyslog, (int priority, const char *format, ...), (priority, format, ap))
MESSAGE(__syslog_chk, __vsyslog_chk, (int priority, int flag, const char *format, ...),
        (priority, flag, format, ap))
MESSAGE(warn, vwarn, (const char *format, ...), (format, ap))
MESSAGE(warnx, vwarnx, (const char *format, ...), (format, ap))
