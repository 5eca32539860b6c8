/* See firefox_tables.h. */
#include "firefox_tables.h"

#include "encoder/base/hash.h"
#include "encoder/base/path.h"
#include "encoder/read/need.h"
#include "encoder/read/shares.h"
#include "scripts/tool/json.h"

#include <inttypes.h>
#include <string.h>

/* The index of the row with this key; *fresh: it is a new one, with index n. */
static uint32_t place_of(struct gt_memo *memo, uint64_t key, size_t n, bool *fresh)
{
    uint64_t *slot = gt_need(gt_memo_at(memo, key));
    *fresh = !*slot;
    if (*fresh)
        *slot = n + 1;
    return (uint32_t)(*slot - 1);
}

static uint64_t key_of(uint64_t a, uint64_t b, uint64_t c)
{
    return gt_hash_mix(gt_hash_mix(gt_hash_mix(0, a), b), c);
}

uint32_t gt_firefox_text(struct gt_firefox_tables *t, const char *text)
{
    bool fresh;
    if (!text || !*text)
        return GT_FIREFOX_NONE;
    text = gt_contents_text(&t->trace->contents, text, strlen(text));
    uint32_t at = place_of(&t->text_ids, (uintptr_t)text, t->texts, &fresh);
    if (fresh) {
        *GT_ADD(t->text, t->texts) = text;
    }
    return at;
}

static uint32_t file_at(struct gt_firefox_tables *t, const char *file)
{
    bool fresh;
    uint32_t text = gt_firefox_text(t, file);
    if (text == GT_FIREFOX_NONE)
        return text;
    uint32_t at = place_of(&t->file_ids, key_of(text, 0, 0), t->files, &fresh);
    if (fresh) {
        *GT_ADD(t->file, t->files) = text;
    }
    return at;
}

static uint32_t resource_at(struct gt_firefox_tables *t, uint64_t pc)
{
    bool fresh;
    const struct gt_export_module *module = gt_export_module_at(&t->modules, t->trace, pc);
    if (!module)
        return GT_FIREFOX_NONE;
    uint32_t at = place_of(&t->resource_ids, module->id, t->resources, &fresh);
    if (fresh) {
        *GT_ADD(t->resource, t->resources) = gt_firefox_text(t, gt_path_name(module->its.path));
    }
    return at;
}

static uint32_t frame_at(struct gt_firefox_tables *t, const struct gt_where *frame,
                         enum gt_kind kind)
{
    bool fresh;
    const struct gt_firefox_function its = {.name = gt_firefox_text(t, frame->func),
                                            .file = file_at(t, frame->file),
                                            .resource = resource_at(t, frame->pc)};
    uint64_t key = key_of(its.name, its.file, its.resource);
    uint32_t function = place_of(&t->function_ids, key, t->functions, &fresh);
    if (fresh) {
        *GT_ADD(t->function, t->functions) = its;
    }
    uint32_t at = place_of(&t->frame_ids, key_of(function, frame->line, kind), t->frames, &fresh);
    if (fresh) {
        *GT_ADD(t->frame, t->frames) =
            (struct gt_firefox_frame){function, (uint32_t)frame->line, kind};
    }
    return at;
}

static uint32_t node_at(struct gt_firefox_tables *t, uint32_t caller, uint32_t frame)
{
    bool fresh;
    uint32_t at = place_of(&t->node_ids, key_of(caller, frame, 0), t->nodes, &fresh);
    if (fresh) {
        *GT_ADD(t->node, t->nodes) = (struct gt_firefox_node){frame, caller};
    }
    return at;
}

static const char *const tops[GT_KINDS] = {
    [GT_RUNNING] = "[running]", [GT_SCHED] = "[runnable]", [GT_UNSEEN] = "[unseen]"};

/* The frame for a state that is no call, on top of the stack of the wait before; or NULL. */
static const char *top_of(const struct gt_callers *stack, enum gt_kind kind)
{
    return tops[kind] ? tops[kind] : !stack || !stack->n ? "[no stack]" : NULL;
}

/*
 * The kind of the stack's own frames. Below a state that is no call they keep the kind of the wait
 * that had the stack: the profiler shows a function of two kinds without colour.
 */
static enum gt_kind kind_of_frames(struct gt_firefox_tables *t, const struct gt_callers *stack,
                                   enum gt_kind kind)
{
    uint64_t *wait = gt_need(gt_memo_at(&t->waits, stack->number));
    if (!*wait && !tops[kind])
        *wait = (uint64_t)kind + 1;
    return *wait && kind != GT_RUNNING ? (enum gt_kind)(*wait - 1) : kind;
}

uint32_t gt_firefox_stack(struct gt_firefox_tables *t, const struct gt_callers *stack,
                          enum gt_kind kind)
{
    uint64_t *known =
        gt_need(gt_memo_at(&t->stack_ids, key_of(stack ? stack->number : 0, kind, 0)));
    uint32_t at = GT_FIREFOX_NONE;
    if (*known)
        return (uint32_t)(*known - 1);
    enum gt_kind below = stack ? kind_of_frames(t, stack, kind) : kind;
    for (uint32_t i = stack ? stack->n : 0; i-- > 0;)
        at = node_at(t, at, frame_at(t, &stack->frame[i], below));
    if (top_of(stack, kind) && !(kind == GT_RUNNING && at != GT_FIREFOX_NONE))
        at = node_at(
            t, at, frame_at(t, &(struct gt_where){.func = top_of(stack, kind), .file = ""}, kind));
    *known = at + 1ull;
    return at;
}

