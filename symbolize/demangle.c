/* See demangle.h. The work is libiberty's; its callback interface does not allocate. */
#include "demangle.h"

#include <libiberty/demangle.h>
#include <stdbool.h>
#include <string.h>

struct out {
    char *pos, *end;
};

static void append(const char *text, size_t len, void *arg)
{
    struct out *out = arg;
    size_t room = (size_t)(out->end - out->pos);
    if (len > room)
        len = room;
    if (len) /* text may be NULL, else */
        memcpy(out->pos, text, len);
    out->pos += len;
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
    struct out out = {buf, buf + size - 1};
    bool done = false;
    if (strncmp(symbol, "_R", 2) == 0 || strncmp(symbol, "_ZN", 3) == 0)
        done = rust_demangle_callback(symbol, DMGL_ANSI, append, &out);
    if (!done && strncmp(symbol, "_Z", 2) == 0) {
        out.pos = buf;
        done = cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP, append,
                                          &out);
    }
    if (!done)
        return symbol;
    *out.pos = 0;
    /* "[clone .cold]" and the like: the same function to its author. */
    char *clone = strstr(buf, " [clone ");
    if (clone)
        *clone = 0;
    return gt_thread_callable(buf);
}
