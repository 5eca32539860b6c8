/*
 * Turns registers and copied stacks into functions and lines. libdwfl walks the stacks: it asks for
 * registers and memory, and gets them from the picture. Names of functions come from symbolize/,
 * names of data from libdwfl.
 */
#include "frame.h"
#include "loaded.h"
#include "python_threads.h"

#include "encoder/read/need.h"
#include "symbolize/dwarf/demangle.h"
#include "symbolize/elf/elfutils.h"
#include "symbolize/python/python.h"
#include "symbolize/symbolize.h"

#include <string.h>

enum { FRAMES_MAX = 1000, INLINED_MAX = 32 };

static struct {
    const struct gt_elfutils *dw; /* within gt_elfutils_enter */
    struct gt_still *still;
    Dwfl *dwfl;
    struct gt_loaded *loaded;
    size_t n;
} state;

/* What libdwfl asks --------------------------------------------------------------------------- */

static pid_t next_thread(Dwfl *dwfl, void *still, void **task)
{
    struct gt_still *s = still;
    struct gt_still_thread *t = *task ? (struct gt_still_thread *)*task + 1 : s->task;
    (void)dwfl;
    *task = t;
    return t < s->task + s->tasks ? t->tid : 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *still, void **task)
{
    (void)dwfl;
    *task = (void *)gt_still_task(still, tid);
    return *task != NULL;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *word, void *still)
{
    (void)dwfl;
    return gt_still_read(still, at, word, sizeof *word);
}

static bool set_registers(Dwfl_Thread *thread, void *task)
{
    const struct gt_still_thread *t = task;
    gt_still_prefer(t);
    uint64_t words[GT_DWARF_REGISTERS];
    unsigned n = gt_registers_dwarf(&t->registers, words);
    state.dw->dwfl_thread_state_register_pc(thread, gt_registers_pc(&t->registers));
    if (!t->by_call)
        return state.dw->dwfl_thread_state_registers(thread, 0, n, words);
    bool set = true;
    for (unsigned i = 0; i < n; i++)
        set &= !(gt_registers_in_call(i) || (t->has_frame && i == GT_DWARF_FRAME)) ||
               state.dw->dwfl_thread_state_registers(thread, (int)i, 1, &words[i]);
    return set;
}

static const Dwfl_Thread_Callbacks asked = {.next_thread = next_thread,
                                            .get_thread = get_thread,
                                            .memory_read = read_memory,
                                            .set_initial_registers = set_registers};

/* Walking ------------------------------------------------------------------------------------ */

static Dwfl *open_dwfl(const struct gt_elfutils *dw)
{
    static Dwfl_Callbacks callbacks;
    callbacks.find_elf = dw->dwfl_build_id_find_elf;
    callbacks.find_debuginfo = dw->dwfl_standard_find_debuginfo;
    Dwfl *dwfl = dw->dwfl_begin(&callbacks);
    if (!dwfl)
        return NULL;
    dw->dwfl_report_begin(dwfl);
    for (size_t i = 0; i < state.n; i++) {
        const struct gt_loaded *m = &state.loaded[i];
        if (m->path)
            dw->dwfl_report_elf(dwfl, m->name, m->path, -1, m->bias, true);
    }
    dw->dwfl_report_end(dwfl, NULL, NULL);
    return dwfl;
}

/*
 * Adds a frame. A return address is behind its call, which may be the function's last instruction.
 */
static int add_pc(Dwfl_Frame *frame, void *task)
{
    struct gt_still_thread *t = task;
    Dwarf_Addr pc;
    Dwarf_Word sp;
    bool exact;
    if (!state.dw->dwfl_frame_pc(frame, &pc, &exact) || !pc)
        return DWARF_CB_ABORT;
    if (t->frames == FRAMES_MAX) {
        t->cut = true;
        return DWARF_CB_ABORT;
    }
    struct gt_place *place = GT_ADD(t->frame, t->frames);
    place->pc = pc - !exact;
    if (state.dw->dwfl_frame_reg && state.dw->dwfl_frame_reg(frame, GT_DWARF_STACK, &sp) == 0)
        place->sp = sp;
    return DWARF_CB_OK;
}

static void walk(struct gt_still_thread *t)
{
    t->frames = 0;
    t->unknown = state.dw->dwfl_getthread_frames(state.dwfl, t->tid, add_pc, t) < 0;
}

/*
 * Walks the stack of a thread that was not stopped again, with the frame pointer that was found for
 * its last frame.
 */
static void walk_on(struct gt_still_thread *t)
{
    uint64_t frame = gt_frame_pointer(state.dw, state.dwfl, state.still, t);
    if (!frame)
        return;
    gt_registers_set_frame(&t->registers, frame);
    t->has_frame = true;
    walk(t);
}

