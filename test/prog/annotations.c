/*
 * Tasks, regions and logs through gotrace.h, as they are meant. Prints how many of each there were,
 * and the time of all together, least and most.
 */
#include "program.h"
#include "../../preload/gotrace.h"

#define REQUESTS 5

static struct row {
    const char *kind, *name;
    int count;
    uint64_t least, most;
} rows[] = {{.kind = "task", .name = "request"},   {.kind = "task", .name = "query"},
            {.kind = "region", .name = "parse"},   {.kind = "region", .name = "wait for answer"},
            {.kind = "region", .name = "compute"}, {.kind = "region", .name = "outer"}};

/* Times before and after its begin and its end. */
static void add(const char *name, const uint64_t at[4])
{
    struct row *r = rows;
    while (strcmp(r->name, name) != 0)
        r++;
    r->count++;
    r->least += at[2] - at[1];
    r->most += at[3] - at[0];
}

static void spend(int ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000l}, NULL);
}

static struct {
    sem_t asked, done;
    gotrace_task request;
    uint64_t at[4];
} job;

static void query(gotrace_task request)
{
    uint64_t at[4] = {now_ns()};
    gotrace_task task = gotrace_task_begin(request, "query");
    at[1] = now_ns();
    gotrace_region region = gotrace_region_begin(task, "compute");
    uint64_t began = now_ns();
    spend(60);
    at[2] = now_ns();
    gotrace_region_end(region);
    add("compute", (uint64_t[]){at[1], began, at[2], now_ns()});
    at[2] = now_ns();
    gotrace_task_end(task);
    at[3] = now_ns();
    add("query", at);
}

static void *worker(void *unused)
{
    for (int i = 0; i < REQUESTS; i++) {
        sem_wait(&job.asked);
        query(job.request);
        gotrace_log(job.request, "answer", "ready");
        job.at[2] = now_ns();
        gotrace_task_end(job.request);
        job.at[3] = now_ns();
        sem_post(&job.done);
    }
    return unused;
}

static void spend_in(gotrace_task task, const char *name, int ms)
{
    uint64_t at[4] = {now_ns()};
    gotrace_region region = gotrace_region_begin(task, name);
    at[1] = now_ns();
    spend(ms);
    at[2] = now_ns();
    gotrace_region_end(region);
    at[3] = now_ns();
    add(name, at);
}

static void request(void)
{
    job.at[0] = now_ns();
    job.request = gotrace_task_begin(0, "request");
    job.at[1] = now_ns();
    spend_in(job.request, "parse", 40);
    uint64_t at[4] = {now_ns()};
    gotrace_region region = gotrace_region_begin(job.request, "wait for answer");
    at[1] = now_ns();
    sem_post(&job.asked);
    sem_wait(&job.done);
    at[2] = now_ns();
    gotrace_region_end(region);
    at[3] = now_ns();
    add("wait for answer", at);
    add("request", job.at);
}

int main(void)
{
    pthread_t thread;
    sem_init(&job.asked, 0, 0);
    sem_init(&job.done, 0, 0);
    pthread_create(&thread, NULL, worker, NULL);
    uint64_t at[4] = {now_ns()};
    gotrace_region outer = gotrace_region_begin(0, "outer");
    at[1] = now_ns();
    for (int i = 0; i < REQUESTS; i++)
        request();
    at[2] = now_ns();
    gotrace_region_end(outer);
    at[3] = now_ns();
    add("outer", at);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%s\t%s\t%d\t%llu\t%llu\n", rows[i].kind, rows[i].name, rows[i].count,
               (unsigned long long)rows[i].least, (unsigned long long)rows[i].most);
    return 0;
}
