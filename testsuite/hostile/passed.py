#!/usr/bin/env python3
"""passed: nobody passes TCP sockets to tccld over the unix socket, with much that nobody reads, that wait half a
minute for it when they are closed (SO_LINGER), and hangs up or stays. They are refused, from Linux 6.16 on, and steps get their
plans at once. Skipped before.
# level: quick
"""
import array
import contextlib
import socket
import struct
import sys
import time

from attack import Target, check, frame, verdict

SO_PASSRIGHTS = 83
LINGER, SOCKETS = 30, 3  # seconds each


def kernel_can_refuse():
    with socket.socket(socket.AF_UNIX) as own:
        try:
            own.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
            return True
        except OSError:
            return False


def fill(peer, data):
    peer.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            peer.send(data)


def lingering():
    """Sockets that are slow to close, and those at their other ends, which read nothing."""
    ours, theirs = [], []
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(SOCKETS):
            ours.append(socket.create_connection(server.getsockname()))
            theirs.append(server.accept()[0])
            ours[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER))
            fill(ours[-1], b"x" * 65536)
    return ours, theirs


def let_go(peer):
    """Without closing it here, which would wait."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
    peer.close()


def full(target):
    """A connection that tccld doesn't read on: its answers aren't read."""
    peer = target.unix()
    for _ in range(6):
        fill(peer, frame(b"{}") * 200)
        time.sleep(0.1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return peer


def drain(peer):
    peer.settimeout(1)
    with contextlib.suppress(OSError):
        while peer.recv(1 << 16):
            pass


def passes(target, hangs_up):
    """Says whether they were taken. The last ones of them are then in the message, which tccld hasn't read yet."""
    ours, theirs = lingering()
    peer = full(target)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [each.fileno() for each in ours]))]
    try:
        peer.sendmsg([b"\0"], rights)
        taken = "taken"
        for each in ours:
            each.close()
    except PermissionError:
        taken = "refused"
        for each in ours:
            let_go(each)
    if hangs_up:
        peer.close()
    else:
        drain(peer)
    print(taken, file=target.told, flush=True)
    time.sleep(LINGER * SOCKETS)
    del theirs, peer


def main():
    if not kernel_can_refuse():
        print("this kernel can't refuse descriptors that are passed")
        sys.exit(77)
    with Target() as target:
        target.join()
        for hangs_up in (False, True):
            what = "and hangs up" if hangs_up else "and stays"
            _, told = target.start(passes, target, hangs_up)
            check(told.readline() == "refused\n", f"who passes descriptors {what}: they are refused")
            took = target.join()
            check(took < LINGER, f"a step has its plan after {took * 1e3:.1f} ms")
        with target.unix() as peer:
            answer = target.ask(peer, {"v": 1, "type": "query", "filter": {}})
            check(answer["type"] == "records", "who passes none is answered")
    verdict()


main()
