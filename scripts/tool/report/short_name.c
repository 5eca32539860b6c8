/* See short_name.h. */
#include "short_name.h"

#include "encoder/base/utf8.h"

#include <ctype.h>
#include <string.h>

bool gt_wide_names;

enum { PARAMETERS_MAX = 24 };

struct out {
    char *buf;
    size_t n, size;
};

static void put(struct out *out, const char *text, size_t length)
{
    size_t room = out->size - 1 - out->n;
    length = length < room ? length : room;
    memcpy(out->buf + out->n, text, length);
    out->n += length;
    out->buf[out->n] = 0;
}

static void put_text(struct out *out, const char *text)
{
    put(out, text, strlen(text));
}

static bool is_at(const char *p, const char *text)
{
    return strncmp(p, text, strlen(text)) == 0;
}

/* The bracket that closes the one at p, or the end of the text. Arrows do not count. */
static const char *closing(const char *p)
{
    size_t depth = 0;
    for (; *p; p++) {
        if (is_at(p, "->") || is_at(p, "=>")) {
            p++;
            continue;
        }
        depth += strchr("<({[", *p) != NULL;
        depth -= strchr(">)}]", *p) != NULL;
        if (!depth)
            return p;
    }
    return p;
}

/* The length of "operator<", "operator()" or the like at p; 0: none. */
static size_t operator_at(const char *p)
{
    static const char word[] = "operator";
    enum { WORD = sizeof word - 1 };
    if (strncmp(p, word, WORD) != 0 || isalnum((unsigned char)p[WORD]) || p[WORD] == '_')
        return 0;
    if (is_at(p + WORD, "()") || is_at(p + WORD, "[]"))
        return WORD + 2;
    return WORD + strspn(p + WORD, "<>=-+*/%!&|^~,");
}

/* The length of a part that is always left out; 0: none. */
static size_t noise_at(const char *p)
{
    static const char *const noise[] = {"__cxx11::", "__1::", "__cxx11 ", "::{{vtable.shim}}",
                                        "{{vtable.shim}}"};
    if (is_at(p, "[abi:"))
        return strcspn(p, "]") + (strchr(p, ']') != NULL);
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) {
        if (is_at(p, noise[i]))
            return strlen(noise[i]);
    }
    return 0;
}

/* Whether p is Rust's hash, "::h" and 16 digits, or a suffix of the compiler: ".isra.0". */
static bool is_tail(const char *p)
{
    static const char *const suffixes[] = {".isra.", ".constprop.", ".part.",
                                           ".cold",  ".llvm.",      ".lto_priv."};
    if (is_at(p, "::h") && strlen(p) == 19)
        return strspn(p + 3, "0123456789abcdef") == 16;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (is_at(p, suffixes[i]))
            return true;
    }
    return false;
}

static const char *shorten(struct out *out, const char *p, const char *end);

/* Rust: "<A as B>::f" becomes A::f. Returns where to go on. */
static const char *put_implementor(struct out *out, const char *p)
{
    const char *end = closing(p), *stop = end, *from = p + 1;
    for (const char *at = from; at < end; at++) {
        if (strchr("<({[", *at))
            at = closing(at);
        else if (is_at(at, " as "))
            stop = at;
        if (stop != end || at >= end)
            break;
    }
    while (*from == '&' || is_at(from, "dyn ") || is_at(from, "mut "))
        from += *from == '&' ? 1 : 4;
    shorten(out, from, stop);
    return *end ? end + 1 : end;
}

/*
 * "{lambda(int)#1}" becomes {lambda#1}. The operator behind it is left out, as it says nothing
 * more.
 */
static const char *put_braces(struct out *out, const char *p)
{
    const char *end = closing(p), *number = memchr(p, '#', (size_t)(end - p));
    bool lambda = is_at(p, "{lambda"), rust = is_at(p, "{{closure");
    if (lambda) {
        put_text(out, "{lambda");
        put(out, number ? number : end, number ? (size_t)(end - number) : 0);
        put_text(out, "}");
    } else if (rust) {
        put_text(out, "{closure}");
    } else {
        put(out, p, (size_t)(end - p) + (*end != 0));
    }
    end += *end != 0;
    if (lambda && is_at(end, "::operator()"))
        return end + strlen("::operator()");
    return lambda && is_at(end, "::_FUN(void*)") ? end + strlen("::_FUN(void*)") : end;
}

