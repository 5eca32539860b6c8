/*
 * Makes code at run time, at eight places (of the last two, `bare`, there is but a first half), and
 * says what it is called in the ways that programs do. Each argument is a step; its words are
 * joined by commas:
 *
 * - map PLACE NAME: a line in /tmp/perf-PID.map
 * - text TEXT: more of that file, as it is
 * - take FILE, link FILE, fifo, owner UID: what stands there in its place, or whose it is
 * - dump, damage: a jitdump in this directory, mapped; bytes that are no record, at its end
 * - load PLACE NAME LINE: a function of made.src, its second half in the next line; LINE 0: no
 * lines
 * - move FROM TO
 * - gdb PLACE NAME, ungdb: an ELF file in memory, known to GDB; the last one goes
 * - wait PLACE, early PLACE: a millisecond in a call from the function's second half, or first one
 * - stay PLACE: in a call from its second half until standard input is read
 * - next: what follows is of another generation
 * - fork: what follows is done by a child
 */
#include "../../preload/gotrace.h"
#include "truth.h"

#include <elf.h>

/* A function that calls both of its arguments; one of the first, whose frame no table describes. */
enum { PLACES = 8, PLACE = 64 };
#if defined(__x86_64__)
static const unsigned char code[] = {
    0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x08, /* push fp, set it, push rbx, align */
    0x48, 0x89, 0xf3, 0xff, 0xd7, 0xff, 0xd3,             /* call the first one, then the other */
    0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d, 0xc3,
};
enum { SECOND_CALL = 14 };

/* As Python's trampolines: fp is no frame pointer. */
static const unsigned char bare[] = {
    0x55, 0x31, 0xed, 0x48, 0x83, 0xec, 0x10, /* push fp, which becomes 0, room */
    0xff, 0xd7, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3,
};
#elif defined(__aarch64__)
static const uint32_t code[] = {
    0xa9be7bfd, 0x910003fd, 0xf9000bf3, 0xaa0103f3, /* push fp and lr, set fp, keep the other */
    0xd63f0000, 0xd63f0260, 0xf9400bf3, 0xa8c27bfd, 0xd65f03c0,
};
enum { SECOND_CALL = 20 };

