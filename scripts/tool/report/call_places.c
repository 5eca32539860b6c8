/* See call_places.h. */
#include "call_places.h"

#include "frame_code.h"
#include "short_name.h"

#include "encoder/base/hash.h"
#include "encoder/base/path.h"
#include "encoder/read/need.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 64 }; /* frames of a place */

unsigned gt_place_frames = 1;

/* A place. Callers of gt_site_of get a pointer to its first frame. */
struct place {
    struct place *same_hash;
    uint32_t n;
    struct gt_where frame[];
};

static struct {
    const struct gt_where **site; /* by the stack's number; `none`: no place */
    size_t n;
    struct gt_memo by_hash, by_site; /* → struct place; by_site: by its first frame */
    struct gt_contents names;        /* that are parts of other names */
} places;

static const struct gt_where none;

/* Which frame --------------------------------------------------------------------------------- */

static bool is_own_beside_made(const struct gt_callers *stack, uint32_t i)
{
    return gt_frame_is_own_made(stack, i) || gt_frame_is_extension(stack, i);
}

/*
 * The next frame of the program's own code from i on; or stack->n. If the program makes code at run
 * time, only such code is its own, and extensions that it calls: other functions that run it are
 * just an interpreter.
 */
static uint32_t first_own(const struct gt_callers *stack, uint32_t i)
{
    bool (*is_own)(const struct gt_callers *, uint32_t) = gt_frame_is_own;
    for (uint32_t k = 1; k < stack->n && is_own == gt_frame_is_own; k++)
        is_own = gt_frame_is_own_made(stack, k) ? is_own_beside_made : gt_frame_is_own;
    while (i < stack->n && !is_own(stack, i))
        i++;
    return i;
}

/*
 * The frame with a lambda of the program that the compiler has inlined into a library's function.
 */
static uint32_t first_lambda(const struct gt_callers *stack)
{
    const char *begin;
    uint32_t i = 1;
    while (i < stack->n && !gt_lambda_in(stack->frame[i].func, &begin))
        i++;
    return i;
}

/* The innermost function of Python's library: the frames below only execute that function. */
static uint32_t first_python(const struct gt_callers *stack)
{
    uint32_t i = 1;
    while (i < stack->n) {
        size_t length = strlen(stack->frame[i].file);
        if (length > 3 && strcmp(stack->frame[i].file + length - 3, ".py") == 0)
            break;
        i++;
    }
    return i;
}

/* The outermost frame before `end` with a named function that is of none of the kinds; or 0. */
static uint32_t outermost_but(const struct gt_callers *stack, uint32_t end, unsigned kinds)
{
    uint32_t i = end - 1;
    while (i > 0 && gt_frame_kinds(stack, i) & (kinds | GT_FRAME_NAMELESS))
        i--;
    return i;
}

/*
 * The outermost frame with a named function: it says most about what the program wanted. Better a
 * library's function than libc's, or another one that only wraps the call.
 */
static uint32_t outermost(const struct gt_callers *stack)
{
    uint32_t i = outermost_but(stack, stack->n, GT_FRAME_START | GT_FRAME_SKIP);
    i = i ? i : outermost_but(stack, stack->n, GT_FRAME_START);
    return i ? i : 1;
}

/* The function of a library that frame i calls, if that is the program's own and has no name. */
static uint32_t named_instead_of(const struct gt_callers *stack, uint32_t i)
{
    uint32_t named = 0;
    if (gt_frame_kinds(stack, i) & GT_FRAME_NAMELESS)
        named = outermost_but(stack, i, GT_FRAME_START | GT_FRAME_SKIP);
    return named ? named : i;
}

/* The frame with the program's own code, or of Python's library that it calls; or stack->n. */
static uint32_t first_told(const struct gt_callers *stack)
{
    uint32_t i = first_own(stack, 1);
    if (i < stack->n)
        return named_instead_of(stack, i);
    i = first_lambda(stack);
    return i < stack->n ? i : first_python(stack);
}

uint32_t gt_site_index(const struct gt_callers *stack)
{
    if (!stack || stack->n < 2)
        return 0;
    uint32_t i = first_told(stack);
    return i < stack->n ? i : outermost(stack);
}

bool gt_is_of_libraries(const struct gt_callers *stack)
{
    return stack->n > 1 && first_told(stack) == stack->n;
}

/* Places -------------------------------------------------------------------------------------- */

/* The frame as places store it: equal frames are equal byte for byte. */
static struct gt_where frame_of(const struct gt_callers *stack, uint32_t i)
{
    struct gt_where frame = stack->frame[i];
    const char *begin;
    size_t length = gt_frame_is_own(stack, i) ? 0 : gt_lambda_in(frame.func, &begin);
    if (length)
        frame.func = gt_contents_text(&places.names, begin, length);
    frame.pc = 0;
    return frame;
}

