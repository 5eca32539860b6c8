// The scoped annotations of gotrace.h; test/integration/test_annotations.py knows what there is.
#include "../../preload/gotrace.h"

#include <stdexcept>
#include <thread>

static void compute(gotrace_task task, bool fail)
{
    gotrace::region region("compute", task);
    if (fail)
        throw std::runtime_error("unwound");
}

int main()
{
    gotrace::task task("request");
    std::thread thread([&task] {
        gotrace::task part("part", task);
        compute(part, false);
    });
    thread.join();
    try {
        gotrace::region outer("outer");
        compute(task, true);
    } catch (const std::runtime_error &error) {
        gotrace_log(task, "error", error.what());
    }
}
