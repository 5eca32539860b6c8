/*
 * Writes a flame graph, a single SVG picture that needs no other file. Each box is a function on
 * the stacks of waits, as wide as the waits were long; below it are its callers. Its colour shows
 * the kind of wait, or, in a comparison with another trace, whether the time has grown.
 */
#include "export_stacks.h"

#include "encoder/base/hash.h"
#include "encoder/base/path.h"
#include "encoder/base/sort.h"
#include "encoder/base/utf8.h"
#include "encoder/read/need.h"
#include "scripts/tool/markup.h"
#include "scripts/tool/report/kinds.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* In pixels. */
enum { WIDTH = 1200, LEFT = 10, HEAD = 62, FOOT = 30, ROW = 18 };
static const double letter = 6.63;

/* The script for clicks and searches. */
GT_EMBED(gt_flame_script, "scripts/tool/export/flame.js");

/* The tree ----------------------------------------------------------------------------------- */

/* A function called by the box below it, and the sums of its stacks. */
struct box {
    struct box *child, *next; /* next: of the same caller, in the order of names */
    const char *name;
    size_t children;
    bool of_waker;           /* on the waker's stack */
    uint64_t value, count;   /* ns or samples; waits or samples */
    uint64_t before;         /* value in the other trace */
    uint64_t kind[GT_KINDS]; /* value by kinds */
};

struct tree {
    struct gt_contents *contents; /* where names are interned */
    struct box root;
    struct gt_memo boxes; /* by caller and name */
    /* Adding a stack: */
    const struct gt_stack_sum *sum;
    struct box *at;
    bool before; /* the stack is of the other trace */
};

static void count(struct tree *t)
{
    struct box *box = t->at;
    if (t->before) {
        box->before += t->sum->value;
        return;
    }
    box->value += t->sum->value;
    box->count += t->sum->count;
    box->kind[t->sum->kind] += t->sum->value;
}

static void add_frame(void *arg, const char *name)
{
    struct tree *t = arg;
    name = gt_contents_text(t->contents, name, strlen(name));
    uint64_t key = gt_hash_mix(gt_hash_mix(0, (uintptr_t)t->at), (uintptr_t)name);
    uint64_t *slot = gt_need(gt_memo_at(&t->boxes, key));
    if (!*slot) {
        struct box *fresh = gt_need(calloc(1, sizeof *fresh));
        *fresh = (struct box){.next = t->at->child,
                              .name = name,
                              .of_waker = t->at->of_waker || strcmp(name, "--") == 0};
        t->at->child = fresh;
        t->at->children++;
        *slot = (uintptr_t)fresh;
    }
    t->at = (void *)(uintptr_t)*slot;
    count(t);
}

GT_ORDER_POINTERS(by_name, struct box, strcmp(x->name, y->name))

static void sort(struct box *box)
{
    struct box **all = gt_need(malloc((box->children + 1) * sizeof *all));
    size_t n = 0;
    for (struct box *c = box->child; c; c = c->next)
        all[n++] = c;
    qsort(all, n, sizeof *all, by_name);
    all[n] = NULL;
    box->child = all[0];
    for (size_t i = 0; i < n; i++) {
        all[i]->next = all[i + 1];
        sort(all[i]);
    }
    free(all);
}

static void add_trace(struct tree *tree, const struct gt_export *x, struct gt_trace *trace)
{
    struct gt_stack_sums sums = {0};
    gt_stack_sums_read(&sums, x, trace);
    for (size_t i = 0; i < sums.n; i++) {
        tree->sum = &sums.sum[i];
        tree->at = &tree->root;
        count(tree);
        gt_stack_sum_frames(tree->sum, x->wakers, add_frame, tree);
    }
}

/* Text --------------------------------------------------------------------------------------- */

/* Writes as much of the name as has room; room is in pixels. */
static void put_label(FILE *file, const char *name, double room)
{
    size_t letters = room > 4 ? (size_t)((room - 4) / letter) : 0;
    if (letters < 3)
        return;
    bool fits = gt_utf8_length(name) <= letters;
    gt_markup_text(file, name, gt_utf8_fit(name, fits ? letters : letters - 1));
    if (!fits)
        fputs("…", file);
}

static const char *amount(const struct gt_export *x, uint64_t value)
{
    static char text[2][32];
    static unsigned turn;
    if (x->kinds != GT_KINDS_CPU)
        return gt_duration(value);
    char *its = text[turn++ % 2];
    snprintf(its, sizeof text[0], "%" PRIu64 " samples", value);
    return its;
}

/* Colours ------------------------------------------------------------------------------------ */

struct colour {
    double hue, saturation, lightness; /* degrees, 0 to 1 */
};

