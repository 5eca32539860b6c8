/* See layouts.h. */
#include "layouts.h"

#include <string.h>

#define MINOR(version) ((version) >> 16)

enum { FUNCTION_CODE = 48 }; /* from 3.10 on */

static const struct {
    uint32_t minor;
    struct gt_python_layout layout;
} known[] = {
    {0x0309,
     {
         .chain = GT_PYTHON_UNMARKED,
         .lines = GT_PYTHON_STEPS,
         .unit = 1,
         .thread = {.frame = 24},
         .frame = {.code = 32, .previous = 24, .at = 104, .locals = 360},
         .code = {.file = 104, .name = 112, .lines = 120, .first = 40},
         .states = {.interpreters = 32, .first = 8, .next = 8, .thread = 176},
         .function_code = 16,
         .ascii = 48,
         .characters = 72,
         .dict = GT_PYTHON_DICT_OFFSET,
     }},
    {0x030a,
     {
         .chain = GT_PYTHON_OBJECTS,
         .lines = GT_PYTHON_PAIRS,
         .unit = 2,
         .thread = {.cframe = 48, .frame = 24},
         .cframe = {.previous = 8},
         .frame = {.code = 32, .previous = 24, .at = 96, .locals = 352},
         .code = {.file = 104, .name = 112, .lines = 120, .first = 40},
         .states = {.interpreters = 32, .first = 8, .next = 8, .thread = 176},
         .function_code = FUNCTION_CODE,
         .ascii = 48,
         .characters = 72,
         .dict = GT_PYTHON_DICT_OFFSET,
     }},
    {0x030b,
     {
         .chain = GT_PYTHON_CFRAMES,
         .lines = GT_PYTHON_LOCATIONS,
         .thread = {.cframe = 56},
         .cframe = {.frame = 8, .previous = 16},
         .frame = {.code = 32, .previous = 48, .at = 56, .last = 68, .locals = 72},
         .code = {.file = 112, .name = 128, .lines = 136, .first = 72, .instructions = 184},
         .states = {.interpreters = 40, .first = 16, .next = 8, .thread = 152},
         .function_code = FUNCTION_CODE,
         .ascii = 48,
         .characters = 72,
         .dict = GT_PYTHON_DICT_APART,
         .keys = 872,
     }},
    {0x030c,
     {
         .chain = GT_PYTHON_ENTRIES,
         .lines = GT_PYTHON_LOCATIONS,
         .thread = {.cframe = 56},
         .cframe = {.frame = 0},
         .frame = {.code = 0, .previous = 8, .at = 56, .last = 70, .locals = 72},
         .code = {.file = 112, .name = 128, .lines = 136, .first = 68, .instructions = 192},
         .states = {.interpreters = 40, .first = 72, .next = 8, .thread = 136},
         .function_code = FUNCTION_CODE,
         .ascii = 40,
         .characters = 56,
         .dict = GT_PYTHON_DICT_TAGGED,
         .keys = 880,
     }},
};

/*
 * For each part of _Py_DebugOffsets: the word where it begins, which is the size of the part's
 * structure.
 */
static const struct published {
    uint32_t minor;
    uint8_t thread, thread_id, frame, code, object; /* thread_id: the word of its pthread_t */
    uint16_t keys;
    uint8_t exit, leaves;
} published[] = {
    {0x030d, 19, 24, 28, 34, 44, 880, GT_PYTHON_BOUND, 2},
    {0x030e, 22, 27, 31, 39, 50, 880, 40, 3},
    {0x030f, 22, 30, 39, 47, 58, 888, 40, 3},
};
enum { INTERPRETERS = 5, NEXT_INTERPRETER = 8, FIRST_STATE = 9 }; /* words, in all of them */
enum { THREAD_NEXT = 2, THREAD_FRAME = 4 };
enum { FRAME_PREVIOUS = 1, FRAME_CODE = 2, FRAME_AT = 3, FRAME_LOCALS = 4, FRAME_OWNER = 5 };
enum { CODE_FILE = 1, CODE_QUALIFIED_NAME = 3, CODE_LINES = 4, CODE_FIRST = 5, CODE_CODE = 9 };

/*
 * A member's offset. *fits: cleared if the structure's size is impossible, or the member is not in
 * it.
 */
static uint16_t member(const uint64_t *part, unsigned i, bool *fits)
{
    enum { SIZE_MAX_ = 4096 };
    *fits &= part[0] <= SIZE_MAX_ && part[i] < part[0];
    return (uint16_t)part[i];
}

static bool read_published(const struct published *p, uint32_t version, const uint64_t *words,
                           struct gt_python_layout *l)
{
    enum { VERSION = 1, FREE_THREADED = 2, OBJECT_SIZE = 16, OBJECT_TYPE = 8 };
    const uint64_t *thread = words + p->thread, *frame = words + p->frame, *code = words + p->code;
    const uint64_t *object = words + p->object;
    bool fits = memcmp(words, "xdebugpy", 8) == 0 && words[VERSION] == version &&
                !words[FREE_THREADED] && object[0] == OBJECT_SIZE && object[1] == OBJECT_TYPE;
    *l = (struct gt_python_layout){
        .chain = GT_PYTHON_ENTRIES,
        .lines = GT_PYTHON_LOCATIONS,
        .thread = {.frame = member(thread, THREAD_FRAME, &fits)},
        .frame = {.code = member(frame, FRAME_CODE, &fits),
                  .previous = member(frame, FRAME_PREVIOUS, &fits),
                  .at = member(frame, FRAME_AT, &fits),
                  .locals = member(frame, FRAME_LOCALS, &fits),
                  .last = member(frame, FRAME_OWNER, &fits)},
        .code = {.file = member(code, CODE_FILE, &fits),
                 .name = member(code, CODE_QUALIFIED_NAME, &fits),
                 .lines = member(code, CODE_LINES, &fits),
                 .first = member(code, CODE_FIRST, &fits),
                 .instructions = member(code, CODE_CODE, &fits)},
        .states = {.interpreters = (uint16_t)words[INTERPRETERS],
                   .next_interpreter = (uint16_t)words[NEXT_INTERPRETER],
                   .first = (uint16_t)words[FIRST_STATE],
                   .next = (uint16_t)thread[THREAD_NEXT],
                   .thread = (uint16_t)words[p->thread_id]},
        .function_code = FUNCTION_CODE,
        .ascii = 40,
        .characters = 56,
        .dict = GT_PYTHON_DICT_INLINE,
        .keys = p->keys,
        .values = 8,
        .has_byte_locks = true,
        .exit = p->exit,
        .leaves = p->leaves,
    };
    return fits;
}

bool gt_python_layout(uint32_t version, const uint64_t *words, struct gt_python_layout *found)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].minor == MINOR(version)) {
            *found = known[i].layout;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        if (published[i].minor == MINOR(version))
            return read_published(&published[i], version, words, found);
    }
    return false;
}
