/*
 * Functions of libc of one's own, for x86-64: linked into a program, or as a library that is
 * preloaded. names.h has a row NAME(name) for each. Each function looks at its caller: when that is
 * libgotrace.so, it says so on stderr, once. It takes a lock, as functions do that keep a list of
 * what they have given out. Then it goes on in libc's function of the name, with all registers as
 * they were. Before main and at the end a thread is made, and waited for.
 *
 * The functions call nothing by name but the lock's functions, and use no vector register.
 */
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static const char *const names[] = {
#define NAME(name) #name,
#include "names.h"
#undef NAME
};
enum { NAMES = sizeof names / sizeof *names };

static void *libcs[NAMES];
static _Bool told[NAMES];

static size_t length(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

static _Bool are_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static void say(const char *text)
{
    register size_t size __asm__("rdx") = length(text);
    long number = SYS_write;
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(2), "S"(text), "r"(size)
                     : "rcx", "r11", "memory");
}

static const char *file_of(const char *path)
{
    const char *file = path;
    for (; *path; path++)
        file = *path == '/' ? path + 1 : file;
    return file;
}

static const struct link_map *module(const char *name)
{
    const struct link_map *map = _r_debug.r_map;
    while (map && !are_same(file_of(map->l_name), name))
        map = map->l_next;
    return map;
}

/* The end of a library that begins with its ELF header. */
static uintptr_t end_of(const struct link_map *map)
{
    const ElfW(Ehdr) *head = (const void *)map->l_addr;
    const ElfW(Phdr) *ph = (const void *)(map->l_addr + head->e_phoff);
    uintptr_t end = 0;
    for (int i = 0; i < head->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD)
            end = map->l_addr + ph[i].p_vaddr + ph[i].p_memsz;
    }
    return end;
}

static _Bool is_tracers(uintptr_t caller)
{
    const struct link_map *map = module("libgotrace.so");
    return map && caller >= map->l_addr && caller < end_of(map);
}

/* libc's definition in the default version. Its symbols stand before their names. */
static void *find(const char *name)
{
    enum { HIDDEN = 0x8000 };
    const struct link_map *map = module("libc.so.6");
    const ElfW(Sym) *symbols = NULL;
    const ElfW(Versym) *versions = NULL;
    const char *strings = NULL;
    for (const ElfW(Dyn) *dyn = map->l_ld; dyn->d_tag != DT_NULL; dyn++) {
        const void *p = (const void *)dyn->d_un.d_ptr;
        symbols = dyn->d_tag == DT_SYMTAB ? p : symbols;
        strings = dyn->d_tag == DT_STRTAB ? p : strings;
        versions = dyn->d_tag == DT_VERSYM ? p : versions;
    }
    for (const ElfW(Sym) *s = symbols; (const char *)s < strings; s++) {
        if (s->st_shndx == SHN_UNDEF || versions[s - symbols] & HIDDEN ||
            !are_same(strings + s->st_name, name))
            continue;
        void *at = (void *)(map->l_addr + s->st_value);
        return ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC ? ((void *(*)(void))at)() : at;
    }
    say("no function of libc: ");
    say(name);
    __builtin_trap();
}

static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;
static __thread _Bool locks;

static void lock_and_unlock(void)
{
    if (locks)
        return;
    locks = 1;
    pthread_mutex_lock(&list);
    pthread_mutex_unlock(&list);
    locks = 0;
}

/* What the stubs below call. */
__attribute__((used, visibility("hidden"))) void *own_called(unsigned long i, uintptr_t caller)
{
    if (!told[i] && is_tracers(caller)) {
        told[i] = 1;
        say("libgotrace.so calls ");
        say(names[i]);
        say("\n");
    }
    lock_and_unlock();
    if (!libcs[i])
        libcs[i] = find(names[i]);
    return libcs[i];
}

/* Each stub pushes its number, which the address of libc's function then replaces. */
__asm__(".text\n"
        ".Lcommon:\n"
        "push %rax; push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; push %r10; "
        "push %r11\n"
        "sub $8, %rsp\n"
        "mov 80(%rsp), %rdi\n"
        "mov 88(%rsp), %rsi\n"
        "call own_called\n"
        "mov %rax, 80(%rsp)\n"
        "add $8, %rsp\n"
        "pop %r11; pop %r10; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi; pop %rax\n"
        "ret\n"
        ".set number, 0\n"
#define NAME(name)                                               \
    ".globl " #name "\n.type " #name ", @function\n" #name ":\n" \
    "push $number\n.set number, number + 1\njmp .Lcommon\n"
#include "names.h"
#undef NAME
);

static void *take_turns(void *turn)
{
    pthread_mutex_lock(turn);
    pthread_mutex_unlock(turn);
    return NULL;
}

/* The thread waits for a lock. */
__attribute__((constructor, destructor)) static void make_thread(void)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_mutex_lock(&turn);
    _Bool made = pthread_create(&thread, NULL, take_turns, &turn) == 0;
    pthread_mutex_unlock(&turn);
    if (made)
        pthread_join(thread, NULL);
}