/* There, such code keeps a frame pointer. */
static const uint32_t bare[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#endif
enum { FIRST_BARE = 6 };

static unsigned char *made;
static char map[64], dump[64];
static int dump_fd = -1;

static void *place(const char *number)
{
    return made + PLACE * atoi(number);
}

static void need(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

/* Waiting ------------------------------------------------------------------------------------ */

static void nothing(void)
{
}

static __attribute__((noinline)) void snooze(void)
{
    struct timespec ms = {0, 1000000};
    nanosleep(&ms, NULL);
}

static void run(const char *number, void (*first)(void), void (*second)(void))
{
    void (*function)(void (*)(void), void (*)(void));
    void *at = place(number);
    memcpy(&function, &at, sizeof at);
    function(first, second);
}

static void wait_in(char **word)
{
    run(word[1], nothing, snooze);
}

static void wait_early(char **word)
{
    run(word[1], snooze, nothing);
}

static __attribute__((noinline)) void read_input(void)
{
    char c;
    need(read(0, &c, 1) >= 0, "standard input");
}

static void stay_in(char **word)
{
    puts("stays");
    fflush(stdout);
    run(word[1], nothing, read_input);
}

/* The map ------------------------------------------------------------------------------------ */

static void put_text(const char *text)
{
    FILE *file = fopen(map, "a");
    need(file && fputs(text, file) >= 0 && fclose(file) == 0, map);
}

static void put_map(char **word)
{
    char line[256];
    snprintf(line, sizeof line, "%lx %x %s\n", (long)place(word[1]), PLACE, word[2]);
    put_text(line);
}

static void put_raw(char **word)
{
    put_text(word[1]);
}

static void take(char **word)
{
    need(rename(word[1], map) == 0, word[1]);
}

static void put_link(char **word)
{
    need(symlink(word[1], map) == 0, word[1]);
}

static void make_fifo(char **word)
{
    (void)word;
    need(mkfifo(map, 0600) == 0, map);
}

static void give(char **word)
{
    need(chown(map, (uid_t)atoi(word[1]), (gid_t)-1) == 0, map);
}

/* A jitdump ---------------------------------------------------------------------------------- */

static void put(const void *bytes, size_t size)
{
    need(write(dump_fd, bytes, size) == (ssize_t)size, dump);
}

static void open_dump(char **word)
{
    struct {
        uint32_t magic, version, size, machine, pad, pid;
        uint64_t time, flags;
    } header = {0x4a695444, 1, sizeof header, EM_X86_64, 0, (uint32_t)getpid(), now(), 0};
    (void)word;
    snprintf(dump, sizeof dump, "jit-%d.dump", getpid());
    dump_fd = open(dump, O_RDWR | O_CREAT | O_TRUNC, 0600);
    put(&header, sizeof header);
    need(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump_fd, 0) != MAP_FAILED, dump);
}

static void damage(char **word)
{
    static const char no_record[64] = "\1\0\0\0\3"; /* three bytes long */
    (void)word;
    put(no_record, sizeof no_record);
}

/* The second line's file is the same as before, in the short form. */
static void put_lines(uint64_t at, uint32_t line)
{
    static const char file[] = "made.src", same[] = "\xff";
    struct {
        uint32_t type, size;
        uint64_t time, at, lines;
    } head = {2, sizeof head + 2 * 16 + sizeof file + sizeof same, now(), at, 2};
    struct {
        uint64_t at;
        uint32_t line, discriminator;
    } first = {at, line, 0}, second = {at + SECOND_CALL, line + 1, 0};
    put(&head, sizeof head);
    put(&first, sizeof first);
    put(file, sizeof file);
    put(&second, sizeof second);
    put(same, sizeof same);
}

static void put_load(char **word)
{
    uint64_t at = (uintptr_t)place(word[1]);
    size_t name = strlen(word[2]) + 1;
    struct {
        uint32_t type, size;
        uint64_t time;
        uint32_t pid, tid;
        uint64_t vma, at, length, index;
    } head = {0, (uint32_t)(sizeof head + name + sizeof code), now(), 0, 0, at, at, PLACE, 0};
    if (atoi(word[3]))
        put_lines(at, (uint32_t)atoi(word[3]));
    put(&head, sizeof head);
    put(word[2], name);
    put(code, sizeof code);
}

static void put_move(char **word)
{
    struct {
        uint32_t type, size;
        uint64_t time;
        uint32_t pid, tid;
        uint64_t vma, from, to, length, index;
    } move = {1, sizeof move, now(), 0, 0, 0, 0, 0, PLACE, 0};
    move.from = (uintptr_t)place(word[1]);
    move.to = move.vma = (uintptr_t)place(word[2]);
    put(&move, sizeof move);
}

/* GDB's interface ---------------------------------------------------------------------------- */

struct jit_entry {
    struct jit_entry *next, *previous;
    const void *file;
    uint64_t size;
};

void __jit_debug_register_code(void);
void __attribute__((noinline)) __jit_debug_register_code(void)
{
    __asm__ volatile("");
}

struct jit_descriptor {
    uint32_t version, action;
    struct jit_entry *relevant, *first;
} __jit_debug_descriptor = {1, 0, NULL, NULL};

/* As compilers make it in memory: relocatable, with its sections where they are. */
struct object {
    Elf64_Ehdr header;
    Elf64_Shdr section[4];
    Elf64_Sym symbol[2];
    char names[64];
};

static void fill_object(struct object *o, uint64_t at, const char *name)
{
    *o = (struct object){
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_type = ET_REL,
                   .e_shoff = offsetof(struct object, section),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 4},
        .section = {[1] = {.sh_type = SHT_PROGBITS, .sh_addr = at, .sh_size = PLACE},
                    [2] = {.sh_type = SHT_SYMTAB,
                           .sh_offset = offsetof(struct object, symbol),
                           .sh_size = sizeof o->symbol,
                           .sh_link = 3},
                    [3] = {.sh_type = SHT_STRTAB,
                           .sh_offset = offsetof(struct object, names),
                           .sh_size = sizeof o->names}},
        .symbol = {[1] = {.st_name = 1,
                          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                          .st_shndx = 1,
                          .st_size = PLACE}},
    };
    snprintf(o->names + 1, sizeof o->names - 1, "%s", name);
}

