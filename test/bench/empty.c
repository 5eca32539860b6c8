/*
 * empty.so, preloaded: hooks of the operations that micro.c measures which do nothing but call the
 * original function. What they cost no tracer of this kind gets below.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *p);

static int (*real_lock)(pthread_mutex_t *m), (*real_unlock)(pthread_mutex_t *m);
static int (*real_wait)(pthread_cond_t *c, pthread_mutex_t *m), (*real_signal)(pthread_cond_t *c);
static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static int (*real_join)(pthread_t thread, void **result);
static ssize_t (*real_read)(int fd, void *buf, size_t n);
static ssize_t (*real_write)(int fd, const void *buf, size_t n);
static int (*real_yield)(void);
/* The loader allocates before the constructor runs. */
static void *(*real_malloc)(size_t size) = __libc_malloc;
static void (*real_free)(void *p) = __libc_free;

__attribute__((constructor)) static void resolve(void)
{
    const struct {
        void *function;
        const char *name;
    } table[] = {
        {&real_lock, "pthread_mutex_lock"},
        {&real_unlock, "pthread_mutex_unlock"},
        {&real_wait, "pthread_cond_wait"},
        {&real_signal, "pthread_cond_signal"},
        {&real_create, "pthread_create"},
        {&real_join, "pthread_join"},
        {&real_read, "read"},
        {&real_write, "write"},
        {&real_yield, "sched_yield"},
        {&real_malloc, "malloc"},
        {&real_free, "free"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        *(void **)table[i].function = dlsym(RTLD_NEXT, table[i].name);
}

/* The empty statement keeps the call from becoming a jump: a hook does something afterwards. */
#define HOOK(name, real, result, parameters, arguments) \
    EXPORT result name parameters                       \
    {                                                   \
        result r = real arguments;                      \
        __asm__ volatile("");                           \
        return r;                                       \
    }

HOOK(pthread_mutex_lock, real_lock, int, (pthread_mutex_t * m), (m))
HOOK(pthread_mutex_unlock, real_unlock, int, (pthread_mutex_t * m), (m))
HOOK(pthread_cond_wait, real_wait, int, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))
HOOK(pthread_cond_signal, real_signal, int, (pthread_cond_t * c), (c))
HOOK(pthread_create, real_create, int,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg),
     (thread, attr, start, arg))
HOOK(pthread_join, real_join, int, (pthread_t thread, void **result), (thread, result))
HOOK(read, real_read, ssize_t, (int fd, void *buf, size_t n), (fd, buf, n))
HOOK(write, real_write, ssize_t, (int fd, const void *buf, size_t n), (fd, buf, n))
HOOK(sched_yield, real_yield, int, (void), ())
HOOK(malloc, real_malloc, void *, (size_t size), (size))

EXPORT void free(void *p)
{
    real_free(p);
    __asm__ volatile("");
}