static const char *put_parentheses(struct out *out, const char *p)
{
    static const char nameless[] = "(anonymous namespace)";
    const char *end = closing(p);
    size_t length = (size_t)(end - p) + (*end != 0);
    if (is_at(p, nameless)) {
        put_text(out, "(anon)");
        return p + sizeof nameless - 1;
    }
    if (is_at(p + length, "::"))
        return p + length; /* the parameters of the enclosing function */
    if (length > PARAMETERS_MAX)
        put_text(out, "(…)");
    else
        put(out, p, length);
    return p + length;
}

/*
 * Puts what stands at p, if it is more than a plain character. Returns where to go on; NULL: it is
 * one.
 */
static const char *put_piece(struct out *out, const char *p, bool first)
{
    size_t length = operator_at(p);
    if (length) {
        put(out, p, length);
        return p + length;
    }
    length = noise_at(p);
    if (length)
        return p + length;
    if (is_at(p, "::<")) { /* Rust's turbofish */
        put_text(out, "<…>");
        p = closing(p + 2);
        return *p ? p + 1 : p;
    }
    if (*p == '<' && first)
        return put_implementor(out, p);
    if (*p == '<') {
        put_text(out, "<…>");
        p = closing(p);
        return *p ? p + 1 : p;
    }
    return *p == '{' ? put_braces(out, p) : *p == '(' ? put_parentheses(out, p) : NULL;
}

static const char *shorten(struct out *out, const char *p, const char *end)
{
    for (const char *start = p; p < end && !is_tail(p);) {
        const char *next = put_piece(out, p, p == start);
        if (!next)
            put(out, p, 1);
        p = next ? next : p + 1;
    }
    return p;
}

/* Keeps the last parts of a name that has more than `most` characters. */
static void cut_front(struct out *out, size_t most)
{
    static const char mark[] = "…"; /* one character, and no more bytes than it replaces */
    size_t length = gt_utf8_length(out->buf);
    size_t from = length > most ? gt_utf8_fit(out->buf, length - most + 1) : 0;
    char *part =
        from ? strstr(out->buf + (from < sizeof mark - 1 ? sizeof mark - 1 : from), "::") : NULL;
    if (!part || !part[2])
        return;
    memmove(out->buf + sizeof mark - 1, part, strlen(part) + 1);
    memcpy(out->buf, mark, sizeof mark - 1);
    out->n = strlen(out->buf);
}

/*
 * The callable of a std::thread of libc++, in the name of its routine: what comes after the first
 * member of __thread_proxy<tuple<unique_ptr<…>, Callable, …>>, or what std::async runs. Returns its
 * length; 0: there is none.
 */
static size_t callable_in(const char *function, const char **begin)
{
    const char *async = strstr(function, "::__async_func<"), *p = strstr(function, "unique_ptr<");
    p = async ? strchr(async, '<') : p ? strchr(closing(strchr(p, '<')), ' ') : NULL;
    if (!p)
        return 0;
    const char *end = *begin = p + 1;
    while (*end && !strchr(",>", *end))
        end = strchr("<({[", *end) ? closing(end) + (*closing(end) != 0) : end + 1;
    return (size_t)(end - *begin);
}

const char *gt_short_name(const char *function, char *buf, size_t size, size_t most)
{
    struct out out = {.buf = buf, .size = size};
    const char *lambda = function;
    size_t length = strlen(function);
    *buf = 0;
    if (gt_wide_names)
        return function;
    if (is_at(function, "std::") && strstr(function, "::_M_"))
        length = gt_lambda_in(function, &lambda);
    else if (is_at(function, "std::") && strstr(function, "::__thread_proxy"))
        length = callable_in(function, &lambda);
    if (!length)
        length = strlen(lambda = function);
    shorten(&out, lambda, lambda + length);
    if (out.n == size - 1)
        buf[out.n = gt_utf8_whole(buf, out.n)] = 0;
    while (out.n && buf[out.n - 1] == ' ')
        buf[--out.n] = 0;
    cut_front(&out, most);
    return buf;
}

/* The beginning of the template argument that contains p. */
static const char *argument_start(const char *name, const char *p)
{
    size_t depth = 0;
    while (p > name) {
        char c = p[-1];
        if (depth == 0 && (c == '<' || c == ',' || c == '('))
            break;
        depth += c == '>' || c == ')' || c == '}';
        depth -= c == '<' || c == '(' || c == '{';
        p--;
    }
    return p + (*p == ' ');
}

size_t gt_lambda_in(const char *function, const char **begin)
{
    for (const char *p = function; (p = strstr(p, "{lambda(")); p++) {
        const char *start = argument_start(function, p), *end = closing(p);
        if (start == function || strncmp(start, "std::", 5) == 0 || !*end)
            continue;
        *begin = start;
        return (size_t)(end + 1 - start);
    }
    return 0;
}
