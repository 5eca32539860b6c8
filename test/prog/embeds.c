/*
 * embeds LIBRARY ROUNDS SCRIPT…: a program that is not Python loads that library of it by dlopen,
 * has it execute the script, and unloads it, so often; says each time whether that is gone then.
 * If more than once, two threads that have nothing to do with it wake each other meanwhile.
 */
#include "program.h"

static sem_t turn[2];
static atomic_bool over;

static void need(bool done, const char *what)
{
    if (done)
        return;
    const char *why = dlerror();
    fprintf(stderr, "embeds: %s: %s\n", what, why ? why : "");
    exit(100);
}

static void *play(void *arg)
{
    sem_t *own = arg, *other = own == turn ? turn + 1 : turn;
    while (!over) {
        sem_wait(own);
        usleep(500); /* so that the trace is not full of that */
        sem_post(other);
    }
    sem_post(other);
    return NULL;
}

static int execute(const char *library, int argc, char **argv)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    need(handle, "dlopen");
    int (*run)(int, char **) = (int (*)(int, char **))dlsym(handle, "Py_BytesMain");
    need(run, "dlsym");
    int status = run(argc, argv);
    need(dlclose(handle) == 0, "dlclose");
    puts(dlopen(library, RTLD_NOW | RTLD_NOLOAD) ? "stays" : "gone");
    fflush(stdout);
    return status;
}

int main(int argc, char **argv)
{
    pthread_t player[2];
    int status = 0;
    need(argc > 3, "which library, how often, what?");
    const char *library = argv[1];
    int rounds = atoi(argv[2]), players = rounds > 1 ? 2 : 0;
    argv[2] = argv[0]; /* as Python wants it */
    for (int i = 0; i < 2; i++)
        sem_init(&turn[i], 0, !i);
    for (int i = 0; i < players; i++)
        pthread_create(&player[i], NULL, play, &turn[i]);
    for (int i = 0; i < rounds && !status; i++)
        status = execute(library, argc - 2, argv + 2);
    over = true;
    for (int i = 0; i < players; i++)
        pthread_join(player[i], NULL);
    return status;
}