/* The hues of report.css. */
static const struct colour kind_colours[GT_KINDS] = {
    [GT_RUNNING] = {146, 0.40, 0.66}, [GT_SCHED] = {37, 0.85, 0.66},
    [GT_SYNC] = {5, 0.75, 0.74},      [GT_NETWORK] = {217, 0.72, 0.75},
    [GT_SYSCALL] = {267, 0.55, 0.78}, [GT_SLEEP] = {208, 0.12, 0.74},
    [GT_OTHER] = {212, 0.28, 0.70},   [GT_UNSEEN] = {47, 0.40, 0.68},
};
static const struct colour mixed = {40, 0.10, 0.86}, of_waker = {110, 0.30, 0.80};

static double channel(const struct colour *c, double n)
{
    double k = n + c->hue / 30, least;
    k -= 12 * (double)(int)(k / 12);
    least = k - 3 < 9 - k ? k - 3 : 9 - k;
    least = least < -1 ? -1 : least > 1 ? 1 : least;
    double range = c->saturation * (c->lightness < 0.5 ? c->lightness : 1 - c->lightness);
    return 255 * (c->lightness - range * least);
}

static void put_colour(FILE *file, const struct colour *c)
{
    fprintf(file, "#%02x%02x%02x", (int)channel(c, 0), (int)channel(c, 8), (int)channel(c, 4));
}

/* The kind of at least nine tenths of the box's time, or GT_KINDS. */
static enum gt_kind kind_of(const struct box *box)
{
    for (int k = 0; k < GT_KINDS; k++) {
        if (box->kind[k] >= box->value - box->value / 10)
            return (enum gt_kind)k;
    }
    return GT_KINDS;
}

/* The box's colour, a little lighter or darker by its name, so that neighbours differ. */
static struct colour colour_of(const struct box *box)
{
    enum gt_kind kind = kind_of(box);
    struct colour c = box->of_waker ? of_waker : kind == GT_KINDS ? mixed : kind_colours[kind];
    uint64_t hash = 0;
    for (const char *p = box->name; *p; p++)
        hash = gt_hash_mix(hash, (unsigned char)*p);
    c.lightness += (double)(hash % 9) / 100 - 0.04;
    return c;
}

/* White: unchanged. Red: more; full red: new. Blue: less. */
static struct colour change_of(const struct box *box)
{
    bool more = box->value > box->before;
    uint64_t most = more ? box->value : box->before;
    uint64_t least = more ? box->before : box->value;
    double part = most ? (double)(most - least) / (double)most : 0;
    return (struct colour){more ? 5 : 215, 0.85, 0.97 - 0.35 * part};
}

/* Boxes -------------------------------------------------------------------------------------- */

struct picture {
    const struct gt_export *x;
    const struct tree *tree;
    unsigned rows;
    double scale; /* pixels a value */
};

static unsigned rows_of(const struct picture *p, const struct box *box)
{
    unsigned most = 0;
    for (const struct box *c = box->child; c; c = c->next) {
        unsigned rows = (double)c->value * p->scale >= p->x->narrowest ? rows_of(p, c) : 0;
        most = rows > most ? rows : most;
    }
    return most + 1;
}

static double percent(uint64_t part, uint64_t all)
{
    return all ? 100.0 * (double)part / (double)all : 0;
}

static void put_title(const struct picture *p, const struct box *box)
{
    FILE *file = p->x->file;
    const char *what = p->x->kinds == GT_KINDS_CPU ? "" : box->count == 1 ? " wait, " : " waits, ";
    fputs("<title>", file);
    gt_markup_text(file, box->name, strlen(box->name));
    fprintf(file, "\n%s", amount(p->x, box->value));
    if (*what)
        fprintf(file, " in %" PRIu64 "%s", box->count, what);
    else
        fputs(", ", file);
    fprintf(file, "%.1f %%", percent(box->value, p->tree->root.value));
    if (p->x->other)
        fprintf(file, "\nbefore %s", amount(p->x, box->before));
    fputs("</title>", file);
}

static void put_box(const struct picture *p, const struct box *box, unsigned row, double x)
{
    FILE *file = p->x->file;
    double width = (double)box->value * p->scale;
    unsigned y = HEAD + (p->rows - 1 - row) * ROW;
    struct colour colour = p->x->other ? change_of(box) : colour_of(box);
    if (width < p->x->narrowest)
        return;
    fputs("<g class=\"f\">", file);
    put_title(p, box);
    fprintf(file, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"", x, y, width,
            ROW - 1);
    put_colour(file, &colour);
    fprintf(file, "\"/><text x=\"%.2f\" y=\"%u\">", x + 3, y + ROW - 6);
    put_label(file, box->name, width);
    fputs("</text></g>\n", file);
    for (const struct box *c = box->child; c; c = c->next) {
        put_box(p, c, row + 1, x);
        x += (double)c->value * p->scale;
    }
}

/* Around the boxes --------------------------------------------------------------------------- */