static void tell_gdb(uint32_t action, struct jit_entry *entry)
{
    __jit_debug_descriptor.action = action;
    __jit_debug_descriptor.relevant = entry;
    __jit_debug_register_code();
}

static void put_gdb(char **word)
{
    struct jit_entry *entry = calloc(1, sizeof *entry);
    struct object *object = malloc(sizeof *object);
    fill_object(object, (uintptr_t)place(word[1]), word[2]);
    *entry = (struct jit_entry){__jit_debug_descriptor.first, NULL, object, sizeof *object};
    if (entry->next)
        entry->next->previous = entry;
    __jit_debug_descriptor.first = entry;
    tell_gdb(1, entry);
}

static void drop_gdb(char **word)
{
    struct jit_entry *entry = __jit_debug_descriptor.first;
    (void)word;
    __jit_debug_descriptor.first = entry->next;
    if (entry->next)
        entry->next->previous = NULL;
    tell_gdb(2, entry);
    free((void *)entry->file);
    free(entry);
}

/* Steps -------------------------------------------------------------------------------------- */

static void next_generation(char **word)
{
    (void)word;
    gotrace_snapshot(NULL);
}

static void *no_work(void *unused)
{
    return unused;
}

/* Children that make no thread have no trace. */
static void go_on_as_child(char **word)
{
    int status;
    (void)word;
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        snprintf(map, sizeof map, "/tmp/perf-%d.map", getpid());
        printf("pid %d\n", getpid());
        need(pthread_create(&thread, NULL, no_work, NULL) == 0, "thread");
        pthread_join(thread, NULL);
        return;
    }
    need(waitpid(child, &status, 0) == child, "waitpid");
    exit(WEXITSTATUS(status));
}

static const struct {
    const char *name;
    void (*does)(char **word);
} steps[] = {
    {"map", put_map},    {"text", put_raw},        {"take", take},
    {"link", put_link},  {"fifo", make_fifo},      {"owner", give},
    {"dump", open_dump}, {"damage", damage},       {"load", put_load},
    {"move", put_move},  {"gdb", put_gdb},         {"ungdb", drop_gdb},
    {"wait", wait_in},   {"early", wait_early},    {"next", next_generation},
    {"stay", stay_in},   {"fork", go_on_as_child},
};

static void take_step(char *step)
{
    char *word[5] = {NULL}, *save;
    for (int i = 0; i < 4; i++)
        word[i] = strtok_r(i ? NULL : step, ",", &save);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (strcmp(steps[i].name, word[0]) == 0) {
            steps[i].does(word);
            return;
        }
    }
    fprintf(stderr, "no such step: %s\n", word[0]);
    exit(2);
}

int main(int argc, char **argv)
{
    made = mmap(NULL, PLACES * PLACE, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(made != MAP_FAILED, "mmap");
    for (int i = 0; i < PLACES; i++)
        memcpy(made + i * PLACE, i < FIRST_BARE ? code : bare,
               i < FIRST_BARE ? sizeof code : sizeof bare);
    __builtin___clear_cache((char *)made, (char *)made + PLACES * PLACE);
    snprintf(map, sizeof map, "/tmp/perf-%d.map", getpid());
    printf("pid %d\n", getpid());
    fflush(stdout);
    for (int i = 1; i < argc; i++)
        take_step(argv[i]);
    return 0;
}
