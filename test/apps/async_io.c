/* Waits for what does not come, by libaio and by liburing: 30 ms each. Says what the system lacks.
 */
#include "../prog/truth.h"

#include <libaio.h>
#include <liburing.h>

static void by_aio(void)
{
    io_context_t context = NULL;
    struct io_event event;
    struct timespec time = {0, 30 * MS};
    int error = io_setup(1, &context);
    if (error) {
        printf("no libaio: %s\n", strerror(-error));
        return;
    }
    uint64_t begin = now();
    int n = io_getevents(context, 1, 1, &event, &time);
    printf("io_getevents %d %llu\n", n, (unsigned long long)(now() - begin));
    io_destroy(context);
}

static void by_uring(void)
{
    struct io_uring ring;
    struct io_uring_cqe *cqe;
    struct __kernel_timespec time = {0, 30 * MS};
    int error = io_uring_queue_init(2, &ring, 0);
    if (error) {
        printf("no io_uring: %s\n", strerror(-error));
        return;
    }
    uint64_t begin = now();
    int result = io_uring_wait_cqe_timeout(&ring, &cqe, &time);
    printf("io_uring_wait_cqe_timeout %d %llu\n", result, (unsigned long long)(now() - begin));
    begin = now();
    io_uring_prep_timeout(io_uring_get_sqe(&ring), &time, 0, 0);
    result = io_uring_submit_and_wait(&ring, 1);
    printf("io_uring_submit_and_wait %d %llu\n", result, (unsigned long long)(now() - begin));
    io_uring_cq_advance(&ring, 1);
    begin = now();
    io_uring_prep_timeout(io_uring_get_sqe(&ring), &time, 0, 0);
    io_uring_submit(&ring);
    result = io_uring_wait_cqe(&ring, &cqe); /* inline, but for what waits */
    printf("__io_uring_get_cqe %d %llu\n", result, (unsigned long long)(now() - begin));
    io_uring_queue_exit(&ring);
}

int main(void)
{
    by_aio();
    by_uring();
    return 0;
}
