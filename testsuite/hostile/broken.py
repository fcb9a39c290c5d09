#!/usr/bin/env python3
"""broken: what tccld lives on is broken, hanging, full, read-only or somebody else's: a damaged store, a folder that can't be
written, a StateDir with another tccld in it, a port that is taken, a DNS that is down. A step of this node has its ring all the same, it is
said what is wrong, and once it is mended what came meanwhile is on record.
# level: quick
"""
import contextlib
import glob
import os
import pwd
import socket
import subprocess
import tempfile
import time

from attack import Target, check, daemons, verdict

WAIT = 90  # seconds, for what tccld tries again


def eventually(what, holds):
    until = time.monotonic() + WAIT
    while not holds() and time.monotonic() < until:
        time.sleep(0.1)
    check(holds(), what)


def log(target):
    with open(f"{target.folder}/n1/log") as file:
        return file.read()


def jobs(target):
    return sorted({record["job"] for record in daemons.query(target.folder)})


def metric(target, part):
    with contextlib.suppress(FileNotFoundError), open(f"{target.folder}/n1/metrics") as file:
        return next((line.split()[-1] for line in file if line.startswith(f'tccl_works{{part="{part}"}}')), None)
    return None


class Broken(Target):
    """A target whose StateDir or port is prepared ahead of the start of tccld. StateDir is root's, and tccld gives it away itself."""

    def __init__(self, prepare):
        super().__init__()
        self.prepare = prepare
        self.conf.append(f"MetricsFile={self.folder}/n1/metrics")
        self.state = f"{self.folder}/state"
        self.conf.append(f"StateDir={self.state}")
        os.makedirs(self.state)

    def __enter__(self):
        self.prepare(self)
        return super().__enter__()


def give_state(target):
    """What tccld can't give away: StateDir comes, or is found, while it runs."""
    os.chown(target.state, pwd.getpwnam(target.user).pw_uid, -1)


def serves(target, job, what):
    try:
        target.join({"job": job})
    except SystemExit as failed:
        check(False, f"{what}: a step has its ring ({failed})")
        return
    check(True, f"{what}: a step has its ring")


def attack(what, prepare, said, mend):
    """prepare and mend: of StateDir; said: in the log."""
    print(f"--- {what}", flush=True)
    with Broken(prepare) as target:
        serves(target, 11, what)
        serves(target, 12, what)
        check(said in log(target), f"the log says '{said}'")
        eventually("metrics say so", lambda: metric(target, "store") == "0")
        mend(target)
        eventually("both are on record in the end", lambda: set(jobs(target)) >= {11, 12})
        eventually("metrics say that, too", lambda: metric(target, "store") == "1")


def damage(target):
    with open(f"{target.state}/records.db", "wb") as file:
        file.write(os.urandom(65536))


def move_away(target):
    os.rename(f"{target.state}/records.db", f"{target.state}/damaged.db")


def put_file(target):
    os.rmdir(target.state)
    open(target.state, "w").close()


def mount(*options):
    def mounts(target):
        give_state(target)  # for when it is unmounted
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", target.state], stderr=subprocess.PIPE)
        if done.returncode:
            print("no mounts here")
    return mounts


def make_state(target):
    os.unlink(target.state)
    os.mkdir(target.state, 0o700)
    give_state(target)


def unmount(target):
    subprocess.run(["umount", "-l", target.state])


def lock(target):
    target.other = subprocess.Popen(["flock", f"{target.state}/tccld.lock", "sleep", "600"])
    target.undo.callback(unlock, target)
    while subprocess.run(["flock", "-n", f"{target.state}/tccld.lock", "true"]).returncode == 0:
        time.sleep(0.02)


def unlock(target):
    subprocess.run(["pkill", "-P", str(target.other.pid)])
    target.other.wait()


def break_while_it_runs():
    print("--- a store that is damaged while tccld runs", flush=True)
    with Broken(lambda target: None) as target:
        serves(target, 11, "before")
        eventually("it is on record", lambda: jobs(target) == [11])
        for path in glob.glob(f"{target.state}/records.db*"):
            with open(path, "r+b") as file:
                file.write(os.urandom(os.path.getsize(path)))
        serves(target, 12, "afterwards")
        eventually("metrics say so", lambda: metric(target, "store") == "0")
        for path in glob.glob(f"{target.state}/records.db*"):
            os.rename(path, path.replace("records.db", "damaged"))
        serves(target, 13, "when it was moved away")
        eventually("a new store has what came since", lambda: jobs(target) == [12, 13])


