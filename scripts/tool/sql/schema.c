/* See schema.h. */
#include "schema.h"

const struct gt_sql_definition gt_sql_tables[GT_SQL_TABLES] = {
#define GT_TABLE(name, columns, text) \
    {#name, false, columns, "CREATE TABLE " #name " (\n" text ")"},
#define GT_EVENTS(name, columns, text) \
    {#name, true, columns, "CREATE TABLE " #name " (\n  id INTEGER PRIMARY KEY,\n" text ")"},
#include "tables.def"
#undef GT_EVENTS
#undef GT_TABLE
};

/* Views first sum up by stack id, then by text: numbers sort faster than texts. */
const char gt_sql_views[] =
    "CREATE VIEW wait_pieces AS\n"
    "SELECT id AS wait_id, thread_id, kind, reason, begin_ns, ns, ended, stack_id, waker_id,\n"
    "       waker_stack_id, delay_ns, lock_id, holder_id, holder\n"
    "FROM waits WHERE pieces = 1 UNION ALL\n"
    "SELECT wait_id, thread_id, kind, reason, p.begin_ns, p.ns, p.ended, stack_id, p.waker_id,\n"
    "       p.waker_stack_id, p.delay_ns, lock_id, p.holder_id, p.holder\n"
    "FROM pieces AS p JOIN waits ON waits.id = wait_id;\n"

    "CREATE VIEW wakeups AS\n"
    "SELECT wait_id, begin_ns + ns AS at_ns, waker_id, waker_stack_id, thread_id, kind,\n"
    "       ns AS waited_ns, delay_ns\n"
    "FROM wait_pieces WHERE waker_id IS NOT NULL;\n"

    "CREATE VIEW waits_by_place AS\n"
    "SELECT kind, coalesce(place, '(no stack)') AS place, sum(n) AS count, sum(sum_ns) AS "
    "total_ns,\n"
    "       sum(sum_ns) / sum(n) AS average_ns, max(most_ns) AS longest_ns\n"
    "FROM (SELECT kind, stack_id, count(*) AS n, sum(ns) AS sum_ns, max(ns) AS most_ns\n"
    "      FROM waits GROUP BY kind, stack_id)\n"
    "LEFT JOIN stacks ON stacks.id = stack_id GROUP BY 1, 2 ORDER BY total_ns DESC;\n"

    "CREATE VIEW idle_waits AS\n"
    "SELECT waits.* FROM waits JOIN idle_stacks USING (stack_id, kind) WHERE NOT never_idle;\n"

    "CREATE VIEW wait_percentiles AS\n"
    "WITH ranked AS (\n"
    "  SELECT kind, coalesce(place, '(no stack)') AS place, ns,\n"
    "         row_number() OVER (PARTITION BY kind, place ORDER BY ns) - 1 AS below,\n"
    "         count(*) OVER (PARTITION BY kind, place) AS n\n"
    "  FROM waits LEFT JOIN stacks ON stacks.id = stack_id)\n"
    "SELECT kind, place, n AS count, max(ns * (below = n / 2)) AS p50_ns,\n"
    "       max(ns * (below = n * 95 / 100)) AS p95_ns,\n"
    "       max(ns * (below = n * 99 / 100)) AS p99_ns, max(ns) AS longest_ns\n"
    "FROM ranked GROUP BY kind, place ORDER BY sum(ns) DESC;\n"

    "CREATE VIEW wait_lengths AS\n"
    "SELECT kind, coalesce(place, '(no stack)') AS place,\n"
    "       CASE WHEN ns < 1000 THEN 0 WHEN ns >= 10000000000 THEN 10000000000\n"
    "            ELSE CAST(substr('10000000000', 1, length(ns)) AS INTEGER) END AS from_ns,\n"
    "       count(*) AS count\n"
    "FROM waits LEFT JOIN stacks ON stacks.id = stack_id GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;\n"

    "CREATE VIEW calls_by_place AS\n"
    "SELECT coalesce(place, '(no stack)') AS place, sum(n) AS count, sum(sum_ns) AS total_ns,\n"
    "       sum(sum_ns) / sum(n) AS average_ns, max(most_ns) AS longest_ns\n"
    "FROM (SELECT stack_id, count(*) AS n, sum(ns) AS sum_ns, max(ns) AS most_ns\n"
    "      FROM calls GROUP BY stack_id)\n"
    "LEFT JOIN stacks ON stacks.id = stack_id GROUP BY 1 ORDER BY total_ns DESC;\n"

    "CREATE VIEW longest_waits AS\n"
    "SELECT waits.id AS wait_id, kind, waits.begin_ns, ns, threads.tid,\n"
    "       coalesce(nullif(threads.name, ''), threads.routine) AS thread, stacks.place,\n"
    "       waker.tid AS waker_tid, coalesce(nullif(waker.name, ''), waker.routine) AS waker,\n"
    "       woken.place AS waker_place, locks.name AS lock\n"
    "FROM waits JOIN threads ON threads.id = thread_id LEFT JOIN stacks ON stacks.id = "
    "waits.stack_id\n"
    "LEFT JOIN threads AS waker ON waker.id = waker_id\n"
    "LEFT JOIN stacks AS woken ON woken.id = waker_stack_id\n"
    "LEFT JOIN locks ON locks.id = lock_id ORDER BY ns DESC;\n"

    "CREATE VIEW lock_holders AS\n"
    "SELECT locks.name AS lock, coalesce(trim(threads.name || ' ' || tid), holder) AS holder,\n"
    "       sum(n) AS waits, sum(sum_ns) AS waited_ns, max(most_ns) AS longest_ns\n"
    "FROM (SELECT lock_id, holder_id, holder, count(*) AS n, sum(ns) AS sum_ns, max(ns) AS "
    "most_ns\n"
    "      FROM wait_pieces WHERE holder_id IS NOT NULL OR holder IS NOT NULL\n"
    "      GROUP BY lock_id, holder_id, holder)\n"
    "JOIN locks ON locks.id = lock_id LEFT JOIN threads ON threads.id = holder_id\n"
    "GROUP BY 1, 2 ORDER BY waited_ns DESC;\n"

    "CREATE VIEW hold_times AS\n"
    "SELECT locks.name AS lock, function, count(*) AS count, sum(ns) AS total_ns,\n"
    "       sum(ns) / count(*) AS average_ns, max(ns) AS longest_ns\n"
    "FROM holds JOIN locks ON locks.id = lock_id GROUP BY 1, 2 ORDER BY total_ns DESC;\n"

    "CREATE VIEW thread_time AS\n"
    "SELECT id AS thread_id, tid, name, end_ns - start_ns AS lived_ns, running_ns, sched_ns,\n"
    "       sync_ns, network_ns, syscall_ns, sleep_ns, other_ns, unseen_ns FROM threads;\n"

    "CREATE VIEW wakers AS\n"
    "SELECT waker.tid AS waker_tid, waker.name AS waker, coalesce(place, '(no stack)') AS place,\n"
    "       woken.tid AS woken_tid, woken.name AS woken, n AS count, waited_ns, delay_ns\n"
    "FROM (SELECT waker_id, waker_stack_id, thread_id, count(*) AS n, sum(ns) AS waited_ns,\n"
    "             sum(delay_ns) AS delay_ns\n"
    "      FROM wait_pieces WHERE waker_id IS NOT NULL GROUP BY waker_id, waker_stack_id, "
    "thread_id)\n"
    "JOIN threads AS waker ON waker.id = waker_id JOIN threads AS woken ON woken.id = thread_id\n"
    "LEFT JOIN stacks ON stacks.id = waker_stack_id ORDER BY count DESC;\n"

    "CREATE VIEW sched_delays AS\n"
    "SELECT waits.id AS wait_id, waits.begin_ns, ns, tid, name AS thread, reason, place\n"
    "FROM waits JOIN threads ON threads.id = thread_id LEFT JOIN stacks ON stacks.id = "
    "waits.stack_id\n"
    "WHERE kind = 'sched' ORDER BY ns DESC;\n"

    "CREATE VIEW parallelism AS\n"
    "WITH changes(at_ns, n) AS (SELECT begin_ns, 1 FROM running UNION ALL\n"
    "                           SELECT begin_ns + ns, -1 FROM running),\n"
    "     steps AS (SELECT at_ns, sum(n) AS n FROM changes GROUP BY at_ns)\n"
    "SELECT at_ns, lead(at_ns, 1, (SELECT duration_ns FROM trace)) OVER (ORDER BY at_ns) - at_ns "
    "AS ns,\n"
    "       sum(n) OVER (ORDER BY at_ns) AS running FROM steps;\n"

    "CREATE VIEW task_times AS\n"
    "SELECT name, count(*) AS count, sum(ns) AS total_ns, sum(ns) / count(*) AS average_ns,\n"
    "       max(ns) AS longest_ns FROM tasks WHERE ended GROUP BY name ORDER BY total_ns DESC;\n"

    "CREATE VIEW samples_by_function AS\n"
    "SELECT what AS function, sum(n) AS samples\n"
    "FROM (SELECT stack_id, count(*) AS n FROM samples GROUP BY stack_id)\n"
    "JOIN stacks ON stacks.id = stack_id GROUP BY what ORDER BY samples DESC;\n"

    "CREATE VIEW stack_lines AS\n"
    "SELECT stack_id, depth, function, file, line\n"
    "FROM stack_frames JOIN frames ON frames.id = frame_id;\n";
