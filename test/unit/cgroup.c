/* The path of a cgroup in /proc/PID/cgroup (encoder/base/cgroup.h), in versions 1 and 2. */
#include "encoder/base/cgroup.h"

#include "check.h"

static void expect(const char *text, const char *controller, const char *path)
{
    size_t n = 0;
    const char *got = gt_cgroup_path(text, controller, &n);
    CHECK(path ? got && n == strlen(path) && strncmp(got, path, n) == 0 : !got,
          "of \"%s\" in \"%s\": got \"%.*s\"", controller, text, (int)n, got ? got : "");
}

static const char both[] = "12:freezer:/f\n"
                           "11:cpu,cpuacct:/a:b/0::/c\n"
                           "10:cpuset:/set\n"
                           "1:name=systemd:/init.scope\n"
                           "0::/user.slice\n";

int main(void)
{
    expect(both, "freezer", "/f");
    expect(both, "cpu", "/a:b/0::/c");
    expect(both, "cpuacct", "/a:b/0::/c");
    expect(both, "cpuset", "/set");
    expect(both, "", "/user.slice");
    expect(both, "memory", NULL);
    expect(both, "systemd", NULL);
    expect("0::/\n", "", "/");
    expect("0::/without-end", "", "/without-end");
    expect("0::/x\n", "cpu", NULL);
    expect("4:cpu:/x\n", "", NULL);
    expect("", "", NULL);
    expect("\n\nrubbish\n7\n7:cpu\n", "cpu", NULL);
    return 0;
}