def freeze(target):
    """An ext4 of its own in StateDir's place, on which every write waits."""
    image = f"{target.folder}/image"
    with open(image, "wb") as file:
        file.truncate(16 << 20)
    commands = [["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, target.state], ["chown", "-R", target.user, target.state],
                ["fsfreeze", "-f", target.state]]
    target.undo.callback(thaw, target)  # until then tccld can't be ended
    target.frozen = all(subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0 for command in commands)


def thaw(target):
    if os.path.ismount(target.state):
        subprocess.run(["fsfreeze", "-u", target.state], stderr=subprocess.DEVNULL)


def disk_that_hangs():
    what = "a disk that does not answer"
    print(f"--- {what}", flush=True)
    with Broken(freeze) as target:
        if not target.frozen:
            print("no file system can be frozen here: not tried")
            return
        serves(target, 11, what)
        check("the disk has not answered within" in log(target), "the log says so")
        check(metric(target, "store") in (None, "0"), "metrics don't say that the store works")
        thaw(target)
        eventually("it is on record in the end", lambda: jobs(target) == [11])
        eventually("metrics say that, too", lambda: metric(target, "store") == "1")


def take_port():
    print("--- a port that somebody else has", flush=True)
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    free = daemons.free_ports
    lacks_port, daemons.lacks_port = daemons.lacks_port, lambda log: False
    daemons.free_ports = lambda count: [other.getsockname()[1]] + free(count - 1)
    try:
        with Broken(lambda target: None) as target:
            serves(target, 11, "without TCP")
            check("can't listen at 127.0.0.1" in log(target), "the log says so")
            eventually("metrics say so", lambda: metric(target, "tcp") == "0")
            other.close()
            eventually("it listens when the port is free", lambda: "listens at 127.0.0.1" in log(target))
            target.tcp().close()
            eventually("metrics say that, too", lambda: metric(target, "tcp") == "1")
    finally:
        daemons.free_ports, daemons.lacks_port = free, lacks_port


def without_dns():
    """BindAddr= is a name, and nobody knows its address yet."""
    print("--- a name that has no address", flush=True)
    spawn, lacks_port = daemons.spawn, daemons.lacks_port
    with tempfile.NamedTemporaryFile("w") as hosts, tempfile.NamedTemporaryFile("w") as resolv:
        print("nameserver 127.0.0.1", file=resolv, flush=True)  # where none listens
        for file in (hosts, resolv):
            os.chmod(file.name, 0o644)  # as they are, for whoever tccld is
        places = f"mount --bind {hosts.name} /etc/hosts && mount --bind {resolv.name} /etc/resolv.conf"
        if subprocess.run(["unshare", "--mount", "sh", "-c", places], stderr=subprocess.DEVNULL).returncode:
            print("no mounts here")
            return

        def spawn_without(command, log):
            own = ["unshare", "--mount", "sh", "-c", f'{places} && exec "$@"', "sh"] if command[0].endswith("tccld") else []
            return spawn(own + command, log)

        daemons.spawn, daemons.lacks_port = spawn_without, lambda log: False
        try:
            with Broken(lambda target: target.conf.append("BindAddr=late.example")) as target:
                serves(target, 11, "without an address")
                eventually("the log says so", lambda: "can't listen at late.example" in log(target))
                eventually("metrics say so", lambda: metric(target, "tcp") == "0")
                print("127.0.0.1 late.example", file=hosts, flush=True)
                eventually("it listens when it has one", lambda: "listens at late.example" in log(target))
                target.tcp().close()
        finally:
            daemons.spawn, daemons.lacks_port = spawn, lacks_port


def main():
    attack("a damaged store", damage, "file is not a database", move_away)
    attack("a file in the place of StateDir", put_file, "no store of records", make_state)
    attack("a read-only StateDir", mount("ro"), "ead-only file system", unmount)
    attack("a full StateDir", mount("size=4k,nr_inodes=2"), "no store of records", unmount)
    attack("another tccld in StateDir", lock, "another tccld uses this StateDir", unlock)
    disk_that_hangs()
    break_while_it_runs()
    take_port()
    without_dns()
    verdict()


main()
