/* See frame_code.h. */
#include "frame_code.h"

#include "call_places.h"

#include "scripts/tool/tool.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"
#include "symbolize/elf/modules.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum subject { FUNCTION, SOURCE, MODULE, PYTHON_FUNCTION, PYTHON_SOURCE, JVM_FUNCTION, SUBJECTS };

struct rule {
    unsigned kinds;
    enum subject subject;
    regex_t pattern;
};

struct module {
    uint64_t lo, hi;
    char *path;
    bool own; /* the executable, or installed with it */
};

static struct {
    const struct gt_trace *trace;
    struct rule *rule;
    size_t rules;
    struct module *module;
    size_t modules, remarks; /* remarks: those of the trace already read */
    uint64_t fingerprint;    /* of all rules */
    bool complete;           /* the table's and the user's rules are there */
    const char *root;        /* where the program is installed; NULL: not known */
    struct gt_memo kinds;    /* of a frame, + 1 */
} all;

/* Rules -------------------------------------------------------------------------------------- */

static const char *const kind_names[] = {"own", "skip", "start", "library", "loop", "idle", "busy"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

/* Adds a rule. Returns NULL, or what is wrong with the pattern, in `why`. */
static const char *add_rule(unsigned kinds, enum subject subject, const char *pattern,
                            char why[static 128])
{
    all.rule = gt_need_more(all.rule, all.rules, sizeof *all.rule);
    struct rule *rule = &all.rule[all.rules];
    int error = regcomp(&rule->pattern, pattern, REG_EXTENDED | REG_NOSUB);
    if (error) {
        regerror(error, &rule->pattern, why, 128);
        return why;
    }
    rule->kinds = kinds;
    rule->subject = subject;
    all.rules++;
    all.fingerprint = gt_hash_mix(all.fingerprint, (uint64_t)kinds << 8 | subject);
    for (const char *c = pattern; *c; c++)
        all.fingerprint = gt_hash_mix(all.fingerprint, (unsigned char)*c);
    return NULL;
}

static void add_table(void)
{
    static const struct {
        unsigned kinds;
        enum subject subject;
        const char *pattern;
    } table[] = {
#define GT_RULE(kind, subject, pattern) {GT_FRAME_##kind, subject, pattern},
#include "frame_rules.def"
#undef GT_RULE
    };
    char why[128];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (add_rule(table[i].kinds, table[i].subject, table[i].pattern, why))
            gt_fail(GT_EXIT_FAILED, "frame_rules.def: %s: %s", table[i].pattern, why);
    }
}

static unsigned kinds_of(char *list)
{
    unsigned kinds = 0;
    for (char *save, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        unsigned before = kinds;
        for (int k = 0; k < KINDS; k++)
            kinds |= strcmp(word, kind_names[k]) == 0 ? 1u << k : 0;
        if (kinds == before)
            return 0;
    }
    return kinds;
}

/* Reads a rule: "skip,busy function ^pool_lock$". False: the line is none. */
static bool read_line(char *line, char why[static 128])
{
    static const char *const subjects[] = {"function", "file", "module"};
    static const char blanks[] = " \t";
    char *save, *list = strtok_r(line, blanks, &save), *subject = strtok_r(NULL, blanks, &save);
    char *pattern = save ? save + strspn(save, blanks) : NULL;
    snprintf(why, 128, "a rule is like: skip function ^pool_lock$");
    if (!list || *list == '#')
        return true;
    unsigned kinds = kinds_of(list);
    for (int s = 0; kinds && subject && pattern && *pattern && s < PYTHON_FUNCTION; s++) {
        if (strcmp(subject, subjects[s]) == 0)
            return !add_rule(kinds, (enum subject)s, pattern, why);
    }
    return false;
}

static void read_rules(FILE *file, const char *path)
{
    char *line = NULL, why[128];
    size_t room = 0;
    for (unsigned number = 1; getline(&line, &room, file) > 0; number++) {
        line[strcspn(line, "\n")] = 0;
        if (!read_line(line, why))
            gt_fail(GT_EXIT_USAGE, "%s:%u: %s", path, number, why);
    }
    free(line);
}

/*
 * Reads the file that GOTRACE_FRAMES names, which must exist; or the one in the user's
 * configuration, which may be missing.
 */
static void add_rules_of_user(void)
{
    char path[PATH_MAX];
    const char *named = getenv("GOTRACE_FRAMES"), *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (named && *named)
        snprintf(path, sizeof path, "%s", named);
    else if (config && *config)
        snprintf(path, sizeof path, "%s/gotrace/frames", config);
    else
        snprintf(path, sizeof path, "%s/.config/gotrace/frames", home ? home : "");
    FILE *file = fopen(path, "re");
    if (!file && named && *named)
        gt_fail(GT_EXIT_USAGE, "%s: %s", path, strerror(errno));
    if (!file)
        return;
    read_rules(file, path);
    fclose(file);
}

