#!/usr/bin/env python3
"""heavy: nobody asks questions that take the most memory that 64 KiB can take, over the unix socket, and hangs up after
each; and sends valid credentials of such messages over TCP, without reading, and others of a megabyte. tccld doesn't
grow, and steps get their plans. Nor does it when credentials of a kilobyte hold a megabyte each, from a user whose
questions have to wait.
# level: quick
"""
import contextlib
import select
import socket
import time

from attack import MIB, Munge, Target, check, frame, record, verdict

SECONDS, ATTACKERS, GROWTH, PACKED = 6, 4, 64 * MIB, 119
VALUES = b'{"v":1,"type":"query","filter":{"x":[' + b",".join([b"{}"] * 21000) + b"]}}"
NAMES = b'{"v":1,"type":"query","filter":{"users":[' + b",".join([b'"abcdefghijklmnop"'] * 3000) + b"]}}"


def message(size, filler=b" "):
    """As far as tccld's monitor looks, one of tccl's."""
    return b'{"v":' + filler * (size - 6) + b"}"


def hit_and_run(target, question):
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            with target.unix() as peer:
                peer.settimeout(2)
                peer.sendall(frame(question))
        except OSError:
            pass


def credentials(target, size):
    """Each of its own connection; none is read."""
    peers, until = [], time.monotonic() + SECONDS
    text = frame(Munge.encode(f"{target.folder}/munge/socket", message(size, b"x")))
    while time.monotonic() < until:
        try:
            peers.append(socket.create_connection(("127.0.0.1", target.port()), 2, ("127.0.0.66", 0)))
            peers[-1].setblocking(False)
            peers[-1].send(text)
        except OSError:
            time.sleep(0.01)
        del peers[:-200]


def ask_unread(target):
    """As many questions as are under way at a time: those that come later wait. Nothing is read."""
    peers = [target.unix() for _ in range(8)]
    for peer in peers:
        peer.setblocking(False)
    for _ in range(6):
        for peer in peers:
            with contextlib.suppress(BlockingIOError):
                while True:
                    peer.send(frame(b"{}") * 200)
        time.sleep(0.05)
    return peers


def packed(target):
    """Says how many credentials there were, and how many connections tccld has closed."""
    path = f"{target.folder}/munge/socket"
    texts = [frame(Munge.encode(path, message(1000000), packed=True)) for _ in range(PACKED)]
    unread, peers, poll, closed = ask_unread(target), [], select.poll(), 0
    for i, text in enumerate(texts):
        peers.append(target.tcp(source="127.0.0.66"))
        peers[-1].sendall(text)
        poll.register(peers[-1], select.POLLRDHUP)
        time.sleep(0.1 if i % 15 == 14 else 0)
    until = time.monotonic() + SECONDS
    while closed < PACKED and time.monotonic() < until:
        for fd, _ in poll.poll(100):
            poll.unregister(fd)
            closed += 1
    print(f"{PACKED} of {max(map(len, texts))} bytes, {closed} closed", file=target.told, flush=True)
    time.sleep(SECONDS)
    del unread


def in_line():
    with Target() as target:
        target.join()
        before = target.memory()
        target.forget_peak()
        _, told = target.start(packed, target)
        print(told.readline(), end="", flush=True)
        grown = target.memory(which="VmHWM") - before
        target.await_log("has sent a message of 1000000 bytes")
        check(grown < GROWTH, f"tccld grew by {grown / MIB:.0f} MiB by packed credentials, less than {GROWTH // MIB}")
        target.join()


def main():
    with Target(records=[record(job) for job in range(1, 2001)]) as target:
        target.join()
        before = target.memory()
        target.forget_peak()
        for i in range(ATTACKERS):
            target.fork(hit_and_run, target, VALUES if i % 2 else NAMES)
        target.fork(credentials, target, 60000)
        target.fork(credentials, target, 700000)
        joins, until = 0, time.monotonic() + SECONDS
        while time.monotonic() < until:
            target.join()
            joins += 1
            time.sleep(0.02)
        grown = target.memory(which="VmHWM") - before
        print(f"{joins} steps had their plans meanwhile")
        check(joins > 0, "steps get their plans meanwhile")
        check(grown < GROWTH, f"tccld grew by {grown / MIB:.0f} MiB, less than {GROWTH // MIB}")
    in_line()
    verdict()


main()
