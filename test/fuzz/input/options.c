/* The environment: lines NAME=value, read as at the start of a process; then the output pattern. */
#include "preload/shared/options.h"

#include "encoder/base/log.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expand(bool descendant)
{
    char path[PATH_MAX + 1];
    path[PATH_MAX] = 'x';
    bool whole = gt_options_output_path(path, descendant, 2);
    if (path[PATH_MAX] != 'x' || (whole && strlen(path) >= PATH_MAX))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = memcpy(calloc(1, size + 1), data, size), *next = text;
    clearenv();
    gt_log_init(); /* standard error is the fuzzer's: nothing is printed after this */
    for (char *line; (line = strsep(&next, "\n"));) {
        char *value = strchr(line, '=');
        if (value && value > line) {
            *value = 0;
            setenv(line, value + 1, 1);
        }
    }
    gt_log_quiet = GT_QUIET_ALL;
    setenv("GOTRACE_QUIET", "1", 1);
    gt_options_read(NULL);
    expand(false);
    expand(true);
    clearenv();
    free(text);
    return 0;
}
