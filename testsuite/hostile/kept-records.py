#!/usr/bin/env python3
"""kept-records: records come while tccld is killed at random moments, ended while they wait, and while its disk is full or
its store is broken: each that was answered ok is found afterwards, each launch is on record or counted as lost.
TCCL_SEED repeats it, TCCL_RECORDS says how many.
# level: quick
"""
import os
import random
import re
import signal
import subprocess
import threading
import time

from attack import Target, check, daemons, record, verdict

SEED = int(os.environ.get("TCCL_SEED", random.randrange(1 << 30)))
COUNT = int(os.environ.get("TCCL_RECORDS", 400))
SENDERS = 4
draw = random.Random(SEED)
print(f"TCCL_SEED={SEED}", flush=True)


class Senders:
    """Peers that tell n1 of records, each until it is answered ok, or only once."""

    def __init__(self, target, jobs, again=True, **members):
        self.target, self.jobs, self.again, self.members = target, iter(jobs), again, members
        self.taken, self.refused, self.lock = [], 0, threading.Lock()
        self.threads = [threading.Thread(target=self.send) for _ in range(SENDERS)]
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


def storm(target):
    """kill -9 at random moments; every ok is found."""
    senders, kills = Senders(target, range(1, COUNT + 1)), 0
    while senders.alive():
        time.sleep(draw.uniform(0, 0.15))
        target.stop()
        kills += 1
        target.start_again()
    taken = senders.end()
    missing = taken - on_record(target)
    check(len(taken) == COUNT and not missing, f"{len(taken)} records answered ok, {kills} times kill -9: {len(missing)} missing")


def launches(target, count, node=2):
    """Steps of a node, whose records go to n1. Returns their jobs."""
    jobs = []
    for _ in range(count):
        key = {"cluster": "rig", "job": 500000 + random.Random(SEED + len(jobs)).randrange(400000), "het_job": 0,
               "het_offset": 0, "step": len(jobs), "restart": 0, "run": 0}
        with target.unix(node) as peer:
            daemons.send(peer, {"type": "join", "key": key, "node": 0, "nodes": [f"n{node}"], "gres": [0], "mode": "off", "uid": 0,
                                "gid": 0, "timeout_ms": 60000, "min_nodes": 0, "min_gpus": 0})
            daemons.receive_bytes(peer)
        jobs.append(key["job"])
    return set(jobs)


def spooled(target, node):
    return [name for name in os.listdir(f"{target.folder}/n{node}/state/spool") if len(name) == 32]


def lost(target, node):
    """What the ledger of a node says: pending, lost."""
    with open(f"{target.folder}/n{node}/run/records") as file:
        return [int(each) for each in re.findall(r"(?:pending|lost) (\d+)", file.read())]


def ended_while_waiting(target):
    """n1 hangs, so the records of n2 wait; n2 gets SIGTERM, and later starts again: all are delivered."""
    target.tcclds[0].send_signal(signal.SIGSTOP)
    jobs = launches(target, 50)
    target.stop(2, signal.SIGTERM)
    target.tcclds[0].send_signal(signal.SIGCONT)
    target.start_again(2)
    await_jobs(target, jobs, "queued when SIGTERM came")
    check(lost(target, 2) == [0, 0], "none of them counts as lost")


def killed_while_waiting(target):
    """The same with SIGKILL: what is not found is counted."""
    target.tcclds[0].send_signal(signal.SIGSTOP)
    jobs = launches(target, 50)
    target.stop(2)
    target.tcclds[0].send_signal(signal.SIGCONT)
    target.start_again(2)
    missing = until(lambda: len(jobs - on_record(target)) <= lost(target, 2)[1] and jobs - on_record(target))
    pending, count = lost(target, 2)
    check(pending == 0 and len(jobs - on_record(target)) <= count, f"SIGKILL: {len(missing or [])} of {len(jobs)} missing, {count} are counted")


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


def full_disk(target):
    """A disk without room: what is answered ok meanwhile, and before, is found; the rest is refused, and told again."""
    state = f"{target.folder}/n1/state"
    with open(f"{state}/ballast", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    senders = Senders(target, range(300000, 300600), again=False, ring="x" * 20000)
    taken = senders.end()
    target.stop()
    os.unlink(f"{state}/ballast")
    target.start_again()
    missing = taken - on_record(target)
    check(senders.refused > 0 and not missing,
          f"a full disk: {len(taken)} answered ok, {len(missing)} of them missing, {senders.refused} refused")


def broken_store(target):
    """The store is overwritten while tccld runs: what n1 itself launches waits in the spool, and nobody is told ok in vain."""
    with open(f"{target.folder}/n1/state/records.db", "r+b") as file:
        file.write(os.urandom(1 << 16))
    senders = Senders(target, range(310000, 310040), again=False)
    taken = senders.end()
    print(f"a store of noise: {len(taken)} answered ok, {senders.refused} refused", flush=True)
    launches(target, 20, 1)
    kept = until(lambda: len(spooled(target, 1)) >= 20 or False)
    check(kept, f"a broken store: {len(spooled(target, 1))} of 20 launches of n1 are in its spool")


def main():
    target = Target(nodes=2)
    state = f"{target.folder}/n1/state"
    os.makedirs(state)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", state], check=True)
    try:
        with target:
            storm(target)
            ended_while_waiting(target)
            killed_while_waiting(target)
            full_disk(target)
            broken_store(target)
    finally:
        subprocess.run(["umount", state], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", target.folder], check=False)
    verdict()


main()
