#!/usr/bin/env python3
"""unread: nobody asks about records over eight connections, and over TCP, as fast as they take it, and reads nothing.
Answers don't pile up in tccld, and a step gets its plan beside that. Then three users do so over as many connections as
they can have, here and from five nodes: their questions wait in line, steps still get their plans, another user an answer,
and other nodes are heard. Last, one begins messages from a node and doesn't end them: records of another node, each longer
than any of those, are stored.
# level: quick
"""
import contextlib
import functools
import os
import select
import signal
import struct
import time

from attack import MIB, NOBODY, Target, check, comes, frame, record, unless_busy, verdict

SECONDS, CONNECTIONS, GROWTH = 8, 8, 64 * MIB
ASKED = {"v": 1, "type": "query", "filter": {}}
QUESTION = frame(ASKED)
SECOND, THIRD, FOURTH = 1, 2, 3  # users that each Debian has


def push(connect, question):
    """Connects again where tccld hangs up."""
    peer, rest, closed, until = None, b"", 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            if not peer:
                peer, rest = connect(), b""
                peer.setblocking(False)
            if select.select([], [peer], [], 0.2)[1]:
                rest = rest or question()
                rest = rest[peer.send(rest):]
        except BlockingIOError:
            pass
        except OSError:
            peer, closed = None, closed + 1
            time.sleep(0.01)
    print(f"hung up {closed} times", flush=True)


def joins(target, seconds):
    """Seconds that each JOIN took, one after the other, sorted."""
    took, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        took.append(target.join())
        time.sleep(0.02)
    return sorted(took)


