/*
 * Looks like Python 3.13.5 to who reads its memory: fake_python CASE [N]. A thread's frames are in
 * its state, the innermost one first. Each thread waits for a lock that is one byte.
 *
 *   circle      Two threads, each in a `with` block of the lock that the other one waits for.
 *   itself      A thread in a block of the lock that it waits for.
 *   condition   As circle, but one thread is in Condition.wait within its block.
 *   many N      N threads wait for one lock.
 *   deep N      A thread with N frames.
 *   states N    A thread with N states, of which none executes anything.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 1024, FRAMES = 20 };

struct object {
    uint64_t references, *type;
};

struct text {
    struct object head;
    uint64_t length, hash, state;
    char characters[40];
};

struct bytes {
    struct object head;
    uint64_t size, hash;
    char at[8];
};

struct lock {
    struct object head;
    uint64_t byte;
};

struct method {
    struct object head;
    const char **definition;
    struct lock *self;
};

struct code {
    struct object head;
    uint64_t unused[3];
    struct bytes *handlers;
    uint32_t more[5], first, locals;
    uint64_t others[4];
    struct text *file;
    uint64_t another;
    struct text *name;
    struct bytes *lines;
    uint64_t rest[7];
    char instructions[8];
};

struct frame {
    struct code *code;
    struct frame *previous;
    uint64_t unused[5];
    char *at;
    char others[6], owner, another;
    struct method *stack; /* the function has no local variables */
};

struct entry {
    int64_t fair_ns;
    int32_t handed_off;
};

struct state {
    uint64_t unused;
    struct state *next;
    uint64_t others[7];
    struct frame *frame;
    uint64_t more[9];
    pthread_t thread;
    struct lock *wanted; /* ours */
};

#define VERSION 0x030d05f0

unsigned long Py_Version = VERSION;
uint64_t PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8];

/* Its _Py_DebugOffsets: where the members are of the structures above and of those of `main`. */
uint64_t _PyRuntime[128] = {
    0x7970677562656478, VERSION,                            /* "xdebugpy" */
    [5] = 480,          [8] = 8,    [9] = 128,              /* interpreters, states */
    [19] = 400,         [21] = 8,   [23] = 72,  [24] = 152, /* of a state */
    [28] = 88,          [29] = 8,   [30] = 0,   [31] = 56,
    [32] = 72,          [33] = 70, /* of a frame */
    [34] = 400,         [35] = 112, [37] = 128, [38] = 136,
    [39] = 68,          [43] = 200, /* of a code object */
    [44] = 16,          [45] = 8,   /* of an object */
};

static uint64_t interpreter[32], lock_type[8];
static struct state states[THREADS];
static struct lock locks[2];
static struct method exits[2];
static struct code within, waits;
static size_t taken;

static __thread struct state *own;

void *PyGILState_GetThisThreadState(void)
{
    return own;
}

int Py_IsInitialized(void)
{
    return 1;
}

__attribute__((noinline)) int _PySemaphore_Wait(sem_t *semaphore)
{
    return sem_wait(semaphore) + 1;
}

/* As a PyMutex waits: what stands where is in preload/stacks/pymutex.c. */
static __attribute__((noinline)) int park(volatile struct entry *entry, uint64_t *lock)
{
    volatile struct {
        volatile struct entry *entry;
        uint64_t *lock;
        sem_t semaphore;
        void *next, *previous;
        char is_unparking;
    } wait = {.entry = entry, .lock = lock};
    sem_init((sem_t *)&wait.semaphore, 0, 0);
    return _PySemaphore_Wait((sem_t *)&wait.semaphore) + 1;
}

int _PyEval_EvalFrameDefault(struct lock *lock)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    volatile struct entry entry = {.fair_ns = now.tv_sec * 1000000000 + now.tv_nsec};
    return park(&entry, &lock->byte) + 1;
}

static void *run(void *state)
{
    own = state;
    return (void *)(intptr_t)_PyEval_EvalFrameDefault(own->wanted);
}

static struct text *text(const char *characters)
{
    enum { COMPACT_ASCII = 0x64 };
    struct text *t = calloc(1, sizeof *t);
    t->head.type = PyUnicode_Type;
    t->length = strlen(characters);
    t->state = COMPACT_ASCII;
    strcpy(t->characters, characters);
    return t;
}

static struct bytes *bytes(const char *at, size_t size)
{
    struct bytes *b = calloc(1, sizeof *b);
    b->head.type = PyBytes_Type;
    b->size = size;
    memcpy(b->at, at, size);
    return b;
}

static struct code code(const char *name, const char *file)
{
    return (struct code){.head.type = PyCode_Type,
                         .handlers = bytes("\x00\x3f\x01\x02", 4), /* one word on the stack */
                         .first = 1,
                         .file = text(file),
                         .name = text(name),
                         .lines = bytes("", 0)};
}

/* Python's state of a new thread. inner: what it executes innermost; block: of which lock. */
static void start(struct code *inner, int block, int wanted, size_t frames)
{
    struct state *s = &states[taken];
    struct frame *f = calloc(frames, sizeof *f);
    pthread_attr_t small;
    for (size_t i = 0; i < frames; i++) {
        struct code *c = i ? &within : inner;
        f[i] = (struct frame){.code = c,
                              .previous = i + 1 < frames ? &f[i + 1] : NULL,
                              .at = c->instructions,
                              .owner = i + 1 == frames ? 3 : 0,
                              .stack = i == 1 && block >= 0 ? &exits[block] : NULL};
    }
    s->frame = f;
    s->wanted = &locks[wanted];
    if (taken++)
        s[-1].next = s;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_create(&s->thread, &small, run, s);
}

static void start_with_states(size_t n)
{
    enum { PAGE = 4096 };
    char *pages = calloc(n, PAGE);
    start(&within, -1, 0, FRAMES);
    states->frame = NULL;
    for (size_t i = 0; i < n; i++) {
        struct state *s = (struct state *)(pages + i * PAGE);
        *s = (struct state){.next = states->next, .thread = states->thread};
        states->next = s;
    }
}

int main(int argc, char **argv)
{
    static const char *exit_method[] = {"__exit__"};
    const char *what = argc > 1 ? argv[1] : "";
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    _PyRuntime[60] = (uint64_t)interpreter;
    interpreter[16] = (uint64_t)states;
    lock_type[3] = (uint64_t) "_thread.lock";
    within = code("work", "/work.py");
    waits = code("Condition.wait", "/usr/lib/python3.13/threading.py");
    for (int i = 0; i < 2; i++) {
        locks[i] = (struct lock){.head.type = lock_type, .byte = 1};
        exits[i] = (struct method){.definition = exit_method, .self = &locks[i]};
    }
    if (strcmp(what, "itself") == 0)
        start(&within, 0, 0, FRAMES);
    if (strcmp(what, "circle") == 0 || strcmp(what, "condition") == 0) {
        start(strcmp(what, "circle") == 0 ? &within : &waits, 0, 1, FRAMES);
        start(&within, 1, 0, FRAMES);
    }
    for (size_t i = 0; strcmp(what, "many") == 0 && i < n && i < THREADS; i++)
        start(&within, -1, 0, FRAMES);
    if (strcmp(what, "deep") == 0)
        start(&within, -1, 0, n);
    if (strcmp(what, "states") == 0)
        start_with_states(n);
    if (write(STDOUT_FILENO, "\n", 1) == 1)
        pause();
    return 0;
}