static bool is_module_name(const char *pattern)
{
    size_t length = strlen(pattern);
    return strstr(pattern, ".so.") || (length > 3 && strcmp(pattern + length - 3, ".so") == 0) ||
           *pattern == '/';
}

void gt_frames_rule(unsigned kinds, const char *pattern, const char *option)
{
    char why[128], quoted[PATH_MAX];
    const char *its = pattern;
    size_t n = 0;
    bool module = kinds == GT_FRAME_SKIP && is_module_name(pattern);
    if (module) { /* the name literally, at the end of the path */
        n += (size_t)snprintf(quoted, sizeof quoted, *pattern == '/' ? "^" : "/");
        for (const char *c = pattern; *c && n < sizeof quoted - 4; c++) {
            if (strchr(".+*?()[]{}|^$\\", *c))
                quoted[n++] = '\\';
            quoted[n++] = *c;
        }
        snprintf(quoted + n, sizeof quoted - n, "$");
        its = quoted;
    }
    if (add_rule(kinds, module ? MODULE : FUNCTION, its, why))
        gt_fail(GT_EXIT_USAGE, "%s=%s: %s", option, pattern, why);
}

/* Modules ------------------------------------------------------------------------------------ */

/*
 * Finds the directory of the program's installation: that of the executable, or the parent of its
 * bin.
 */
static void find_root(const char *program)
{
    static const char *const shared[] = {"", "/usr", "/usr/local"};
    char *root = gt_need(strdup(program)), *last = strrchr(root, '/');
    if (last) /* in a damaged trace there is none */
        *last = 0;
    last = strrchr(root, '/');
    if (last && (strcmp(last, "/bin") == 0 || strcmp(last, "/sbin") == 0))
        *last = 0;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (strcmp(root, shared[i]) == 0) {
            free(root);
            return;
        }
    }
    all.root = root;
}

static void add_module(const char *text)
{
    struct gt_module its;
    const char *path = gt_modules_parse(text, &its);
    if (!path)
        return;
    struct module *m = GT_ADD(all.module, all.modules);
    *m = (struct module){.lo = its.lo, .hi = its.hi, .path = gt_need(strdup(path))};
    if (!its.is_program)
        return;
    *strstr(m->path, "//") = 0;
    m->own = true;
    find_root(m->path);
}

static bool is_below(const char *path, const char *directory)
{
    size_t length = directory ? strlen(directory) : 0;
    return length && strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* Whether the code was made at run time: such code is in no module. */
static bool is_made(const struct gt_where *frame)
{
    return (frame->pc >= GT_MODULES_MADE && frame->pc < GT_MODULES_ELSEWHERE) ||
           strncmp(frame->func, "0x", 2) == 0;
}

/*
 * The module of a frame. Inlined frames have no address: they are in the module of the next frame
 * that has one.
 */
static const struct module *module_at(const struct gt_callers *stack, uint32_t i)
{
    for (; all.remarks < all.trace->n_remarks; all.remarks++)
        add_module(all.trace->remarks[all.remarks]);
    for (; i < stack->n; i++) {
        for (size_t k = 0; k < all.modules; k++) {
            if (stack->frame[i].pc >= all.module[k].lo && stack->frame[i].pc < all.module[k].hi)
                return &all.module[k];
        }
        if (is_made(&stack->frame[i]))
            return NULL;
    }
    return NULL;
}

/* Frames ------------------------------------------------------------------------------------- */

/* Rust: skips what stands before a path: "<&dyn core::ops::function::Fn…" is in core. */
static const char *bare(const char *function)
{
    static const char *const before[] = {"<", "&", "dyn ", "mut ", "*const ", "*mut "};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t length = strlen(before[i]);
        if (strncmp(function, before[i], length) == 0)
            return bare(function + length);
    }
    return function;
}

/*
 * Whether the function is one that Python's interpreter exports, and that stands on the stacks of
 * Python's threads. Programs and extensions define others: PyInit_spam.
 */
static bool is_of_python(const char *function)
{
    static const char *const begins[] = {
        "PyEval_",      "PyObject_Call",         "PyObject_Vectorcall", "PyRun_", "PyVectorcall_",
        "Py_BytesMain", "PyFunction_Vectorcall", "Py_RunMain",          NULL};
    return gt_begins_with(function + (*function == '_'), begins) && !strchr(function, '+');
}

/*
 * Whether the module of a frame without a name has Python's interpreter in it, as another frame of
 * the stack shows: a stripped interpreter, or a program that is linked with one.
 */
