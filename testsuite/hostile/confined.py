#!/usr/bin/env python3
"""confined: tccld and the check of the profile do their work under the restrictions of their units, and under these a program that
was taken over can do little.
# level: quick
"""
import contextlib
import mmap
import os
import platform
import pwd
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import time

from attack import Target, check, comes, daemons, skip, verdict

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = {"tccld": f"{daemons.BUILD}/etc/tccld.service", "tccl-profile": f"{daemons.BUILD}/etc/tccl-profile-check.service"}
TOOL = f"{daemons.BUILD}/profiler/tccl-profile"
MODEL = f"{daemons.HERE}/machines/amd-4gpu.json"
OWNER, TCCLD = pwd.getpwnam("daemon").pw_uid, pwd.getpwnam("bin").pw_uid
PROBES = {
    "writes outside of its folders": "open('/etc/tccl-probe', 'w')",
    "reads the kernel's settings": "open('/proc/sys/kernel/osrelease')",
    "opens a raw socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "has memory that is written and executed": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
    "changes its priority": "os.setpriority(os.PRIO_PROCESS, 0, -1)",
    "chooses its processors": "os.sched_setaffinity(0, {0})",
    "sets the clock": "time.clock_settime(time.CLOCK_REALTIME, time.time())",
    "sends signals to processes of others": "os.kill(sleeper, 0)",
    "binds a privileged port": "socket.socket().bind(('127.0.0.1', 99))",
    "changes its root": "os.chroot('/tmp')",
    "makes a device": "os.mknod(f'{folder}/device', 0o600 | stat.S_IFCHR, os.makedev(1, 5))",
}
assert all((mmap, socket, stat, time))  # what the lines above use
# What they need.
MAY = {"tccld": {"reads the kernel's settings"},
       "tccl-profile": {"reads the kernel's settings", "changes its priority", "chooses its processors",
                        "has memory that is written and executed"}}


# What tccld makes: a path in the node's folder, its mode. What it does not name must not be there. tccld/SECURITY.md has the same table.
MODES = {"tccld.sock": 0o666, "tccld.sock.lock": 0o644, "run/records": 0o600, "run/STEP": 0o711, "run/STEP/plan": 0o640,
         "state/records.db": 0o600, "state/records.db-wal": 0o600, "state/records.db-shm": 0o600, "state/tccld.lock": 0o600,
         "state/outbox.db": 0o600, "state/outbox.db-journal": 0o600}


GIVEN = {"run", "state", "log", "machine.json", "cache"}  # by the test


def made(node, before):
    """What is there that was not before: path and mode."""
    found = {}
    for at, folders, names in os.walk(node):
        for name in folders + names:
            path = os.path.relpath(os.path.join(at, name), node)
            if path.split("/")[0] not in before - {"run", "state"} and path not in before:
                told = re.sub(r"run/[0-9]+\.[^/]*", "run/STEP", path)
                with contextlib.suppress(FileNotFoundError):  # a file that had another name while it was written
                    found[told] = stat.S_IMODE(os.lstat(os.path.join(at, name)).st_mode)
    return found


def wrong_modes(node):
    """What is there that should not be so, or what is missing: each, with its mode if it has one."""
    found = made(node, GIVEN)
    wrong = {path: oct(mode) for path, mode in found.items() if MODES.get(path) != mode}
    return wrong | {path: "missing" for path in ("run/STEP/plan",) if path not in found}


def under(which, folder, *command):
    return [sys.executable, f"{HERE}/confine.py", UNITS[which], folder, *command]


def spawn_confined(command, log):
    """As daemons.spawn, with tccld under its unit."""
    if command[0].endswith("/tccld"):
        command = under("tccld", os.path.dirname(log), *command)
    return spawn(command, log)


def try_all(folder, sleeper):
    """For the confined program: prints what could be done."""
    for what, line in PROBES.items():
        try:
            exec(line, globals(), {"folder": folder, "sleeper": sleeper})
            print(what)
        except OSError:
            pass


def probe(which, folder, sleeper):
    """Nothing is done that the unit forbids."""
    done = subprocess.run(under(which, folder, sys.executable, __file__, "--try", folder, str(sleeper)), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True)
    told = set(done.stdout.splitlines())
    check(done.returncode == 0, f"{which}: all was tried under its unit")
    for what in PROBES:
        may = what in MAY.get(which, ())
        check((what in told) == may, f"{which}: a program under its unit {what}: {'yes' if may else 'no'}")


def niceness(target):
    """Of the threads of the tccld of n1."""
    found = set()
    for name in os.listdir(f"/proc/{target.tcclds[0].pid}/task"):
        with open(f"/proc/{target.tcclds[0].pid}/task/{name}/stat") as file:
            found.add(int(file.read().rpartition(")")[2].split()[16]))
    return found


