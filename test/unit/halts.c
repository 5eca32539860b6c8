/*
 * The CPU quotas that gt_usage_halts (preload/process/read_usage.c) finds, in a made tree of files
 * as the root directory: version 2 of cgroups, version 1, and both. Skipped where chroot(2) is
 * refused.
 */
#include "check.h"

#include "preload/process/read_usage.h"
#include "preload/process/process_state.h"

#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS "/sys/fs/cgroup"

bool gt_process_had_threads(void)
{
    return false;
}

/* Writes a file of the tree, with the folders above it. */
static void put(const char *path, const char *text)
{
    char folder[256];
    for (const char *end = path + 1; (end = strchr(end, '/')); end++) {
        snprintf(folder, sizeof folder, ".%.*s", (int)(end - path), path);
        mkdir(folder, 0755);
    }
    snprintf(folder, sizeof folder, ".%s", path);
    FILE *f = fopen(folder, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", folder);
}

/* Writes a group of that version, with its quota and what it has done so far. */
static void put_group(int version, const char *group, const char *quota, int times, int us)
{
    const char *mount = version == 1 ? GROUPS "/cpu" : GROUPS;
    char path[256], text[256];
    snprintf(path, sizeof path, "%s%s/%s", mount, group,
             version == 1 ? "cpu.cfs_quota_us" : "cpu.max");
    if (quota)
        put(path, quota);
    snprintf(path, sizeof path, "%s%s/cpu.stat", mount, group);
    snprintf(text, sizeof text,
             version == 1 ? "nr_periods 99\nnr_throttled %d\nthrottled_time %d000\n"
                          : "usage_usec 99\nnr_periods 99\nnr_throttled %d\nthrottled_usec %d\n",
             times, us);
    put(path, text);
}

static void put_process(const char *groups)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/cgroup", gettid());
    put(path, groups);
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", gettid());
    put(path, "700 500 3\n");
}

/* A quota that is set later is found within 16 calls. */
static struct gt_halts_count count(void)
{
    struct gt_halts_count c;
    for (int i = 0; i < 16; i++) {
        c = (struct gt_halts_count){0};
        gt_usage_halts(&c);
        CHECK_EQ(c.queue_ns, 500);
    }
    return c;
}

static uint64_t expect(const char *groups, uint64_t times, uint64_t us)
{
    put_process(groups);
    gt_usage_after_fork(); /* forgets that there was a quota */
    struct gt_halts_count c = count();
    CHECK(c.throttled == times && c.throttled_ns == us * 1000,
          "%s: got %" PRIu64 " times, %" PRIu64 " ns", groups, c.throttled, c.throttled_ns);
    return c.group;
}

static void check_all(void)
{
    put_group(2, "", NULL, 0, 0); /* the root of version 2 has no quota */
    put_group(2, "/a", "max 100000\n", 1, 1000);
    put_group(2, "/a/b", "max 100000\n", 20, 20000);
    put_group(2, "/a/b/c", "max 100000\n", 300, 300000);
    expect("0::/a/b/c\n", 0, 0);

    put_group(2, "/a", "50000 100000\n", 1, 1000); /* two groups above, and set later */
    CHECK_EQ(count().throttled, 321);
    expect("0::/a/b/c\n", 321, 321000);
    expect("0::/a/b\n", 21, 21000);
    expect("0::/x\n", 0, 0);
    put_group(2, "/a/b/c", "10000 100000\n", 400, 400000); /* the tightest one */
    expect("0::/a/b/c\n", 421, 421000);
    put_group(2, "/a", "max 100000\n", 1, 1000);
    expect("0::/a/b\n", 0, 0);
    expect("0::/\n", 0, 0);

    put_group(2, "", "20000 100000\n", 7, 7000); /* a container's own root has one */
    expect("0::/\n", 7, 7000);

    put_group(1, "/d", "-1\n", 2, 2000);
    put_group(1, "/d/e", "5000\n", 30, 30000);
    uint64_t e = expect("4:cpu,cpuacct:/d/e\n0::/a\n", 32, 32000);
    uint64_t d = expect("4:cpu,cpuacct:/d\n0::/a\n", 0, 0);
    CHECK(e != d, "both groups are the same");
    expect("4:memory:/d/e\n0::/a\n", 8, 8000);
    expect("", 0, 0);
}

int main(void)
{
    char folder[] = "/tmp/halts-XXXXXX", command[64];
    int status;
    CHECK(mkdtemp(folder) && chdir(folder) == 0, "%s", folder);
    if (fork() == 0) {
        if (chroot(".") != 0 && (unshare(CLONE_NEWUSER) != 0 || chroot(".") != 0))
            exit(77);
        check_all();
        exit(0);
    }
    wait(&status);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}
