/* A thread with the name that it is given. */
#include "../../prog/program.h"
static void *thread(void *name)
{
    prctl(PR_SET_NAME, name);
    usleep(2000);
    return name;
}
int main(int argc, char **argv)
{
    pthread_t id;
    pthread_create(&id, NULL, thread, argv[argc - 1]);
    return pthread_join(id, NULL);
}