static void walk_all(void)
{
    state.dwfl = open_dwfl(state.dw);
    if (!state.dwfl || !state.dw->dwfl_attach_state(state.dwfl, NULL, 1, &asked, state.still))
        return;
    for (size_t i = 0; i < state.still->tasks; i++) {
        struct gt_still_thread *t = &state.still->task[i];
        if (!gt_registers_pc(&t->registers))
            continue;
        walk(t);
        if (t->by_call)
            walk_on(t);
    }
}

/* Names -------------------------------------------------------------------------------------- */

static const char *module_of(uint64_t pc)
{
    for (size_t i = 0; i < state.n; i++) {
        if (pc >= state.loaded[i].lo && pc < state.loaded[i].hi)
            return state.loaded[i].name;
    }
    return "";
}

/* Names all frames: a PC becomes one frame for each function inlined there. */
static void name_frames(struct gt_symbolizer *symbolizer, struct gt_still_thread *t)
{
    struct gt_sym_frame found[INLINED_MAX];
    struct gt_place *named = NULL;
    size_t n = 0;
    for (size_t i = 0; i < t->frames; i++) {
        uint64_t pc = t->frame[i].pc;
        bool python = gt_python_name(pc, found);
        bool made = !python && !*module_of(pc) && gt_made_name(pc, found);
        int inlined =
            made || python ? 0 : gt_symbolize(symbolizer, 1, pc, false, found, INLINED_MAX) - 1;
        for (int k = 0; k <= inlined; k++) {
            bool kept =
                *found[k].file && !made; /* else its name does not outlive the next question */
            *GT_ADD(named, n) =
                (struct gt_place){.pc = pc,
                                  .function = kept ? found[k].func : gt_need(strdup(found[k].func)),
                                  .file = !found[k].line ? ""
                                          : made         ? gt_need(strdup(found[k].file))
                                                         : found[k].file,
                                  .module = module_of(pc),
                                  .line = found[k].line,
                                  .inlined = k < inlined,
                                  .python = python};
        }
    }
    free(t->frame);
    t->frame = named;
    t->frames = n;
}

/*
 * Whether the stack is complete. Not all registers of a thread are known that was not stopped.
 * libdwfl takes a frame that needs an unknown one for the outermost.
 */
static bool is_whole(const struct gt_still_thread *t)
{
    const char *last = gt_still_plain(t->frames ? t->frame[t->frames - 1].function : "");
    return !t->by_call || strcmp(last, "start") == 0 || strncmp(last, "clone", 5) == 0;
}

bool gt_unwind(struct gt_still *still)
{
    jmp_buf bail;
    state.still = still;
    state.loaded = gt_loaded_find(still, &state.n);
    for (size_t i = 0; i < state.n; i++)
        gt_loaded_announce(&state.loaded[i]);
    if (setjmp(bail) == 0) {
        gt_elfutils_enter(&bail);
        state.dw = gt_elfutils_get();
        if (state.dw)
            walk_all();
    } else {
        gt_elfutils_give_up(); /* an assertion in libdw: the frames stay, symbols name them */
        state.dwfl = NULL;
    }
    gt_elfutils_leave();
    struct gt_symbolizer *symbolizer = gt_symbolizer_new();
    if (still->alive)
        gt_made_read(still->alive);
    if (still->core)
        gt_python_open_core(still, state.loaded, state.n);
    gt_python_begin_names();
    for (size_t i = 0; i < still->tasks; i++) {
        struct gt_still_thread *t = &still->task[i];
        gt_python_add_frames(t, FRAMES_MAX);
        name_frames(symbolizer, t);
        t->unknown |= !is_whole(t);
        t->cut |= t->unknown;
    }
    return state.dw != NULL;
}

static void find_symbol(uint64_t address, char *name, size_t size)
{
    const struct gt_elfutils *dw = state.dw;
    char buffer[512];
    GElf_Off offset = 0;
    GElf_Sym symbol;
    Dwfl_Module *m = dw->dwfl_addrmodule(state.dwfl, address);
    const char *found =
        m ? dw->dwfl_module_addrinfo(m, address, &offset, &symbol, NULL, NULL, NULL) : NULL;
    if (found && GELF_ST_TYPE(symbol.st_info) == STT_OBJECT && offset < symbol.st_size)
        snprintf(name, size, offset ? "%s+%lu" : "%s", gt_demangle(found, buffer, sizeof buffer),
                 (unsigned long)offset);
}

void gt_unwind_symbol(uint64_t address, char *name, size_t size)
{
    jmp_buf bail;
    *name = 0;
    if (!state.dwfl)
        return;
    if (setjmp(bail) == 0) {
        gt_elfutils_enter(&bail);
        state.dw = gt_elfutils_get();
        if (state.dw)
            find_symbol(address, name, size);
    } else {
        gt_elfutils_give_up();
        state.dwfl = NULL;
    }
    gt_elfutils_leave();
}