/* Each rule names the picture's class, as the picture may stand in a page with other ones. */
static const char style[] =
    ".flame text{font:11px ui-monospace,Menlo,'DejaVu Sans Mono',monospace;fill:#222}"
    ".flame .title{font-size:15px;font-weight:bold}.flame .dim{fill:#666}"
    ".flame .f{cursor:pointer}.flame .f:hover rect,.flame .chosen rect{stroke:#222}.flame .chosen "
    "rect{stroke-width:2}.flame .f text{pointer-events:none}"
    ".flame .below rect{opacity:.5}.flame .found rect{fill:#e445e4}"
    ".flame .button{cursor:pointer;text-decoration:underline}.flame .hidden{display:none}";

static void put_swatch(FILE *file, double *x, const struct colour *colour, const char *name)
{
    fprintf(file, "<rect x=\"%.1f\" y=\"42\" width=\"10\" height=\"10\" fill=\"", *x);
    put_colour(file, colour);
    fprintf(file, "\"/><text x=\"%.1f\" y=\"51\">%s</text>\n", *x + 14, name);
    *x += 30 + (double)strlen(name) * letter;
}

/* Writes the meaning of the colours that the picture has. */
static void put_legend(const struct picture *p)
{
    double x = LEFT;
    FILE *file = p->x->file;
    if (p->x->other) {
        put_swatch(file, &x, &(struct colour){5, 0.85, 0.62}, "more than before");
        put_swatch(file, &x, &(struct colour){215, 0.85, 0.62}, "less");
        return;
    }
    int kinds = 0;
    for (int k = 0; k < GT_KINDS; k++) {
        if (!p->tree->root.kind[k])
            continue;
        put_swatch(file, &x, &kind_colours[k], k == GT_RUNNING ? "cpu" : gt_kind_names[k]);
        kinds++;
    }
    if (kinds > 1)
        put_swatch(file, &x, &mixed, "several");
    if (p->x->wakers)
        put_swatch(file, &x, &of_waker, "the waker, from above");
}

static void put_head(const struct picture *p, unsigned height)
{
    const struct gt_export *x = p->x;
    const struct box *root = &p->tree->root;
    bool cpu = x->kinds == GT_KINDS_CPU;
    const char *name = gt_path_name(x->trace->path);
    fprintf(x->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" tabindex=\"0\" viewBox=\"0 "
            "0 %d %u\" "
            "width=\"%d\" "
            "height=\"%u\" data-left=\"%d\" data-width=\"%d\" data-letter=\"%.2f\">\n"
            "<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text class=\"title\" x=\"%d\" y=\"18\">",
            WIDTH, height, WIDTH, height, LEFT, WIDTH - 2 * LEFT, letter, style, LEFT);
    gt_markup_text(x->file, name, strlen(name));
    fprintf(x->file, "</text>\n<text class=\"dim\" x=\"%d\" y=\"35\">", LEFT);
    fprintf(x->file, "%s: %s", cpu ? "what ran" : "where its threads waited",
            amount(x, root->value));
    if (!cpu)
        fprintf(x->file, " in %s", gt_count(root->count, "wait"));
    if (x->other)
        fprintf(x->file, ", before: %s", amount(x, root->before));
    fprintf(x->file, "; recorded for %s</text>\n", gt_duration(x->trace->ns));
    put_legend(p);
}

static void put_foot(const struct picture *p, unsigned height)
{
    fprintf(
        p->x->file,
        "<text id=\"about\" x=\"%d\" y=\"%u\"/>\n"
        "<text id=\"reset\" class=\"button hidden\" tabindex=\"0\" x=\"%d\" y=\"18\">All</text>\n"
        "<text id=\"search\" class=\"button\" tabindex=\"0\" x=\"%d\" y=\"18\">Search</text>\n"
        "<text id=\"found\" x=\"%d\" y=\"35\" text-anchor=\"end\"/>\n"
        "<script><![CDATA[\n%s]]></script>\n</svg>\n",
        LEFT, height - 10, WIDTH - LEFT - 90, WIDTH - LEFT - 44, WIDTH - LEFT, gt_flame_script);
}

void gt_export_flame(const struct gt_export *x)
{
    struct tree tree = {.contents = &x->trace->contents, .root = {.name = "all"}};
    add_trace(&tree, x, x->trace);
    if (x->other) {
        struct gt_trace other;
        gt_open_trace(&other, x->other);
        tree.before = true;
        add_trace(&tree, x, &other);
    }
    sort(&tree.root);
    if (!tree.root.value)
        gt_fail(GT_EXIT_FAILED, "%s: nothing of that kind is in it", x->trace->path);
    struct picture p = {x, &tree, 0, (WIDTH - 2 * LEFT) / (double)tree.root.value};
    p.rows = rows_of(&p, &tree.root);
    unsigned height = HEAD + p.rows * ROW + FOOT;
    put_head(&p, height);
    put_box(&p, &tree.root, 0, LEFT);
    put_foot(&p, height);
}
