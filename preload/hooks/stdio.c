/*
 * stdio. What a stream's functions do in the kernel passes no hook, so those that may get there
 * show themselves. Where the stream's buffer is enough they are not even timed.
 */
#include <features.h>
/* scanf is to be scanf here: the headers would make it C99's, which has a hook of its own. */
#undef __GLIBC_USE_DEPRECATED_SCANF
#define __GLIBC_USE_DEPRECATED_SCANF 1

#include "slice.h"
#include "fds.h"

#include "preload/process.h"

#include <stdarg.h>

/*
 * Whether n bytes can be read, or written, without the kernel; the stream may change meanwhile in
 * another thread, then it is a guess. For none at all libc does not look at the stream, which may
 * be no stream then. _IO_* as in libc's public bits/types/struct_FILE.h.
 */

static char *load(char *const *pointer)
{
    return __atomic_load_n(pointer, __ATOMIC_RELAXED);
}

static bool readable(const FILE *file, size_t n)
{
    return !n || file->_IO_read_end - file->_IO_read_ptr >= (ptrdiff_t)n;
}

#define UNBUFFERED_OR_BY_LINE (0x2 | 0x200) /* _IO_UNBUFFERED, _IO_LINE_BUF of libio.h */

static bool writable(const FILE *file, size_t n)
{
    if (!n)
        return true;
    const char *p = file->_IO_write_ptr, *end = file->_IO_buf_end;
    return !(file->_flags & UNBUFFERED_OR_BY_LINE) && p && p < end && (size_t)(end - p) > n;
}

/*
 * What was pushed back is in a buffer of its own: the two pointers may be of different ones. What
 * lies between is looked at only if both are of the stream's, which stays.
 */
static bool has_line(const FILE *file)
{
    const char *p = load(&file->_IO_read_ptr), *end = load(&file->_IO_read_end);
    const char *from = load(&file->_IO_buf_base), *to = load(&file->_IO_buf_end);
    return from <= p && p < end && end <= to && memchr(p, '\n', (size_t)(end - p));
}

/* How struct _IO_wide_data begins in every glibc since 2.2. A stream that is not wide has none. */
struct wide {
    wchar_t *read_ptr, *read_end, *read_base, *write_base, *write_ptr, *write_end;
};

static const struct wide *wide_of(const FILE *file)
{
    return file->_mode > 0 ? (const struct wide *)file->_wide_data : NULL;
}

static bool wide_readable(const FILE *file)
{
    const struct wide *wide = wide_of(file);
    return wide && wide->read_ptr < wide->read_end;
}

static bool wide_writable(const FILE *file)
{
    const struct wide *wide = wide_of(file);
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
#include "stdio.def"

/* A wait for another thread; nothing is recorded of a stream's lock that is free. */
GT_EXPORT void flockfile(FILE *file)
{
    if (ftrylockfile(file) == 0)
        return;
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_flockfile, GT_SYNC);
    gt_real.flockfile(file);
}

/* The number is not the stream's any more. Some have none: -1. */
static int forget(FILE *file)
{
    GT_KEEP_ERRNO;
    return gt_fd_forget(fileno_unlocked(file));
}

GT_EXPORT int fclose(FILE *file)
{
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_fclose, GT_FILE);
    if (forget(file) == 2)
        gt_process_keep_stderr();
    return gt_real.fclose(file);
}

/* The number may stay, and be something else. */
#define FREOPEN(name)                                                    \
    GT_EXPORT FILE *name(const char *path, const char *mode, FILE *file) \
    {                                                                    \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE);       \
        forget(file);                                                    \
        return gt_real.name(path, mode, file);                           \
    }

FREOPEN(freopen)
FREOPEN(freopen64)

GT_EXPORT int pclose(FILE *file)
{
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_pclose, GT_FILE);
    forget(file);
    return gt_real.pclose(file);
}

/* Formatted output: its length is not known before. */

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
