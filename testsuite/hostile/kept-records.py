#!/usr/bin/env python3
"""kept-records: steps are launched, and records delivered, while all tccld are killed (kill -9, or SIGTERM) at random moments, and
while the disk of the one that keeps the records is full or its store is broken: each that was answered ok is found
afterwards, each launch is on record or counted as lost, in the ledger, in metrics and for whoever asks for records.
TCCL_SEED repeats it, TCCL_LAUNCHES says how many of each.
# level: quick
"""
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time

from attack import Target, check, daemons, record, verdict

SEED = int(os.environ.get("TCCL_SEED", random.randrange(1 << 30)))
COUNT = int(os.environ.get("TCCL_LAUNCHES", 1000))
SENDERS = 4
LAUNCHERS = 2  # of each node
draw = random.Random(SEED)
print(f"TCCL_SEED={SEED}", flush=True)


class Senders:
    """Peers that tell n1 of records, each until it is answered ok, or only once."""

    def __init__(self, target, jobs, again=True, count=SENDERS, **members):
        self.target, self.jobs, self.again, self.members = target, iter(jobs), again, members
        self.taken, self.refused, self.lock = [], 0, threading.Lock()
        self.threads = [threading.Thread(target=self.send, daemon=True) for _ in range(count)]  # they end with the test
        for thread in self.threads:
            thread.start()

    def next(self):
        with self.lock:
            return next(self.jobs, None)

    def send(self):
        peer, job = None, self.next()
        while job is not None:
            try:
                peer = peer or self.target.tcp()
                taken = self.target.tell(peer, record(job, **self.members))
            except OSError:
                taken = None
            if taken is None:
                peer = None
                time.sleep(0.02)
                continue
            with self.lock:
                if taken:
                    self.taken.append(job)
                self.refused += not taken
            if taken or not self.again:
                job = self.next()
            else:
                time.sleep(0.05)

    def end(self):
        for thread in self.threads:
            thread.join()
        return set(self.taken)

    def alive(self):
        return any(thread.is_alive() for thread in self.threads)


def on_record(target):
    return {each["job"] for each in target.records()}


class Launchers(Senders):
    """Steps of a node: JOIN, without a ring or with one. Those that were answered are taken; others are not tried again."""

    def __init__(self, target, node, jobs):
        self.node = node
        super().__init__(target, jobs, count=LAUNCHERS)

    def send(self):
        job, pause = self.next(), random.Random(SEED + self.node)
        while job is not None:
            time.sleep(pause.uniform(0, 0.03))
            try:
                answered = launch(self.target, self.node, job, "on" if job % 3 == 0 else "off")
            except OSError:
                answered = False
            if answered:
                with self.lock:
                    self.taken.append(job)
            else:
                time.sleep(0.02)
            job = self.next()


def weather(target, senders, ballast):
    """tccld end and start again at random moments, the disk is full and has room again. Returns how often what happened."""
    came = {"kill -9": 0, "SIGTERM": 0, "full": 0}
    while any(each.alive() for each in senders):
        time.sleep(draw.uniform(0, 0.15))
        if draw.random() < 0.15:
            came["full"] += ballast.toggle()
            continue
        node, hard = draw.choice((1, 2)), draw.random() < 0.75
        target.stop(node, signal.SIGKILL if hard else signal.SIGTERM)
        came["kill -9" if hard else "SIGTERM"] += 1
        target.start_again(node)
    ballast.remove()
    return came


