#!/usr/bin/env python3
"""slow-questions: nobody asks for an array of as many tasks as its leader has steps, names it 256 times over, asks what
takes longest, and hangs up; an administrator asks the like. Each is answered in full or told that it took too long; meanwhile
steps are launched, records are stored and others get their answers.
TCCL_ARRAY, TCCL_RECORDS: steps of the array, records in all; testsuite/bench/run questions has many.
# level: quick
"""
import json
import os
import sqlite3
import sys
import time

from attack import NOBODY, Target, check, end_forked, frame, record, verdict

STEPS = int(os.environ.get("TCCL_ARRAY", 3000))
RECORDS = int(os.environ.get("TCCL_RECORDS", 0))
SECONDS = 20 if RECORDS else 1  # of each kind of question, while others are timed
ARRAY, WIDE = 100000, 200000
ADMIN = 4711  # a uid in Admins=
NODES = [f"x{i}" for i in range(1000)]


def array():
    """An array whose first task has the array's id, and whose every task says that it is one of it."""
    for i in range(STEPS):
        yield record(ARRAY, step=i, job_name="leader")
        yield record(ARRAY + 1 + i, array_job_id=ARRAY, array_task_id=i, start=int(time.time()) - 5000)


def wide():
    """Steps on many nodes: to look for others among them takes long."""
    for i in range(6000):
        many = {"nodes": "n[1-16384]", "n_nodes": 16384, "first_node": "n1", "start": int(time.time()) - 9000}
        yield record(WIDE + i, uid=0, user="root", **many)
        yield record(WIDE + 10000 + i, **many)


def multiply(target):
    """As many records as are wanted, by copies of those there are, a second apart, of jobs of their own."""
    with sqlite3.connect(f"{target.folder}/n1/state/records.db") as store:
        columns = [row[1] for row in store.execute("PRAGMA table_info(records)")][1:]
        values = ", ".join({"job": "1000000 + n.i", "start": f"{int(time.time())} - 30 * 86400 + n.i * 30 * 86400 / {RECORDS}",
                            "het_job": "0", "array_job_id": "0"}.get(name, name) for name in columns)
        there = store.execute("SELECT count(*) FROM records").fetchone()[0]
        store.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                      f" INSERT INTO records ({', '.join(columns)}) SELECT {values} FROM n"
                      " JOIN records ON id = (n.i * 2654435761) % ? + 1", (RECORDS - there, there))
        print(store.execute("SELECT count(*), count(DISTINCT uid) FROM records").fetchone(), flush=True)


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
    report("all of one's records", lambda: asker.ask("summary"))
    report("a page that finds nothing", lambda: asker.ask("query", names=["none"]))
    answer = asker.ask("summary", nodes=NODES)
    check("took longer than 1 s" in answer.get("text", ""), f"what takes long is given up: {answer.get('text')}")
    asker.hang_up()
    if check.failures:
        sys.exit(1)


def report(what, ask):
    begun = time.monotonic()
    answer = ask()
    print(f"{what}: {(time.monotonic() - begun) * 1e3:.0f} ms: {answer.get('text') or answer['type']}", flush=True)
    return answer


def as_admin(target):
    """As root."""
    asker = Asker(target)
    report("root: all records", lambda: asker.ask("summary"))
    report("root: a page that finds nothing", lambda: asker.ask("query", names=["none"]))
    report("root: an array, named in 256 ways",
           lambda: asker.ask("query", jobs=[{"array_job": ARRAY, "first": 0, "last": STEPS + i} for i in range(256)]))
    answer = report("root: all records on one of 1,000 nodes", lambda: asker.ask("summary", nodes=NODES))
    check("took longer than 10 s" in answer.get("text", ""), "what takes root too long is given up")
    asker.hang_up()


# What takes longest: of all kinds at once.
HEAVY = [("query", {"jobs": [{"array_job": ARRAY, "first": 0, "last": STEPS + i} for i in range(256)]}),
         ("query", {"jobs": [{"job": ARRAY}]}), ("summary", {"nodes": NODES}), ("summary", {})]


def ask_on(target, kind, given):
    asker = Asker(target)
    while True:
        asker.ask(kind, **given)


def timed(ask):
    begun = time.monotonic()
    ask()
    return (time.monotonic() - begun) * 1e3


def time_others(target, what):
    """How long a step waits for its ring, a node until its record is stored, and root for its answer about one job."""
    beside, peer, job = Asker(target), target.tcp(), int(time.time()) - 1000000
    took = {"a JOIN": [], "a record": [], "another user's question": []}
    until = time.monotonic() + SECONDS
    while time.monotonic() < until or len(took["a JOIN"]) < 5:
        job += 1
        took["a JOIN"].append(timed(target.join))
        took["a record"].append(timed(lambda: stored.append(target.tell(peer, record(job, uid=0, user="root", start=job)))))
        took["another user's question"].append(timed(lambda: found.append(beside.ask("query", jobs=[{"job": job}])["records"])))
        time.sleep(0.02)
    for each, times in took.items():
        times.sort()
        print(f"{what}: {each} takes {times[len(times) // 2]:.0f} ms, of 100 all but one less than "
              f"{times[-1 - len(times) // 100]:.0f}, at most {times[-1]:.0f} ({len(times)} times)", flush=True)
    beside.hang_up()
    peer.close()


stored, found = [], []


def beside(target):
    """Each question of the heavy ones by two connections of nobody, or by two of root, all the time."""
    time_others(target, "nobody asks")
    for who, uid in (("one user asks", NOBODY), ("an administrator asks", ADMIN))[:2 if RECORDS else 1]:
        asking = [target.fork(ask_on, target, kind, given, uid=uid) for kind, given in HEAVY * 2]
        time.sleep(0.3)
        time_others(target, who)
        end_forked(asking)
        target.pids = [pid for pid in target.pids if pid not in asking]
    check(stored and all(stored), f"{len(stored)} records were stored meanwhile")
    check(found and all(found), "and found at once")


def as_others(target):
    """While root's question is under way, which may take 10 s: a record, and a question of another user."""
    slow, beside = Asker(target), Asker(target)
    slow.send("summary", nodes=NODES)
    time.sleep(0.2)
    told = target.tcp()
    told.sendall(frame(target.credential({"type": "record", "records": [record(77, uid=0)]})))
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
    target = Target(records=[*array(), *wide()], conf=[f"Admins={ADMIN}"])
    if RECORDS:
        multiply(target)
    with target:
        beside(target)
        if RECORDS:
            as_admin(target)
        asked = target.fork(as_user, target)
        check(target.wait(asked) == 0, "nobody's questions")
        as_others(target)
    verdict()


main()
