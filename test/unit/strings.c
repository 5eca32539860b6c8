/* The string table: a thread that names itself does not wait for the drain side to write names. */
#include "encoder/thread/strings.h"

#include "encoder/base/clock.h"
#include "encoder/format/format.h"

#include "check.h"

#include <pthread.h>
#include <string.h>

enum { GEN = 4, NAMES = 20 };

static struct gt_string *names[NAMES];

static void *intern(void *text)
{
    return gt_strings_intern(text);
}

static struct gt_string *intern_in_thread(char *text)
{
    pthread_t t;
    void *s;
    CHECK(pthread_create(&t, NULL, intern, text) == 0);
    CHECK(pthread_join(t, &s) == 0);
    return s;
}

struct seen {
    uint32_t reasons, names, others;
};

/* As the drain side, which may wait for a file here. */
static void count(void *arg, struct gt_string *s)
{
    struct seen *seen = arg;
    char text[32];
    snprintf(text, sizeof text, "meanwhile %u", seen->reasons + seen->names);
    struct gt_string *added = intern_in_thread(text);
    CHECK(added && strcmp(added->text, text) == 0, "the table is locked");
    gt_string_use(added, GEN);
    if (s->id < GT_REASONS_END)
        seen->reasons++;
    else if (strncmp(s->text, "name", 4) == 0)
        seen->names++;
    else
        seen->others++;
}

int main(void)
{
    for (int i = 0; i < NAMES; i++) {
        char text[32];
        snprintf(text, sizeof text, "name %d", i);
        names[i] = gt_strings_intern(text);
        names[i]->written = i % 2;
        if (i % 4 == 0)
            gt_string_use(names[i], GEN);
    }
    struct seen seen = {0};
    gt_strings_each(GEN, count, &seen);
    CHECK_EQ(seen.reasons, GT_REASONS_END - 1);
    CHECK_EQ(seen.names, NAMES / 4);
    CHECK_EQ(seen.others, 0); /* they came after it began */
    seen = (struct seen){0};
    gt_strings_each_written(1, count, &seen);
    CHECK_EQ(seen.names, NAMES / 2);
    CHECK_EQ(seen.reasons + seen.others, 0);
    return 0;
}
