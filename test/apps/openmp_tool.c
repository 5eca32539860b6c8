/* A tool of somebody else's, which an OpenMP library finds in the program or by OMP_TOOL_LIBRARIES.
 */
#include <stdint.h>
#include <stdio.h>

static int initialize(void (*(*lookup)(const char *name))(void), int device, void *data)
{
    (void)device, (void)data;
    printf("tool %s\n", lookup("ompt_set_callback") ? "is asked" : "has nothing to ask");
    return 1;
}

static void finalize(void *data)
{
    (void)data;
}

void *ompt_start_tool(unsigned version, const char *library);

void *ompt_start_tool(unsigned version, const char *library)
{
    static struct {
        int (*initialize)(void (*(*)(const char *))(void), int, void *);
        void (*finalize)(void *);
        uint64_t data;
    } tool = {initialize, finalize, 0};
    (void)version, (void)library;
    return &tool;
}
