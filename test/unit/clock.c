/* The trace clock against CLOCK_MONOTONIC: never back, and its frequency right within 0.1 %. */
#include "encoder/base/clock.h"

#include "check.h"

int main(void)
{
    gt_clock_init();
    uint64_t ns0 = gt_clock_monotonic_raw(), t0 = gt_clock_now(), last = t0;
    CHECK(t0 > 0);
    while (gt_clock_monotonic_raw() - ns0 < 200000000) {
        uint64_t t = gt_clock_now();
        CHECK(t >= last, "from %" PRIu64 " to %" PRIu64, last, t);
        last = t;
    }
    uint64_t hz = gt_clock_hz();
    double seconds = (double)(gt_clock_now() - t0) / (double)hz;
    double truth = (double)(gt_clock_monotonic_raw() - ns0) / 1e9;
    CHECK(seconds > truth * 0.999 && seconds < truth * 1.001, "%f s for %f s", seconds, truth);
    CHECK_EQ(gt_clock_hz(), hz); /* one frequency for a trace */
    uint64_t ms = gt_clock_units(1000000);
    CHECK(ms > hz / 1100 && ms < hz / 900, "%" PRIu64 " units a ms at %" PRIu64 " Hz", ms, hz);
    return 0;
}