static bool is_in_interpreter(const struct gt_callers *stack, const struct module *module)
{
    bool found = false;
    if (!module)
        return false;
    for (uint32_t k = 0; k < stack->n && !found; k++)
        found = is_of_python(stack->frame[k].func) && module_at(stack, k) == module;
    return found;
}

/* Whether an interpreter may be in the module: in the program itself, or in a library. */
static bool may_be_interpreter(const struct module *module)
{
    const char *name = module ? strrchr(module->path, '/') : NULL;
    return !name || module->own || strncmp(name, "/lib", 4) == 0;
}

static unsigned nameless_kinds(const char *function)
{
    if (strncmp(function, "0x", 2) == 0)
        return GT_FRAME_NAMELESS | GT_FRAME_UNKNOWN;
    return strstr(function, "+0x") ? GT_FRAME_NAMELESS : 0;
}

static unsigned find_kinds(const struct gt_where *frame, const struct module *module)
{
    bool python = may_be_interpreter(module), begins = strncmp(frame->func, "PyInit_", 7) == 0;
    const char *subjects[SUBJECTS] = {
        [FUNCTION] = bare(frame->func),
        [SOURCE] = frame->file,
        [MODULE] = module ? module->path : "",
        [PYTHON_FUNCTION] = python && !begins ? frame->func : "", /* that one a program defines */
        [PYTHON_SOURCE] = python ? frame->file : "",
        [JVM_FUNCTION] = module && strstr(module->path, "/libjvm.") ? frame->func : ""};
    unsigned kinds = nameless_kinds(frame->func);
    for (size_t i = 0; i < all.rules; i++) {
        const char *subject = subjects[all.rule[i].subject];
        if ((kinds | all.rule[i].kinds) != kinds && *subject &&
            regexec(&all.rule[i].pattern, subject, 0, NULL, 0) == 0)
            kinds |= all.rule[i].kinds;
    }
    if (module && (module->own || is_below(module->path, all.root)))
        kinds &= ~(unsigned)GT_FRAME_LIBRARY;
    return kinds;
}

/* frame: the stack's frame i, perhaps with another file. */
static unsigned kinds_as(const struct gt_callers *stack, uint32_t i, const struct gt_where *frame)
{
    const struct module *module = module_at(stack, i);
    uint64_t key = gt_hash_mix(gt_hash_mix(0, (uintptr_t)frame->func), (uintptr_t)frame->file);
    uint64_t *slot =
        gt_need(gt_memo_at(&all.kinds, gt_hash_mix(key, module ? (uintptr_t)module->path : 0)));
    if (!*slot)
        *slot = 1 + find_kinds(frame, module);
    unsigned kinds = (unsigned)*slot - 1;
    bool skip = kinds & GT_FRAME_NAMELESS && is_in_interpreter(stack, module);
    return skip ? kinds | GT_FRAME_SKIP : kinds;
}

unsigned gt_frame_kinds(const struct gt_callers *stack, uint32_t i)
{
    return kinds_as(stack, i, &stack->frame[i]);
}

unsigned gt_frame_kinds_of_name(const struct gt_callers *stack, uint32_t i)
{
    struct gt_where frame = stack->frame[i];
    frame.file = "";
    return kinds_as(stack, i, &frame);
}

bool gt_frame_is_own_made(const struct gt_callers *stack, uint32_t i)
{
    return is_made(&stack->frame[i]) && gt_frame_is_own(stack, i);
}

bool gt_frame_is_extension(const struct gt_callers *stack, uint32_t i)
{
    return stack->frame[i].line && !may_be_interpreter(module_at(stack, i)) &&
           !is_made(&stack->frame[i]) && gt_frame_is_own(stack, i);
}

bool gt_frame_is_own(const struct gt_callers *stack, uint32_t i)
{
    enum { WRAPS = GT_FRAME_SKIP | GT_FRAME_START | GT_FRAME_LOOP };
    unsigned kinds = gt_frame_kinds(stack, i);
    return kinds & GT_FRAME_OWN || !(kinds & (WRAPS | GT_FRAME_LIBRARY | GT_FRAME_UNKNOWN));
}

const char *gt_frame_module(const struct gt_callers *stack, uint32_t i)
{
    const struct module *module = module_at(stack, i);
    uint64_t pc = stack->frame[i].pc;
    bool is_caller = module && !i && (pc < module->lo || pc >= module->hi);
    return module && !is_caller ? module->path : NULL;
}

static void complete_rules(void)
{
    if (all.complete)
        return;
    add_table();
    add_rules_of_user();
    all.complete = true;
}

void gt_frames_use(const struct gt_trace *trace)
{
    all.trace = trace;
    complete_rules();
}

uint64_t gt_frames_fingerprint(void)
{
    complete_rules();
    return all.fingerprint >> 1;
}
