/*
 * See demangle.h. libiberty does the work; its callback interface hardly allocates. It does not
 * limit its work: a name can refer twice to a part that refers twice to another part, and so on.
 */
#include "demangle.h"

#include "rust_name.h"
#include "symbolize/elf/loading.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

struct out {
    char *pos, *end;
    jmp_buf *full; /* jumped to when there is no room; NULL: the rest of the text is dropped */
};

static void append(const char *text, size_t len, void *arg)
{
    struct out *out = arg;
    size_t room = (size_t)(out->end - out->pos);
    bool fits = len <= room;
    if (!fits)
        len = room;
    if (len) /* text may be NULL if len is 0 */
        memcpy(out->pos, text, len);
    out->pos += len;
    if (!fits && out->full)
        gt_symbolize_jump(*out->full, 1);
}

static bool rust(const char *symbol, struct out *out)
{
    bool v0 = strncmp(symbol, "_R", 2) == 0;
    if (v0 ? !gt_rust_name_is_small(symbol) : strncmp(symbol, "_ZN", 3) != 0)
        return false;
    return rust_demangle_callback(symbol, DMGL_ANSI, append, out);
}

/*
 * Whether demangling may search for long. libiberty searches the pattern of a pack expansion
 * without writing anything, and each part as often as it is referred to. Each reference may double
 * the work: REFERENCES_MAX of them take 3 ms.
 */
static bool searches_long(const char *symbol)
{
    enum { REFERENCES_MAX = 16 };
    int references = 0;
    if (!strstr(symbol, "Dp") && !strstr(symbol, "sp"))
        return false;
    for (const char *p = symbol; (p = strchr(p, 'S')); p++)
        references += p[1 + strspn(p + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '_';
    return references > REFERENCES_MAX;
}

/* Demangles a C++ name. When the room is full, jumps out of libiberty, which holds no resources
 * then. */
static bool cplus(const char *symbol, struct out *out)
{
    jmp_buf full;
    if (strncmp(symbol, "_Z", 2) != 0 || searches_long(symbol))
        return false;
    out->full = &full;
    return setjmp(full) ||
           cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP, append, out);
}

/* The end of the first template argument that starts at p. */
static char *argument_end(char *p)
{
    int depth = 0;
    for (; *p; p++) {
        if (strchr("<({[", *p))
            depth++;
        else if (*p == '-' && p[1] == '>')
            p++;
        else if (strchr(">)}]", *p) && depth-- == 0)
            return p;
        else if (*p == ',' && depth == 0)
            return p;
    }
    return p;
}

char *gt_thread_callable(char *name)
{
    static const char prefix[] = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || !strstr(name, "::_M_run("))
        return name;
    name += sizeof prefix - 1;
    *argument_end(name) = 0;
    return name;
}

const char *gt_demangle(const char *symbol, char *buf, size_t size)
{
    struct out out = {.pos = buf, .end = buf + size - 1};
    if (!rust(symbol, &out)) {
        out.pos = buf;
        if (!cplus(symbol, &out))
            return symbol;
    }
    *out.pos = 0;
    /* Cuts "[clone .cold]" and the like: to its author it is one function. */
    char *clone = strstr(buf, " [clone ");
    if (clone)
        *clone = 0;
    return gt_thread_callable(buf);
}
