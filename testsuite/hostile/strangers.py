#!/usr/bin/env python3
"""strangers: connections by the thousand from an address that tccl.conf doesn't name, as nobody, that say nothing or send
garbage for credentials. Who asks meanwhile is answered: a trusted node, a user at another address and one on the unix
socket, 99 of 100 within a second where the machine is not busy; steps get their plans, those over this node and another one their
rings, with the AliveTimeout= that sites have; tccld doesn't grow.
Then the same from the 65,536 addresses of a network, and from those of an IPv6 one where this machine has IPv6.
strangers SECONDS MOST [KIND...]: how long each flood lasts, connections a second, of which kinds (flood.c).
# level: quick
"""
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time

from attack import MIB, Target, check, daemons, frame, skip, unless_busy, verdict

FLOOD = f"{daemons.BUILD}/testsuite/hostile/flood"
STRANGER, USER, NODE = "127.0.0.66", "127.0.0.77", "127.0.0.1"  # only the last one is in [peers]
NETWORK, NETWORK_6 = "127.1.0.0/16", "fd00:66::/64"
OF_MANY = [("silent", NETWORK), ("forged", NETWORK), ("silent", NETWORK_6)]
KINDS = ["silent", "short", "junk", "forged", "long"]
GROWTH = 64 * MIB
OPEN = 2048 + 256  # connections over TCP, and all else
EACH = 0.05  # seconds between the questions of one who asks


def answered(target, source):
    """Asks once over TCP; seconds until the answer, None if there was none."""
    question = frame(target.credential({"type": "query", "filter": {}}))
    start = time.monotonic()
    try:
        with target.tcp(source=source) as peer:
            peer.settimeout(10)
            peer.sendall(question)
            return time.monotonic() - start if peer.recv(4096) else None
    except OSError:
        return None


def answered_here(target):
    """The same over the unix socket."""
    start = time.monotonic()
    try:
        with target.unix() as peer:
            peer.settimeout(10)
            peer.sendall(frame({"v": 1, "type": "query", "filter": {}}))
            return time.monotonic() - start if peer.recv(4096) else None
    except OSError:
        return None


def ask(target, how, seconds):
    """Prints the times of the answers, 10 for none: the process is one of fork()."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        print(how() or 10.0, file=target.told, flush=True)
        time.sleep(EACH)


def pairs(target, seconds):
    """Steps over both nodes, one after the other. Prints why each has no ring, or an empty line."""
    until, job = time.monotonic() + seconds, int.from_bytes(os.urandom(2), "big") << 14
    while time.monotonic() < until:
        job += 1
        print(target.pair(job), file=target.told, flush=True)


def show(who, times):
    """Returns the share of those that were answered within a second."""
    soon = sum(took < 1 for took in times)
    times = sorted(times)
    print(f"  {who}: {soon} of {len(times)} within a second, {sum(took >= 10 for took in times)} not at all; "
          f"median {times[len(times) // 2] * 1e3:.1f} ms, longest {times[-1] * 1e3:.0f} ms", flush=True)
    return soon / len(times)


def munge_asked_in_vain(target):
    """Does tccld's log say that munge has refused a text for its form?"""
    with open(f"{target.folder}/n1/log") as file:
        return "armor" in file.read()


def asked_during(target, kind, source, seconds, most):
    """A flood of this kind; of those who ask meanwhile, the share answered within a second. All are answered at all."""
    print(f"{kind} from {source}:", flush=True)
    flood = target.fork(target.run, FLOOD, source, str(target.port()), str(seconds), str(most), kind)
    time.sleep(0.3)
    asking = {"a node": target.start(ask, target, lambda: answered(target, NODE), seconds - 1, uid=0),
              "a user": target.start(ask, target, lambda: answered(target, USER), seconds - 1),
              "a user on the node": target.start(ask, target, lambda: answered_here(target), seconds - 1)}
    both, reasons = target.start(pairs, target, seconds - 1, uid=0)
    joins, until = [], time.monotonic() + seconds - 1
    while time.monotonic() < until:
        joins.append(target.join())
        time.sleep(EACH)
    soon = {"steps": show("steps", joins)}
    for who, (pid, told) in asking.items():
        target.wait(pid)
        times = [float(line) for line in told]
        soon[who] = show(who, times)
        missed = sum(took >= 10 for took in times)
        judge = check if source == STRANGER else unless_busy
        judge(times and missed * 100 <= len(times), f"{who} is answered during a flood of kind {kind}")
    target.wait(both)
    reasons = [line.strip() for line in reasons]
    lost = [reason for reason in reasons if reason]
    print(f"  steps over both nodes: {len(reasons) - len(lost)} of {len(reasons)} have their rings{'; ' if lost else ''}"
          f"{max(lost, key=lost.count, default='')}", flush=True)
    soon["steps over both nodes (rings)"] = 1 - len(lost) / max(1, len(reasons))
    target.wait(flood)
    return soon


def after_halts(target, most):
    """What is closed is closed at once, also where tccld had no core for a while and finds thousands of connections."""
    pid, most_open = target.tcclds[0].pid, 0
    flood = target.fork(target.run, FLOOD, NETWORK, str(target.port()), "5", str(most), "forged")
    for _ in range(8):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(pid, signal.SIGCONT)
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            most_open = max(most_open, len(os.listdir(f"/proc/{pid}/fd")))
    target.wait(flood)
    check(most_open < OPEN, f"tccld has {most_open} descriptors, less than {OPEN}")


def under(*flood):
    for who, part in asked_during(*flood).items():
        least = 0.999 if "rings" in who else 0.99
        unless_busy(part >= least, f"{who}: {least * 1000:.0f} of 1000, others within a second, during a flood of kind {flood[1]}",
                    lambda: asked_during(*flood)[who] >= least)


def has_network():
    """Of our own, where addresses by the thousand are ours. Returns whether we have IPv6 there."""
    if ctypes.CDLL(None).unshare(0x40000000):  # CLONE_NEWNET
        skip("needs a network namespace of its own")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return subprocess.run(["ip", "-6", "route", "add", "local", NETWORK_6, "dev", "lo"]).returncode == 0


def main():
    seconds, most = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (2, 15000)
    with_6 = has_network()
    resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))  # of tccld's unit; a flood has 6,000 connections
    with Target(nodes=2, conf=["BindAddr="]) as target:
        target.join()
        before = target.memory()
        target.forget_peak()
        for kind in sys.argv[3:] or KINDS:
            under(target, kind, STRANGER, seconds, most)
        for kind, source in OF_MANY if with_6 else OF_MANY[:-1]:
            under(target, kind, source, seconds, most)
        after_halts(target, most)
        check(not munge_asked_in_vain(target), "munge is not asked about what can't be a credential")
        grown = target.memory(which="VmHWM") - before
        check(grown < GROWTH, f"tccld grew by {grown / MIB:.0f} MiB, less than {GROWTH // MIB}")
    verdict()


main()
