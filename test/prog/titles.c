/*
 * titles WAY: changes its title or its environment as servers do, then makes children by system,
 * popen, fork and exec, and posix_spawn, in another directory. Each child makes a thread. Prints
 * whether the environment is as the kernel has made it.
 */
#include "program.h"
#include <spawn.h>
#include <sys/auxv.h>

extern char **environ;

static char **args, **given;
static int count;

static bool is_ours(const char *string)
{
    return strncmp(string, "GOTRACE_ROOT_", 13) == 0 || strncmp(string, "GOTRACE_FAMILY=", 15) == 0;
}

/* Where the kernel has put it, behind the environment; or nowhere, once that was moved. */
static bool has_auxiliary_vector(void)
{
    char **e = environ;
    while (*e)
        e++;
    const unsigned long *vector = (const unsigned long *)(e + 1);
    while (vector[0] && vector[0] != AT_PAGESZ)
        vector += 2;
    return vector[1] == (unsigned long)sysconf(_SC_PAGESIZE);
}

/* But for what the library puts between them, the strings are where they were, in their order. */
static bool is_as_given(void)
{
    char **e = environ, **g = given;
    while (*e && (is_ours(*e) || *e == *g))
        g += !is_ours(*e++);
    return !*e && !*g && has_auxiliary_vector();
}

/* What lies between is taken for ours: to the end of the last string. */
static void overwrite(char *end)
{
    memset(args[0], 0, (size_t)(end - args[0]));
    snprintf(args[0], (size_t)(end - args[0]), "%s", "titled");
}

static char **copy_of(char **from)
{
    size_t n = 0;
    while (from[n])
        n++;
    char **copy = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = strdup(from[i]);
    return copy;
}

static char *last_of(char **strings)
{
    while (strings[1])
        strings++;
    return *strings;
}

static void leave(void)
{
}

/* Whoever believes that arguments and environment are all that is between the first and the last.
 */
static void naive(void)
{
    char *end = last_of(environ) + strlen(last_of(environ));
    environ = copy_of(environ);
    overwrite(end);
}

/* The end of what lies behind the arguments without a gap: PostgreSQL, nginx, libbsd. */
static char *contiguous_end(void)
{
    char *end = args[0];
    for (int i = 0; i < count; i++)
        end = args[i] == end ? end + strlen(end) + 1 : end;
    for (char **e = environ; *e; e++)
        end = *e == end ? end + strlen(end) + 1 : end;
    return end - 1;
}

static void moves(void)
{
    char *end = contiguous_end();
    environ = copy_of(environ);
    overwrite(end);
}

/* nginx moves the strings, and leaves the array where it is. */
static void moves_strings(void)
{
    char *end = contiguous_end();
    char **copy = copy_of(environ);
    for (size_t i = 0; copy[i]; i++)
        environ[i] = copy[i];
    overwrite(end);
}

static void clears(void)
{
    clearenv();
}

static void has_none(void)
{
    environ = NULL;
}

static void sets(void)
{
    setenv("A_NEW_ONE", "1", 1);
    putenv("ANOTHER=2");
    unsetenv("HOME");
}

static void *nothing(void *arg)
{
    return arg;
}

static int child(void)
{
    RUN_THREADS(1, nothing, NULL);
    return 0;
}

static const struct way {
    const char *name;
    void (*change)(void);
} ways[] = {
    {"leaves", leave},  {"naive", naive},       {"moves", moves}, {"moves_strings", moves_strings},
    {"clears", clears}, {"has_none", has_none}, {"sets", sets}};

static void make_children(const char *self)
{
    char command[4200];
    snprintf(command, sizeof command, "exec %s child", self);
    if (system(command) != 0)
        puts("system failed");
    FILE *pipe = popen(command, "r");
    if (!pipe || pclose(pipe) != 0)
        puts("popen failed");
    pid_t pid = fork();
    if (!pid) {
        execl(self, self, "child", (char *)NULL);
        _exit(1);
    }
    int status;
    waitpid(pid, &status, 0);
    printf("exec %d\n", status);
    char *argv[] = {(char *)self, "child", NULL};
    int error = posix_spawn(&pid, self, NULL, NULL, argv, environ);
    waitpid(pid, &status, 0);
    printf("spawn %d %d\n", error, status);
}

int main(int argc, char **argv)
{
    char self[4096] = "";
    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return child();
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || argc != 2)
        return 2;
    args = argv;
    given = argv + argc + 1; /* where the kernel has put it */
    count = argc;
    printf("as given: %d\n", is_as_given());
    const struct way *way = ways;
    while (strcmp(way->name, argv[1]) != 0)
        way++;
    way->change();
    for (char **e = environ; e && *e; e++)
        if (!is_ours(*e) && strncmp(*e, "LD_PRELOAD=", 11) != 0 && strncmp(*e, "GOTRACE", 7) != 0)
            puts(*e);
    if (chdir("elsewhere") != 0)
        return 3;
    child();
    fflush(stdout);
    make_children(self);
    return 0;
}
