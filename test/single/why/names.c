/* One thread sleeps in a function that two others call, all with names that fill lines. */
#include <unistd.h>

static void __attribute__((noinline)) wait_for_the_device(useconds_t us)
{
    usleep(us);
}

static void __attribute__((noinline)) read_the_index_of_all_regions(void)
{
    wait_for_the_device(9000);
}

static void __attribute__((noinline)) write_the_table_of_all_regions(void)
{
    wait_for_the_device(1000);
}

int main(void)
{
    for (int i = 0; i < 20; i++) {
        read_the_index_of_all_regions();
        write_the_table_of_all_regions();
    }
    return 0;
}