/* Writing ------------------------------------------------------------------------------------ */

/* Writes a column of n numbers, which fn returns; NONE is null. */
typedef uint32_t column_fn(const struct gt_firefox_tables *t, size_t i);

static void put_column(const struct gt_firefox_tables *t, FILE *file, const char *name, size_t n,
                       column_fn *fn)
{
    fprintf(file, "\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        uint32_t value = fn(t, i);
        fprintf(file, value == GT_FIREFOX_NONE ? "%snull" : "%s%" PRIu32, i ? "," : "", value);
    }
    fputs("],", file);
}

/* Writes a column of n equal values. */
static void put_constant(FILE *file, const char *name, size_t n, const char *value)
{
    fprintf(file, "\"%s\":[", name);
    for (size_t i = 0; i < n; i++)
        fprintf(file, "%s%s", i ? "," : "", value);
    fputs("],", file);
}

static void end_table(FILE *file, size_t n)
{
    fprintf(file, "\"length\":%zu}", n);
}

static uint32_t node_frame(const struct gt_firefox_tables *t, size_t i)
{
    return t->node[i].frame;
}

static uint32_t node_caller(const struct gt_firefox_tables *t, size_t i)
{
    return t->node[i].caller;
}

static uint32_t frame_function(const struct gt_firefox_tables *t, size_t i)
{
    return t->frame[i].function;
}

static uint32_t frame_kind(const struct gt_firefox_tables *t, size_t i)
{
    return (uint32_t)t->frame[i].kind;
}

static uint32_t frame_line(const struct gt_firefox_tables *t, size_t i)
{
    return t->frame[i].line ? t->frame[i].line : GT_FIREFOX_NONE;
}

static uint32_t function_name(const struct gt_firefox_tables *t, size_t i)
{
    return t->function[i].name;
}

static uint32_t function_file(const struct gt_firefox_tables *t, size_t i)
{
    return t->function[i].file;
}

static uint32_t resource_name(const struct gt_firefox_tables *t, size_t i)
{
    return t->resource[i];
}

static uint32_t file_name(const struct gt_firefox_tables *t, size_t i)
{
    return t->file[i];
}

static void put_stacks(const struct gt_firefox_tables *t, FILE *file)
{
    fputs("\"stackTable\":{", file);
    put_column(t, file, "frame", t->nodes, node_frame);
    put_column(t, file, "prefix", t->nodes, node_caller);
    end_table(file, t->nodes);
    fputs(",\n\"frameTable\":{", file);
    put_column(t, file, "func", t->frames, frame_function);
    put_column(t, file, "category", t->frames, frame_kind);
    put_column(t, file, "line", t->frames, frame_line);
    put_constant(file, "address", t->frames, "-1");
    put_constant(file, "inlineDepth", t->frames, "0");
    put_constant(file, "subcategory", t->frames, "0");
    put_constant(file, "nativeSymbol", t->frames, "null");
    put_constant(file, "innerWindowID", t->frames, "null");
    put_constant(file, "column", t->frames, "null");
    end_table(file, t->frames);
}

/* In this column -1 stands for none. */
static void put_function_resources(const struct gt_firefox_tables *t, FILE *file)
{
    fputs("\"resource\":[", file);
    for (size_t i = 0; i < t->functions; i++)
        fprintf(file, "%s%" PRId32, i ? "," : "", (int32_t)t->function[i].resource);
    fputs("],", file);
}

static void put_functions(const struct gt_firefox_tables *t, FILE *file)
{
    fputs(",\n\"funcTable\":{", file);
    put_column(t, file, "name", t->functions, function_name);
    put_column(t, file, "source", t->functions, function_file);
    put_function_resources(t, file);
    put_constant(file, "isJS", t->functions, "false");
    put_constant(file, "relevantForJS", t->functions, "false");
    put_constant(file, "lineNumber", t->functions, "null");
    put_constant(file, "columnNumber", t->functions, "null");
    end_table(file, t->functions);
    fputs(",\n\"resourceTable\":{", file);
    put_column(t, file, "name", t->resources, resource_name);
    put_constant(file, "type", t->resources, "1"); /* a library */
    put_constant(file, "lib", t->resources, "null");
    put_constant(file, "host", t->resources, "null");
    end_table(file, t->resources);
    fputs(",\n\"sources\":{", file);
    put_column(t, file, "filename", t->files, file_name);
    put_constant(file, "id", t->files, "null");
    put_constant(file, "startLine", t->files, "1");
    put_constant(file, "startColumn", t->files, "1");
    put_constant(file, "sourceMapURL", t->files, "null");
    end_table(file, t->files);
}

void gt_firefox_put_tables(const struct gt_firefox_tables *t, FILE *file)
{
    put_stacks(t, file);
    put_functions(t, file);
    fputs(",\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],"
          "\"length\":0},\n\"stringArray\":[",
          file);
    for (size_t i = 0; i < t->texts; i++) {
        if (i)
            putc(',', file);
        gt_json_string(t->text[i]);
    }
    putc(']', file);
}