def median(took):
    return took[len(took) // 2]


def spread(took):
    """Median, quartiles and the longest, as text."""
    return (f"{median(took) * 1e3:.1f} ms ({took[len(took) // 4] * 1e3:.1f} to {took[len(took) * 3 // 4] * 1e3:.1f} in the middle half, "
            f"at most {took[-1] * 1e3:.1f}; {len(took)} of them)")


def line_up(target, connects, make):
    """Asks over each, and anew where tccld hangs up; nothing is read. Says when all have asked."""
    peers, poll, texts = {}, select.poll(), [make() for _ in connects]

    def ask(connect, text):
        peer = connect()
        peers[peer.fileno()] = peer, connect
        poll.register(peer, select.POLLRDHUP)
        with contextlib.suppress(OSError):
            peer.sendall(text)

    for connect, text in zip(connects, texts):
        ask(connect, text)
    print("asked", file=target.told, flush=True)
    while True:
        for fd, _ in poll.poll():
            poll.unregister(fd)
            peer, connect = peers.pop(fd)
            peer.close()
            ask(connect, make())


def in_line(target, uid, connects, make):
    pid, told = target.start(line_up, target, connects, make, uid=uid)
    check(told.readline() == "asked\n", f"uid {uid} asks {len(connects)} times")
    return pid


def ask_once(target):
    with target.unix() as peer:
        target.ask(peer, ASKED)


def hears(what, ask):
    """Seconds that it took."""
    begun = time.monotonic()
    try:
        held = ask()
    except (OSError, SystemExit) as failed:
        held, what = False, f"{what} ({failed})"
    check(held, what)
    return time.monotonic() - begun


def while_they_wait(target, what):
    """Steps, a user who has asked nothing yet, and a node that nobody has heard of."""
    def tell():
        took = sorted(hears(f"a record of another node is stored while {what}",
                            lambda: target.tell(lambda: target.tcp(source="127.0.0.9"), record(88, uid=0))) for _ in range(5))
        print(f"records: {spread(took)}", flush=True)
        return median(took) <= 0.1

    steps = sorted(hears(f"a step gets its plan while {what}", target.join) for _ in range(5))
    print(f"steps: {spread(steps)}", flush=True)
    unless_busy(tell(), "a record takes at most 100 ms", tell)
    check(target.wait(target.fork(ask_once, target, uid=FOURTH)) == 0, f"another user is answered while {what}")


def become_nodes(target, sources):
    """Addresses that nobody has heard of are heard after what came before, which tccld may not have done with: a node tells again."""
    for source in sources:
        check(comes(lambda: target.tell(lambda: target.tcp(source=source), record(99, uid=0))), f"{source} is a node's address")


def in_lines(target):
    """Three users here; then one of them from five nodes that are trusted."""
    nodes = [f"127.0.0.{i}" for i in range(2, 7)]
    become_nodes(target, nodes)
    asked = [in_line(target, uid, [target.unix] * 128, lambda: QUESTION) for uid in (NOBODY, SECOND, THIRD)]
    while_they_wait(target, "three users wait in line")
    asked.append(in_line(target, THIRD, [functools.partial(target.tcp, source=nodes[i % 5]) for i in range(1280)],
                         lambda: frame(target.credential(ASKED))))
    while_they_wait(target, "one does so from five nodes")
    for pid in asked:
        os.kill(pid, signal.SIGKILL)
        target.wait(pid)


def begin_many(target, source):
    """Messages that together are more than may wait. Says of each round how many of them tccld has closed."""
    while True:
        peers, poll = [], select.poll()
        for _ in range(245):
            with contextlib.suppress(OSError):
                peers.append(target.tcp(source=source))
                peers[-1].setblocking(False)
                peers[-1].send(struct.pack(">I", 1000000) + b"M" * 103500)
        for peer in peers:
            poll.register(peer, select.POLLRDHUP)
        time.sleep(0.75)
        print(len(poll.poll(0)), file=target.told, flush=True)
        for peer in peers:
            peer.close()


def unfinished(target):
    node, other = "127.0.0.2", "127.0.0.3"
    become_nodes(target, (node, other))
    large = record(100, uid=0, ring=os.urandom(150000).hex())
    pid, told = target.start(begin_many, target, other)
    closed, answers = [int(told.readline())], []
    while len(answers) < 25 or len(closed) < 3:
        answers.append(target.tell(lambda: target.tcp(source=node), large))
        time.sleep(0.1)
        while select.select([told], [], [], 0)[0]:
            closed.append(int(told.readline()))
    os.kill(pid, signal.SIGKILL)
    target.wait(pid)
    print(f"closed of 245 unfinished messages, in each round: {closed}", flush=True)
    check(any(closed), "tccld closes some of them")
    check(all(answers), f"{answers.count(True)} of {len(answers)} records of 300 KB of another node are stored meanwhile")


def unread(target):
    """Do JOINs beside those who read nothing take at most twice as long as alone?"""
    alone = joins(target, 2)
    pids = [target.fork(push, target.unix, lambda: QUESTION * 64) for _ in range(CONNECTIONS)]
    pids.append(target.fork(push, target.tcp, lambda: frame(target.credential({"type": "query", "filter": {}}))))
    time.sleep(0.5)
    beside = joins(target, SECONDS)
    check(beside, "steps get their plans meanwhile")
    print(f"JOIN: {spread(alone)}\nbeside the attack: {spread(beside)}: {median(beside) / median(alone):.1f} times", flush=True)
    for pid in pids:
        target.wait(pid)
    return median(beside) <= 2 * median(alone)


def main():
    store = [record(job, uid, job_name="x" * 250, reason="y" * 250) for uid in (NOBODY, SECOND, THIRD)
             for job in range(1 + 10000 * uid, 2001 + 10000 * uid)]
    with Target(records=store) as target:
        target.join()
        before = target.memory()
        target.forget_peak()
        soon = unread(target)
        grown = target.memory(which="VmHWM") - before
        unless_busy(soon, "they take at most twice as long", lambda: unread(target))
        check(grown < GROWTH, f"tccld grew by {grown / MIB:.0f} MiB, less than {GROWTH // MIB}")
        in_lines(target)
        unfinished(target)
    verdict()


main()
