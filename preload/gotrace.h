/*
 * Annotations for traces that libgotrace writes: tasks, regions and logs, as in Go's runtime/trace,
 * and control of the recording. For C and C++11; link with nothing.
 *
 * In a program that runs without libgotrace.so everything here does nothing, at the price of one
 * branch; in one that runs with it but is not being recorded, of one call more. Any thread may call
 * anything at any time, in signal handlers too. errno is kept, but by what returns an error.
 *
 * Texts are copied, and cut after 1,024 bytes. A null pointer is an empty text.
 */
#ifndef GOTRACE_H
#define GOTRACE_H

#include <errno.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef GOTRACE_WEAK
#define GOTRACE_WEAK __attribute__((weak))
#endif

/* Something that the program does for a while, in one thread or in several. 0: none. */
typedef uint64_t gotrace_task;

/* A part of what one thread does, from a begin to an end. 0: not recorded. */
typedef uint64_t gotrace_region;

/*
 * A task begins, as part of `parent` or of none. It may be ended by another thread, and be given to
 * regions and logs in all of them; after its end nothing should be. One name is one kind of task in
 * the viewer: what makes this one special is better logged.
 */
gotrace_task gotrace_task_begin(gotrace_task parent, const char *name) GOTRACE_WEAK;
void gotrace_task_end(gotrace_task task) GOTRACE_WEAK;

/*
 * A region of the calling thread begins, and ends in the same thread. Regions are nested: those
 * still open inside one that ends, end with it. What is ended twice, or by another thread, is left
 * as it is. 64 may be open in a thread, with names of 8 KiB in all; more are not recorded.
 */
gotrace_region gotrace_region_begin(gotrace_task task, const char *name) GOTRACE_WEAK;
void gotrace_region_end(gotrace_region region) GOTRACE_WEAK;

/* A message, at one moment; `category` may be empty. */
void gotrace_log(gotrace_task task, const char *category, const char *message) GOTRACE_WEAK;

/*
 * Starts and stops recording; writes what the flight recorder holds to `path`, NULL: to where
 * GOTRACE_OUTPUT says. 0 or a positive errno; ENOSYS without libgotrace.so. Not in signal handlers.
 */
int gotrace_start(void) GOTRACE_WEAK;
int gotrace_stop(void) GOTRACE_WEAK;
int gotrace_snapshot(const char *path) GOTRACE_WEAK;

#ifdef __cplusplus
}
#endif

/*
 * Whether there is a library. The address must come out of the global offset table: in a program
 * that is not position independent, linkers make all other references to what is missing zero for
 * ever.
 */
#if defined(__x86_64__) && defined(__linux__)
#define GOTRACE_HAS(fn)                                                                  \
    __extension__({                                                                      \
        const void *gotrace_at;                                                          \
        __asm__(".weak " #fn "\n\tmovq " #fn "@GOTPCREL(%%rip), %0" : "=r"(gotrace_at)); \
        __builtin_expect(gotrace_at != 0, 0);                                            \
    })
#else
#define GOTRACE_HAS(fn) __builtin_expect((fn) != 0, 0)
#endif

#ifndef GOTRACE_LIBRARY
#define gotrace_task_begin(parent, name) \
    (GOTRACE_HAS(gotrace_task_begin) ? gotrace_task_begin(parent, name) : 0)
#define gotrace_task_end(task) (GOTRACE_HAS(gotrace_task_end) ? gotrace_task_end(task) : (void)0)
#define gotrace_region_begin(task, name) \
    (GOTRACE_HAS(gotrace_region_begin) ? gotrace_region_begin(task, name) : 0)
#define gotrace_region_end(region) \
    (GOTRACE_HAS(gotrace_region_end) ? gotrace_region_end(region) : (void)0)
#define gotrace_log(task, category, message) \
    (GOTRACE_HAS(gotrace_log) ? gotrace_log(task, category, message) : (void)0)
#define gotrace_start() (GOTRACE_HAS(gotrace_start) ? gotrace_start() : ENOSYS)
#define gotrace_stop() (GOTRACE_HAS(gotrace_stop) ? gotrace_stop() : ENOSYS)
#define gotrace_snapshot(path) (GOTRACE_HAS(gotrace_snapshot) ? gotrace_snapshot(path) : ENOSYS)
#endif

#ifdef __cplusplus
namespace gotrace
{

/* From here to the end of the scope. */
class task
{
  public:
    explicit task(const char *name, gotrace_task parent = 0) noexcept
        : id(gotrace_task_begin(parent, name))
    {
    }
    ~task()
    {
        gotrace_task_end(id);
    }
    task(const task &) = delete;
    task &operator=(const task &) = delete;
    operator gotrace_task() const noexcept
    {
        return id;
    }

  private:
    gotrace_task id;
};

class region
{
  public:
    explicit region(const char *name, gotrace_task task = 0) noexcept
        : id(gotrace_region_begin(task, name))
    {
    }
    ~region()
    {
        gotrace_region_end(id);
    }
    region(const region &) = delete;
    region &operator=(const region &) = delete;

  private:
    gotrace_region id;
};

} // namespace gotrace
#endif

#endif
