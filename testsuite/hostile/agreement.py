#!/usr/bin/env python3
"""agreement: nobody, who has a step on two nodes, says on one of them that it builds all rings of ever new communicators, on as many
connections as there is room for, and never on the other; he says "no" to the communicators of root's step, under its key and
under his own. Root's nodes are told "all" each time meanwhile, and tccld takes no more memory than for the communicators of
one user.
# level: quick
"""
import os
import threading
import time

from attack import MIB, Target, NOBODY, check, comes, daemons, end_forked, frame, unless_busy, verdict

PEERS, SECONDS, ROUNDS = 60, 4, 12


def key(job):
    return {"cluster": "rig", "job": job, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}


def question(job, comm, will):
    facts = {**key(job), "comm": f"{comm:016x}", "will": will}
    return frame("\n".join(["tccl-agree 1", *(f"{name} {value}" for name, value in facts.items()), "end", ""]).encode())


def begin(target, job, uid):
    """A step on both nodes, which has a plan on each."""
    peers = [target.unix(1), target.unix(2)]
    for i, peer in enumerate(peers):
        daemons.send(peer, {"type": "join", "key": key(job), "node": i, "nodes": "n1,n2", "gres": [0, 1, 2, 3], "mode": "on", "uid": uid,
                            "gid": uid, "timeout_ms": 30000})
    plans = [daemons.receive(peer) for peer in peers]
    check(all(plan["state"] == "planned" for plan in plans), f"a step of uid {uid} has a ring")


def ask(target, node, job, comm, will):
    with target.unix(node) as peer:
        peer.sendall(question(job, comm, will))
        lines = daemons.receive_bytes(peer).decode().splitlines()
    return lines[1] if lines[0] != "tccl-error 1" else lines[0]


def flood(target):
    """As nobody."""
    peers, words, until = [], {}, time.monotonic() + SECONDS
    while time.monotonic() < until:
        while len(peers) < PEERS:
            peers.append(target.unix(1))
        peer = peers.pop(0)
        try:
            peer.sendall(question(2, int.from_bytes(os.urandom(8), "big"), "yes") * 3)
            peers.append(peer)
        except OSError:
            peer.close()
        time.sleep(0.001)
    for peer in peers:
        peer.close()


def spoil(target, comms):
    """As nobody: in root's communicators."""
    for comm in comms:
        for node in (1, 2):
            if ask(target, node, 1, comm, "no") != "tccl-error 1":
                raise AssertionError("nobody is heard about root's step")
    for comm in comms:
        ask(target, 2, 2, comm, "no")


def agree(target, comm):
    """What root's nodes are told, which ask at the same time; and how long that takes."""
    told, begun = [None, None], time.monotonic()
    threads = [threading.Thread(target=lambda i=i: told.__setitem__(i, ask(target, i + 1, 1, comm, "yes"))) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told, time.monotonic() - begun


def beside(target, comms):
    """Are root's told "all" each time, while nobody says what he can?"""
    flooding, spoiling = target.fork(flood, target), target.fork(spoil, target, comms)
    said, took = [], []
    for comm in comms:
        told, seconds = agree(target, comm)
        said.append(told)
        took.append(seconds)
        time.sleep(0.15)
    statuses = [target.wait(spoiling), target.wait(flooding)]
    print(f"root's nodes are answered after {sorted(took)[len(took) // 2] * 1e3:.1f} ms, {max(took) * 1e3:.1f} ms at most", flush=True)
    check(statuses == [0, 0], "nobody is refused where the step is root's")
    return all(told == ["rings all"] * 2 for told in said)


with Target(nodes=2) as target:
    begin(target, 1, 0)
    begin(target, 2, NOBODY)
    told, _ = agree(target, 1)
    check(told == ["rings all"] * 2, f"all nodes are told: {told}")
    before, open_before = target.memory(1), len(os.listdir(f"/proc/{target.tcclds[0].pid}/fd"))
    numbers = iter(range(1, 1 << 30))
    unless_busy(beside(target, [1000 + next(numbers) for _ in range(ROUNDS)]), "root's nodes are told \"all\" each time",
                again=lambda: beside(target, [1000 + next(numbers) for _ in range(ROUNDS)]))
    more = target.memory(1) - before
    print(f"{more / MIB:.1f} MiB more", flush=True)
    check(more < 8 * MIB, "tccld's memory is bounded")
    check(comes(lambda: len(os.listdir(f"/proc/{target.tcclds[0].pid}/fd")) <= open_before + 16), "nothing is left open")
    check(ask(target, 1, 2, 5, "no") in ("rings not", "tccl-error 1"), "nobody is answered, too")
    end_forked(target.pids)
    daemons.leave_all(target.folder, target.nodes, key(1))
    daemons.leave_all(target.folder, target.nodes, key(2))
verdict()