def storm(target, ballast):
    """All of that at the same time."""
    first = {1: 500001, 2: 500001 + COUNT}
    launchers = [Launchers(target, node, range(first[node], first[node] + COUNT // 2)) for node in (1, 2)]
    senders = Senders(target, range(1, COUNT + 1))
    print(weather(target, [senders, *launchers], ballast), flush=True)
    taken = senders.end()
    launched = set().union(*(each.end() for each in launchers))
    counted = until(lambda: settled(target, launched))
    found = on_record(target)
    check(len(taken) == COUNT and not taken - found, f"{len(taken)} records answered ok: {len(taken - found)} missing")
    check(counted is not None and len(launched) > COUNT / 10,
          f"{COUNT} launches, {len(launched)} answered: {len(launched - found)} missing, {counted} are counted")


def settled(target, launched):
    """Once each launch is on record or counted as lost, and nothing waits: how many are counted; else False."""
    ledgers = [lost(target, 1), lost(target, 2)]
    counted = sum(ledger[1] for ledger in ledgers)
    waiting = any(ledger[0] for ledger in ledgers) or waiting_in(target, 1) or waiting_in(target, 2)
    return counted if not waiting and len(launched - on_record(target)) <= counted else False


def launch(target, node, job, mode="off"):
    """A step of a node, whose record goes to n1. Is it answered?"""
    key = {"cluster": "rig", "job": job, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}
    with target.unix(node) as peer:
        daemons.send(peer, {"type": "join", "key": key, "node": 0, "nodes": f"n{node}", "gres": [0, 1], "mode": mode, "uid": 0,
                            "gid": 0, "timeout_ms": 60000, "min_nodes": 0, "min_gpus": 0})
        return daemons.receive_bytes(peer) is not None


def launches(target, first, count, node=2):
    """Returns their jobs."""
    jobs = set(range(first, first + count))
    for job in jobs:
        launch(target, node, job)
    return jobs


class Ballast:
    """All the room of n1's StateDir."""

    def __init__(self, target):
        self.path = f"{target.folder}/n1/state/ballast"

    def fill(self):
        with open(self.path, "ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass

    def remove(self):
        if os.path.exists(self.path):
            os.unlink(self.path)

    def toggle(self):
        """Is it full now?"""
        if os.path.exists(self.path):
            self.remove()
            return False
        self.fill()
        return True


def waiting_in(target, node):
    """The records that wait in the outbox of a node."""
    path = f"{target.folder}/n{node}/state/outbox.db"
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as db:
            return [json.loads(record) for record, in db.execute("SELECT record FROM waiting")]
    except sqlite3.OperationalError:
        return []  # it is not there yet


def lost(target, node):
    """What the ledger of a node says: pending, lost."""
    with open(f"{target.folder}/n{node}/run/records") as file:
        return [int(each) for each in re.findall(r"(?:pending|lost) (\d+)", file.read())]


def ended_while_waiting(target):
    """n1 hangs, so the records of n2 wait; n2 gets SIGTERM, and later starts again: all are delivered."""
    target.tcclds[0].send_signal(signal.SIGSTOP)
    jobs, before = launches(target, 700001, 50), lost(target, 2)[1]
    target.stop(2, signal.SIGTERM)
    target.tcclds[0].send_signal(signal.SIGCONT)
    target.start_again(2)
    await_jobs(target, jobs, "queued when SIGTERM came")
    check(lost(target, 2) == [0, before], "none of them counts as lost")


def killed_while_waiting(target):
    """The same with SIGKILL: what is not found is counted, and whoever asks for records is told."""
    target.tcclds[0].send_signal(signal.SIGSTOP)
    jobs, before = launches(target, 710001, 50), lost(target, 2)[1]
    target.stop(2)
    target.tcclds[0].send_signal(signal.SIGCONT)
    target.start_again(2)
    until(lambda: len(jobs - on_record(target)) <= lost(target, 2)[1] - before)
    pending, count = lost(target, 2)
    missing = jobs - on_record(target)
    check(pending == 0 and 0 < count - before >= len(missing), f"SIGKILL: {len(missing)} of {len(jobs)} missing, {count - before} are counted")


def told(target):
    """What the ledgers of all nodes say is what whoever asks for records hears, and what metrics have."""
    counted = [lost(target, node)[1] for node in (1, 2)]
    check(until(lambda: said_lost(target)["records"] == sum(counted)), f"{sum(counted)} are lost, and n1 says so: {said_lost(target)}")
    check(said_lost(target)["nodes"] == sum(count > 0 for count in counted), "of as many nodes")
    for node in (1, 2):
        metric = until(lambda node=node: metrics(target, node) == counted[node - 1])
        check(metric, f"metrics of n{node}: {metrics(target, node)}")
    pid, answers = target.start(forge, target)
    with answers:
        said = answers.read()
    check(target.wait(pid) == 0 and said == "error\n", f"nobody can't say that records are lost: {said.split()}")
    check(said_lost(target)["records"] == sum(counted), "and nothing is added")


def forge(target):
    """As nobody, over the unix socket."""
    with target.unix() as peer:
        message = {"type": "lost", "ledger": "0" * 16, "records": 99, "first": 1, "last": 2}
        print(target.ask(peer, message)["type"], file=target.told, flush=True)


def said_lost(target):
    with target.unix() as peer:
        return target.ask(peer, {"type": "query", "filter": {"jobs": [{"job": 1}]}})["lost"]


def metrics(target, node):
    try:
        with open(f"{target.folder}/n{node}/metrics") as file:
            return int(re.search(r"^tccl_records_lost_total (\d+)$", file.read(), re.M)[1])
    except FileNotFoundError:
        return None


def until(holds):
    for _ in range(daemons.PATIENCE * 5):
        found = holds()
        if found is not False:
            return found
        time.sleep(0.2)
    return None


def await_jobs(target, jobs, what):
    until(lambda: True if jobs <= on_record(target) else False)
    missing = jobs - on_record(target)
    check(not missing, f"{len(jobs)} records, {what}: {len(missing)} missing")


def full_disk(target, ballast):
    """A disk without room: what is answered ok meanwhile, and before, is found; the rest is refused, and told again."""
    ballast.fill()
    senders = Senders(target, range(300000, 300600), again=False, ring="x" * 20000)
    taken = senders.end()
    target.stop()
    ballast.remove()
    target.start_again()
    missing = taken - on_record(target)
    check(senders.refused > 0 and not missing,
          f"a full disk: {len(taken)} answered ok, {len(missing)} of them missing, {senders.refused} refused")


def broken_store(target):
    """The store is overwritten while tccld runs: what n1 itself launches waits in the outbox, and nobody is told ok in vain."""
    with open(f"{target.folder}/n1/state/records.db", "r+b") as file:
        file.write(os.urandom(1 << 16))
    senders = Senders(target, range(310000, 310040), again=False)
    taken = senders.end()
    print(f"a store of noise: {len(taken)} answered ok, {senders.refused} refused", flush=True)
    launches(target, 720001, 20, 1)
    kept = until(lambda: len(waiting_in(target, 1)) >= 20 or False)
    check(kept, f"a broken store: {len(waiting_in(target, 1))} of 20 launches of n1 are in its outbox")


def main():
    target = Target(nodes=2)
    target.conf.append(f"MetricsFile={target.folder}/%n/metrics")
    ballast = Ballast(target)
    state = f"{target.folder}/n1/state"
    os.makedirs(state)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", state], check=True)
    with target:
        storm(target, ballast)
        ended_while_waiting(target)
        killed_while_waiting(target)
        told(target)
        full_disk(target, ballast)
        broken_store(target)
    verdict()


main()