static const struct gt_where *intern(const struct gt_where *frames, uint32_t n)
{
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        hash = gt_hash_mix(gt_hash_mix(hash, (uintptr_t)frames[i].func), frames[i].line);
        hash = gt_hash_mix(hash, (uintptr_t)frames[i].file);
    }
    uint64_t *slot = gt_need(gt_memo_at(&places.by_hash, hash));
    for (struct place *p = (void *)(uintptr_t)*slot; p; p = p->same_hash) {
        if (p->n == n && memcmp(p->frame, frames, n * sizeof *frames) == 0)
            return p->frame;
    }
    struct place *p = gt_need(malloc(sizeof *p + n * sizeof *frames));
    *p = (struct place){(void *)(uintptr_t)*slot, n};
    memcpy(p->frame, frames, n * sizeof *frames);
    *slot = (uintptr_t)p;
    *(uint64_t *)gt_need(gt_memo_at(&places.by_site, (uintptr_t)p->frame)) = (uintptr_t)p;
    return p->frame;
}

uint32_t gt_site_caller(const struct gt_callers *stack, uint32_t frame)
{
    return first_own(stack, frame + 1);
}

bool gt_is_taken_and_given(const struct gt_callers *waits, const struct gt_callers *wakes)
{
    uint32_t i = gt_site_index(waits), k = gt_site_index(wakes);
    return i && k && waits->frame[i].func == wakes->frame[k].func &&
           gt_site_caller(waits, i) < waits->n;
}

/*
 * The place that begins at frame i: with `callers` callers of the program's own, or more by
 * --frames.
 */
static const struct gt_where *find_place(const struct gt_callers *stack, uint32_t i,
                                         unsigned callers, bool line)
{
    struct gt_where frames[MOST_FRAMES];
    uint32_t n = 0, most = callers < gt_place_frames ? gt_place_frames : callers + 1;
    for (; i < stack->n && n < most && n < MOST_FRAMES; i = gt_site_caller(stack, i))
        frames[n++] = frame_of(stack, i);
    frames[0].line = line ? frames[0].line : 0;
    return intern(frames, n);
}

static const struct gt_where *find_site(const struct gt_callers *stack)
{
    uint32_t i = gt_site_index(stack);
    return i ? find_place(stack, i, 0, true) : &none;
}

const struct gt_where *gt_site_with(const struct gt_callers *stack, unsigned callers)
{
    return find_place(stack, gt_site_index(stack), callers, true);
}

const struct gt_where *gt_purpose_of(const struct gt_callers *stack)
{
    struct gt_where frames[MOST_FRAMES];
    uint32_t n = 0;
    if (stack->n < 2)
        return NULL;
    if (!gt_is_of_libraries(stack))
        return gt_site_with(stack, MOST_FRAMES);
    for (; n + 1 < stack->n && n < MOST_FRAMES; n++)
        frames[n] = frame_of(stack, n + 1);
    return intern(frames, n);
}

const struct gt_where *gt_site_of_running(const struct gt_callers *stack, uint32_t frame,
                                          unsigned callers)
{
    return find_place(stack, frame, callers, false);
}

const struct gt_where *gt_site_of(const struct gt_callers *stack)
{
    if (!stack)
        return NULL;
    places.site = gt_need_zeros(places.site, &places.n, stack->number, sizeof *places.site);
    const struct gt_where **site = &places.site[stack->number];
    if (!*site)
        *site = find_site(stack);
    return *site == &none ? NULL : *site;
}

const char *gt_leaf_of(const struct gt_callers *stack)
{
    return stack && stack->n ? stack->frame[0].func : "(no stack)";
}

bool gt_begins_with(const char *name, const char *const *begins)
{
    while (*begins && strncmp(name, *begins, strlen(*begins)) != 0)
        begins++;
    return *begins;
}

int gt_compare_pointers(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y ? -1 : x > y;
}

int gt_compare_sites(const struct gt_where *a, const struct gt_where *b)
{
    return gt_compare_pointers(a, b);
}

/* Printing ------------------------------------------------------------------------------------ */

void gt_put_function(FILE *out, const char *function)
{
    enum { MOST = 72 };
    char buf[512];
    fputs(gt_short_name(function, buf, sizeof buf, MOST), out);
}

void gt_print_function(const char *function)
{
    gt_put_function(stdout, function);
}

static void put_site(FILE *out, const struct gt_where *site)
{
    const char *file = gt_path_name(site->file);
    gt_put_function(out, site->func);
    if (*file && site->line)
        fprintf(out, " (%s:%llu)", file, (unsigned long long)site->line);
    else if (*file)
        fprintf(out, " (%s)", file);
}

void gt_put_place(FILE *out, const char *what, const struct gt_where *site)
{
    gt_put_function(out, what);
    if (!site)
        return;
    fputs(" <- ", out);
    put_site(out, site);
    gt_put_callers(out, site);
}

void gt_put_callers(FILE *out, const struct gt_where *site)
{
    const struct place *place = (void *)(uintptr_t)gt_memo_find(&places.by_site, (uintptr_t)site);
    for (uint32_t i = 1; place && i < place->n; i++) {
        fputs(" < ", out);
        put_site(out, &place->frame[i]);
    }
}

void gt_print_place(const char *what, const struct gt_where *site)
{
    gt_put_place(stdout, what, site);
}

char *gt_place_text(const char *what, const struct gt_where *site)
{
    char *text;
    size_t size;
    FILE *out = gt_need(open_memstream(&text, &size));
    gt_put_place(out, what, site);
    fclose(out);
    return gt_need(text);
}
