#!/usr/bin/env python3
"""unread: nobody asks about records over eight connections, and over TCP, as fast as they take it, and reads nothing.
Answers don't pile up in tccld, and a step gets its plan beside that.
# level: quick
"""
import json
import select
import sys
import time

from attack import MIB, Target, check, frame, record, verdict

SECONDS, CONNECTIONS, GROWTH = 8, 8, 64 * MIB
QUESTION = frame({"v": 1, "type": "query", "filter": {}})


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
    """Seconds that each JOIN took, one after the other; the least, and the median."""
    took, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        took.append(target.join())
        time.sleep(0.02)
    return min(took), sorted(took)[len(took) // 2], len(took)


def main():
    store = [record(job, job_name="x" * 250, reason="y" * 250) for job in range(1, 2001)]
    with Target(records=store) as target:
        target.join()
        least, median, _ = joins(target, 2)
        before = target.memory()
        target.forget_peak()
        for _ in range(CONNECTIONS):
            target.fork(push, target.unix, lambda: QUESTION * 64)
        target.fork(push, target.tcp, lambda: frame(target.credential({"type": "query", "filter": {}})))
        time.sleep(0.5)
        least_beside, median_beside, count = joins(target, SECONDS)
        grown = target.memory(which="VmHWM") - before
        print(f"JOIN: least {least * 1e3:.1f} ms, median {median * 1e3:.1f}; beside the attack {least_beside * 1e3:.1f} and "
              f"{median_beside * 1e3:.1f} ({count} of them): {median_beside / median:.1f} times", flush=True)
        check(count > 0, "steps get their plans meanwhile")
        check(grown < GROWTH, f"tccld grew by {grown / MIB:.0f} MiB, less than {GROWTH // MIB}")
    verdict()


main()
