/* See part_of_report.h. */
#include "part_of_report.h"

#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int new_file(void)
{
    int fd = memfd_create("gotrace-report", MFD_CLOEXEC);
    if (fd < 0)
        gt_fail(GT_EXIT_FAILED, "report: %s", strerror(errno));
    return fd;
}

/* The descriptors move up first: one of them may have the number that another one gets. */
static _Noreturn void run(const struct gt_report_part *part)
{
    enum { MORE = STDERR_FILENO + 1, COUNT };
    int from[COUNT] = {open("/dev/null", O_RDONLY | O_CLOEXEC), part->out, part->err, part->more};
    for (int i = 0; i < COUNT; i++)
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (dup2(from[i], i) < 0)
            _exit(GT_EXIT_FAILED);
    }
    execv("/proc/self/exe", (char **)(uintptr_t)part->argv);
    _exit(GT_EXIT_FAILED);
}

void gt_report_part_start(struct gt_report_part *part)
{
    part->out = new_file();
    part->err = new_file();
    part->more = new_file();
    fflush(NULL);
    part->child = fork();
    if (part->child < 0)
        gt_fail(GT_EXIT_FAILED, "report: fork: %s", strerror(errno));
    if (part->child == 0)
        run(part);
}

/* What the file holds, with a zero byte behind it. */
static char *contents(int fd, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        gt_fail(GT_EXIT_FAILED, "report: %s", strerror(errno));
    char *text = gt_need(malloc((size_t)st.st_size + 1));
    ssize_t n = pread(fd, text, (size_t)st.st_size, 0);
    *size = n > 0 ? (size_t)n : 0;
    text[*size] = 0;
    close(fd);
    return text;
}

void gt_report_part_wait(struct gt_report_part *part)
{
    static const char prefix[] = "gotrace: ";
    int status;
    if (TEMP_FAILURE_RETRY(waitpid(part->child, &status, 0)) != part->child)
        gt_fail(GT_EXIT_FAILED, "report: %s", strerror(errno));
    part->ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    size_t size;
    char *said = contents(part->err, &size);
    part->more_text = contents(part->more, &size);
    part->text = contents(part->out, &part->size);
    said[strcspn(said, "\n")] = 0;
    part->said = strncmp(said, prefix, sizeof prefix - 1) == 0 ? said + sizeof prefix - 1 : said;
    if (!part->ok && !*part->said)
        part->said = "the command ended without a message";
}