def serve(target):
    key = {"cluster": "rig", "job": 70, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}
    daemons.join_all(target.folder, target.nodes, key)
    daemons.leave_all(target.folder, target.nodes, key)
    check(True, "a step of two nodes has its ring")
    with target.unix() as peer:
        plan = target.ask(peer, {"type": "join", "key": {**key, "job": 71}, "node": 0, "nodes": "n1", "gres": [0, 1, 2, 3], "mode": "on",
                                 "uid": OWNER, "gid": OWNER, "timeout_ms": 60000, "min_nodes": 0, "min_gpus": 0})
    path = plan.get("path", "")
    shared = f"/dev/shm/tccl-{OWNER}-{path.split('/')[-2].rsplit('-')[-1]}.0" if path else ""
    check(comes(lambda: os.path.exists(shared) and os.stat(shared).st_uid == OWNER), f"{shared} is the job's user's")
    check(subprocess.run(["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups", "cat", path],
                         stdout=subprocess.DEVNULL).returncode == 0, "the plan can be read by the job's user")
    comes(lambda: not wrong_modes(f"{target.folder}/n1"))  # while a file is written it has another name
    wrong = wrong_modes(f"{target.folder}/n1")
    check(not wrong, f"files and folders have the modes that they are to have{f', but {wrong}' if wrong else ''}")
    entry = os.getxattr(path, "system.posix_acl_access")
    check(struct.pack("<HHI", 2, 4, OWNER) in entry and len(entry) == 44, "the plan's ACL names its user alone")
    with target.unix() as peer:
        target.ask(peer, {"type": "leave", "key": {**key, "job": 71}})
    check(not os.path.exists(path) and comes(lambda: not os.path.exists(shared)), "both are removed when the step ends")
    check(comes(lambda: {each["job"] for each in target.records()} >= {70, 71}), "the records are in the store")
    check(5 in niceness(target), "threads that answer questions are nicer")
    target.await_log("serves node n1")


def rights(pid):
    """Uid, permitted capabilities, and whether it can get new ones."""
    with open(f"/proc/{pid}/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["Uid"].split()[1]), int(lines["CapPrm"], 16), int(lines["NoNewPrivs"]), int(lines["Seccomp_filters"])


def look_at_rights(target):
    """Of a tccld that has become another user, and of its monitor."""
    pid = target.tcclds[0].pid
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        monitor = int(file.read())
    comes(lambda: rights(monitor)[1] == 1 << 0 | 1 << 3 and rights(monitor)[3] > rights(pid)[3])  # it gives them up by itself
    check(rights(pid)[:3] == (TCCLD, 0, 1), f"tccld is uid {TCCLD} and has no capability: {rights(pid)}")
    check(rights(monitor)[:3] == (0, 1 << 0 | 1 << 3, 1), f"its monitor is root and has CAP_CHOWN and CAP_FOWNER: {rights(monitor)}")
    check(rights(monitor)[3] == rights(pid)[3] + 1, "the monitor has a filter of system calls of its own")
    return pid, monitor


def kill_one(which):
    """tccld and its monitor end together."""
    with Target(nodes=1, user="bin") as target:
        both = look_at_rights(target)
        os.kill(both[which], 9)
        ended = target.tcclds[0].wait(daemons.PATIENCE)
        check(ended == (-9 if which == 0 else 1), f"{('tccld', 'the monitor')[which]} was killed: tccld ends with {ended}")
        check(comes(lambda: not os.path.exists(f"/proc/{both[1]}")), f"{('tccld', 'the monitor')[which]} was killed: there is no monitor")
        daemons.children.remove(target.tcclds[0])


def main():
    if platform.machine() != "x86_64" or not shutil.which("systemd-analyze"):
        skip("needs x86-64, and systemd-analyze for its sets of system calls")
    if subprocess.run(["unshare", "--mount", "mount", "-t", "proc", "-o", "subset=pid", "proc", "/proc"], stderr=subprocess.DEVNULL).returncode:
        skip("nothing can be mounted here")
    daemons.spawn = spawn_confined
    with Target(nodes=2, user="bin") as target:
        look_at_rights(target)
        serve(target)
    for which in range(2):
        kill_one(which)
    with Target(nodes=2, user=None) as target:
        serve(target)
        sleeper = subprocess.Popen(["setpriv", "--reuid=1", "--regid=1", "--clear-groups", "sleep", "1000"])
        target.undo.callback(sleeper.kill)
        folder = f"{target.folder}/probe"
        os.makedirs(folder)
        for which in UNITS:
            probe(which, folder, sleeper.pid)
        sleeper.kill()
        sleeper.wait()
        cache = f"{folder}/cache"
        arguments = ["-q", "--model", MODEL, "--cache", cache, "--gpus", "0,1"]
        subprocess.run([TOOL, "run", *arguments], stdin=subprocess.DEVNULL, check=True)
        os.makedirs(f"{folder}/none")
        done = subprocess.run(under("tccl-profile", f"{folder}/none", TOOL, "run", "--check", *arguments), stdin=subprocess.DEVNULL)
        check(done.returncode in (0, 3), f"the profile is checked: status {done.returncode}")
    verdict()


spawn = daemons.spawn
if sys.argv[1:2] == ["--try"]:
    try_all(sys.argv[2], int(sys.argv[3]))
else:
    main()
