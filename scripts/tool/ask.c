/* See ask.h. */
#include "ask.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_RUN = 127 };

static _Noreturn void run(const char *const argv[], int out, bool errors)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(nothing, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(errors ? out : nothing, STDERR_FILENO) >= 0)
        execvp(argv[0], (char **)(uintptr_t)argv);
    _exit(NOT_RUN);
}

static int ask(const char *const argv[], char *line, size_t size, bool errors)
{
    int ends[2], status;
    line[0] = 0;
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0)
        run(argv, ends[1], errors);
    close(ends[1]);
    FILE *out = child > 0 ? fdopen(ends[0], "r") : NULL;
    if (out && !fgets(line, (int)size, out))
        line[0] = 0;
    for (char rest[512]; out && fgets(rest, sizeof rest, out);)
        ; /* it shall not end by SIGPIPE */
    if (out)
        fclose(out);
    else
        close(ends[0]);
    line[strcspn(line, "\n")] = 0;
    if (child <= 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status) == NOT_RUN ? -1 : WEXITSTATUS(status);
}

int gt_ask(const char *const argv[], char *line, size_t size)
{
    return ask(argv, line, size, false);
}

int gt_ask_errors(const char *const argv[], char *line, size_t size)
{
    return ask(argv, line, size, true);
}
