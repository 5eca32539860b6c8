/* See idle_line.h. */
#include "idle_line.h"

#include "call_places.h"
#include "table.h"

#include "encoder/base/sort.h"
#include "scripts/tool/json.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <stdlib.h>

GT_ORDER(by_ns, struct gt_idle_place, GT_DOWN(ns))

static void put_sum(const struct gt_idle_sum *sum)
{
    gt_json_open("idle", '{');
    gt_json_number("count", sum->count);
    gt_json_number("total_ns", sum->ns);
    gt_table_begin("places");
    for (size_t i = 0; i < sum->places; i++) {
        gt_row_begin();
        gt_cell_ns("total_ns", NULL, 0, sum->place[i].ns);
        gt_cell_place(NULL, sum->place[i].stack);
        gt_row_end();
    }
    gt_table_end();
    gt_json_close('}');
}

static void print_sum(const struct gt_idle_sum *sum)
{
    enum { SHOWN = 3 };
    printf("idle: %llu waits, %s, where threads come back to wait for work: ",
           (unsigned long long)sum->count, gt_duration(sum->ns));
    for (size_t i = 0; i < sum->places && i < SHOWN; i++) {
        printf("%s", i ? ", " : "");
        gt_print_place(gt_leaf_of(sum->place[i].stack), gt_site_of(sum->place[i].stack));
    }
    if (sum->places > SHOWN)
        printf(" and %zu more places", sum->places - SHOWN);
    puts(" (--idle=none: as other waits)");
}

void gt_idle_sum_print(struct gt_idle_sum *sum)
{
    if (sum->count)
        qsort(sum->place, sum->places, sizeof *sum->place, by_ns);
    if (gt_report_json)
        put_sum(sum);
    else if (sum->count)
        print_sum(sum);
}
