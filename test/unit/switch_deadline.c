/* Who switches generations in the program's own thread does not wait for ever for a writer that
 * stays inside. */
#include "check.h"

#include "encoder/base/clock.h"
#include "encoder/thread/room.h"
#include "encoder/thread/switch.h"

int main(void)
{
    static struct gt_writer stays, leaves;
    static struct gt_lock side;
    gt_clock_init();
    gt_switch_init();
    gt_writer_register(&stays);
    gt_writer_register(&leaves);
    atomic_store(&gt_gen.current, 1);
    CHECK(gt_writer_pin(&stays) && gt_writer_pin(&leaves), "generation 1");
    gt_writer_unpin(&leaves);
    gt_switch_set_deadline(gt_clock_monotonic_raw() + 100000000);
    gt_lock(&side, GT_RANK_SIDE);
    gt_switch_all(0, 0, NULL);
    gt_unlock(&side);
    CHECK(gt_writer_gone(&stays) && !gt_writer_gone(&leaves), "given up");
    CHECK_EQ(gt_lost_count(), 1);
    return 0;
}
