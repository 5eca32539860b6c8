/*
 * Annotations for traces that libgotrace writes: tasks, regions and logs, as in Go's runtime/trace,
 * and control of the recording. For C and C++11; link with nothing.
 *
 * Without libgotrace.so each function here does nothing and costs one branch. With libgotrace.so,
 * while the program is not being recorded, it costs one call more. Any thread may call the
 * annotations at any time, in signal handlers too. Only functions that return an error may change
 * errno.
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

/* A task: work that takes the program a while, in one thread or in several. 0: no task. */
typedef uint64_t gotrace_task;

/* A region: a span of one thread's work, from a begin to an end. 0: not recorded. */
typedef uint64_t gotrace_region;

/*
 * Begins and ends a task. `parent` is the task that it is part of, or 0. Any thread may end the
 * task, and regions and logs of any thread may name it until then. The viewer groups tasks by name:
 * give all tasks of one kind the same name, and log what distinguishes one of them.
 */
gotrace_task gotrace_task_begin(gotrace_task parent, const char *name) GOTRACE_WEAK;
void gotrace_task_end(gotrace_task task) GOTRACE_WEAK;

/*
 * Begins and ends a region of the calling thread. Regions nest: the end of a region also ends the
 * regions that are still open inside it. Ending a region twice, or from another thread, does
 * nothing. A thread may have 64 open regions whose names take 8 KiB in all; further regions are not
 * recorded.
 */
gotrace_region gotrace_region_begin(gotrace_task task, const char *name) GOTRACE_WEAK;
void gotrace_region_end(gotrace_region region) GOTRACE_WEAK;

/* Logs a message at this moment. `category` may be empty. */
void gotrace_log(gotrace_task task, const char *category, const char *message) GOTRACE_WEAK;

/*
 * Start recording, stop recording, and write a snapshot of the flight recorder to `path` (NULL: to
 * the file that GOTRACE_OUTPUT names). They return 0 or a positive errno, ENOSYS without
 * libgotrace.so. They must not be called in signal handlers.
 */
int gotrace_start(void) GOTRACE_WEAK;
int gotrace_stop(void) GOTRACE_WEAK;
int gotrace_snapshot(const char *path) GOTRACE_WEAK;

#ifdef __cplusplus
}
#endif

/*
 * Whether libgotrace.so is loaded. The address must be read from the global offset table. In a
 * program that is not position independent, linkers set all other references to an undefined weak
 * symbol to zero for good.
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

/* A task, and below a region, from the declaration of the object to the end of its scope. */
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
