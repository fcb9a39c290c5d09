#!/usr/bin/env python3
"""slow-questions: nobody asks for an array of as many tasks as its leader has steps, names it 256 times over, asks what
takes longest, and hangs up. Each is answered in full or told that it took too long; meanwhile records are stored and
others get their answers.
# level: quick
"""
import json
import os
import sys
import time

from attack import Target, check, frame, record, verdict

STEPS = int(os.environ.get("TCCL_ARRAY", 3000))
ARRAY, WIDE = 100000, 200000
NODES = [f"x{i}" for i in range(1000)]


def array():
    """An array whose first task has the array's id, and whose every task says that it is one of it."""
    for i in range(STEPS):
        yield record(ARRAY, step=i, job_name="leader")
        yield record(ARRAY + 1 + i, array_job_id=ARRAY, array_task_id=i, start=int(time.time()) - 5000)


def wide():
    """Steps on many nodes: to look for others among them takes long."""
    for i in range(6000):
        yield record(WIDE + i, nodes="n[1-16384]", n_nodes=16384, start=int(time.time()) - 9000, uid=0, user="root")
        yield record(WIDE + 10000 + i, nodes="n[1-16384]", n_nodes=16384, start=int(time.time()) - 9000)


class Asker:
    """One connection that asks about records."""

    def __init__(self, target):
        self.peer = target.unix()
        self.stream = self.peer.makefile("rb")

    def send(self, kind, **given):
        self.peer.sendall(frame({"v": 1, "type": kind, "filter": given}))

    def hear(self):
        return json.loads(self.stream.read(int.from_bytes(self.stream.read(4), "big")))

    def ask(self, kind, **given):
        self.send(kind, **given)
        return self.hear()

    def all(self, **given):
        """The records of all pages. Returns how many there are, or what was said in place of them."""
        count, worst = 0, 0
        while given:
            begun = time.monotonic()
            answer = self.ask("query", **given)
            worst = max(worst, time.monotonic() - begun)
            if answer["type"] != "records":
                return answer["text"], worst
            count += len(answer["records"])
            given = answer["next"]
        return count, worst

    def hang_up(self):
        self.stream.close()
        self.peer.close()


def as_user(target):
    asker = Asker(target)
    jobs = [{"job": ARRAY}]
    count, worst = asker.all(jobs=jobs)
    print(f"an array of {STEPS} tasks, its leader of {STEPS} steps: worst page {worst * 1e3:.0f} ms", flush=True)
    check(count == 2 * STEPS, f"all of it is found: {count}")
    count, worst = asker.all(jobs=jobs * 256)
    print(f"named 256 times: worst page {worst * 1e3:.0f} ms", flush=True)
    check(count == 2 * STEPS, f"all of it is found: {count}")
    jobs = [{"array_job": ARRAY, "first": 0, "last": STEPS + i} for i in range(256)]
    found, worst = asker.all(jobs=jobs)
    print(f"named in 256 ways: worst page {worst * 1e3:.0f} ms: {found}", flush=True)
    answer = asker.ask("summary", nodes=NODES)
    check("took longer than 1 s" in answer.get("text", ""), f"what takes long is given up: {answer.get('text')}")
    asker.hang_up()
    if check.failures:
        sys.exit(1)


def as_others(target):
    """While root's question is under way, which may take 10 s: a record, and a question of another user."""
    slow, beside = Asker(target), Asker(target)
    slow.send("summary", nodes=NODES)
    time.sleep(0.2)
    told = target.tcp()
    told.sendall(frame(target.credential({"type": "record", "record": record(77, uid=0)})))
    head = told.recv(4)
    check(len(head) == 4, "a record is stored while a question is under way")
    check(beside.ask("query", jobs=[{"job": 77}]).get("records"), "and found by another one")
    slow.peer.setblocking(False)
    try:
        early = slow.peer.recv(1)
    except BlockingIOError:
        early = None
    check(early is None, "before the first one is answered")
    slow.hang_up()
    target.await_log("nobody waits for its answer")
    check(True, "which ends when its asker hangs up")


def main():
    with Target(records=[*array(), *wide()]) as target:
        asked = target.fork(as_user, target)
        check(target.wait(asked) == 0, "nobody's questions")
        as_others(target)
    verdict()


main()
