"""What `gotrace why` says of programs that are slow for a reason which is known."""

import json
import os
import re

import pytest

from lib import ROOT, proc

GOTRACE = ROOT / "build/gotrace"
TRIES = 5
INTERPRETED = """
import threading
def work():
    s = 0
    for i in range(1000000): s += i * i
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""
# Taking a job takes 1 ms with the queue's lock held, doing it 0.5 ms.
QUEUE = """
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>
using namespace std::chrono_literals;
class JobQueue {
    std::mutex lock_;
    std::deque<int> jobs_ = std::deque<int>(100);

public:
    bool take()
    {
        std::lock_guard<std::mutex> guard(lock_);
        std::this_thread::sleep_for(1ms);
        if (jobs_.empty())
            return false;
        jobs_.pop_front();
        return true;
    }
};
static JobQueue queue;
int main()
{
    std::vector<std::thread> pool;
    for (int i = 0; i < 4; i++)
        pool.emplace_back([] { while (queue.take()) std::this_thread::sleep_for(500us); });
    for (auto &thread : pool)
        thread.join();
}
"""


def why(trace):
    return json.loads(proc.run([GOTRACE, "why", "--json", trace], timeout=60).ok().stdout)


@pytest.mark.foreign
def test_python_and_its_lock(traced):
    """One of four computes at a time: they pass its interpreter's lock (GIL) around. Who has it may have no CPU."""
    result = traced(["/usr/bin/python3", "-c", INTERPRETED], env={"GOTRACE_SCHED": "on"}).ok()
    if "does not let this user watch threads" in result.stderr:
        pytest.skip("perf_event_open(2) is not allowed here")
    said = why(result.trace)
    (finding,) = (f for f in said["findings"] if f["finding"] == "serialised_pool")
    assert re.match(r"Serialised: of 4 threads \S+, 1\.\d+ do something at a time; ", finding["text"]), finding
    assert "take_gil" in finding["text"] or "pthread_cond_timedwait" in finding["text"], finding  # without its symbols


@pytest.mark.measured
def test_pigz_with_one_thread(traced, tmp_path):
    """Nothing is wrong but that it computes alone."""
    (tmp_path / "data").write_bytes(os.urandom(8 << 20))
    said = why(traced(["pigz", "-p1", "-k", tmp_path / "data"]).ok().trace)
    assert not said["findings"] and said["threads"] == 1, said["findings"]
    runs = sum(row["ns"] for row in said["path"]["rows"] if row["kind"] == "running")
    assert runs > 0.7 * said["path"]["ns"]
    assert re.match(r"running in pigz|running in deflate", said["what_if"][0]["name"]), said["what_if"]


@pytest.mark.measured
def test_a_pool_whose_queue_is_its_limit(traced, tmp_path):
    """100 jobs of 1 ms with the lock make 100 ms; without it a fourth of 1.5 ms each. Of some runs one is like that:
    where others have the CPUs, main may take longer to begin."""
    program = proc.compile(QUEUE, tmp_path / "queue", "-g", compiler="g++")

    def first_said():
        said = why(traced([program]).ok().trace)
        (finding,) = (f for f in said["findings"] if f["finding"] == "lock_held_across_io")
        assert "queue is held" in finding["text"] and "JobQueue::take" in finding["text"], finding
        return said["what_if"][0]

    firsts = []
    while len(firsts) < TRIES:
        firsts.append(first_said())
        if firsts[-1].get("lock") == "queue":
            break
    assert firsts[-1]["change"] == "free_lock" and 0.5 < firsts[-1]["gain"] < 0.75, firsts
