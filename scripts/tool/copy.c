/* See copy.h. */
#include "copy.h"

#include "tool.h"

#include "encoder/read/need.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the child's exit status; GT_EXIT_FAILED if a signal ended the child. */
static int make_in_child(const char *path, const char *otherwise, gt_copy_fn *make, const void *of,
                         const char *output)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(make(of, output) && fflush(NULL) == 0 ? 0 : GT_EXIT_FAILED);
    if (child < 0 || TEMP_FAILURE_RETRY(waitpid(child, &status, 0)) != child)
        gt_fail(GT_EXIT_FAILED, "%s", strerror(errno));
    if (WIFSIGNALED(status))
        gt_say("%s: %s: that ended by signal %d", path, otherwise, WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : GT_EXIT_FAILED;
}

static const char *copy(const char *path, const char *otherwise, gt_copy_fn *make, const void *of)
{
    const char *directory = getenv("TMPDIR");
    char output[PATH_MAX], *found = NULL;
    snprintf(output, sizeof output, "%s/gotrace-XXXXXX",
             directory && *directory ? directory : "/tmp");
    int fd = mkostemp(output, O_CLOEXEC);
    if (fd < 0) {
        gt_say("%s: %s: %s: %s", path, otherwise, output, strerror(errno));
        return NULL;
    }
    int status = make_in_child(path, otherwise, make, of, output);
    unlink(output);
    if (status == 0 && asprintf(&found, "/proc/%d/fd/%d", getpid(), fd) < 0)
        gt_fail(GT_EXIT_FAILED, "no memory");
    return found;
}

const char *gt_copy_once(const char *path, const char *otherwise, gt_copy_fn *make, const void *of)
{
    static struct made {
        struct made *next;
        const char *of, *path;
        gt_copy_fn *make;
    } * all;
    struct made *made = all;
    while (made && (made->make != make || strcmp(made->of, path) != 0))
        made = made->next;
    if (!made) {
        made = gt_need(malloc(sizeof *made));
        *made = (struct made){all, gt_need(strdup(path)), copy(path, otherwise, make, of), make};
        all = made;
    }
    return made->path;
}
