#!/usr/bin/env python3
"""planted: in folders that nobody (TccldUser) may write, links, hard links, pipes, devices and huge files stand where root reads and
writes profiles, and where a tccld of root's has its socket, locks and records. Root changes no file of its own, shows none, and waits
for nothing. Another user wants to read a plan: it is its job's user's alone.
# level: quick
"""
import json
import os
import pwd
import shutil
import subprocess
import sys
import time

from attack import NOBODY, Target, check, daemons, record, verdict

OWNER, STRANGER = pwd.getpwnam("daemon").pw_uid, pwd.getpwnam("bin").pw_uid
GROUP = 4711  # of the job
TOOL = f"{daemons.BUILD}/profiler/tccl-profile"
MODEL = f"{daemons.HERE}/machines/amd-4gpu.json"


def profile(folder, cache):
    return subprocess.run([TOOL, "run", "-q", "--model", MODEL, "--cache", cache, "--gpus", "0,1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, extra_groups=[0])


def files(folder):
    return {name: os.path.isfile(f"{folder}/{name}") and open(f"{folder}/{name}", "rb").read() for name in sorted(os.listdir(folder))}


def plant(folder):
    """Root's folder, and caches of nobody's that lead there."""
    roots = f"{folder}/roots"
    os.makedirs(roots)
    os.chmod(roots, 0o775)  # and the group of nobody's folders is root's
    open(f"{roots}/victim", "w").write("root's\n")
    shutil.chown(folder, "root")
    good = f"{folder}/good"
    os.makedirs(good)
    os.chown(good, NOBODY, -1)
    done = profile(folder, good)
    check(done.returncode == 0, f"root measures into nobody's folder: {done.stdout.strip()[-80:]}")
    name = os.listdir(good)[0]
    check(all(os.stat(os.path.join(at, each)).st_uid == NOBODY for at, _, each_of in os.walk(good) for each in each_of),
          "what root wrote there is nobody's")
    before = files(roots)
    for what in ("the profile's folder", "chains", "sets.jsonl", "sets.jsonl, to a file that is not there", "a pipe"):
        cache = f"{folder}/cache"
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cache)
        if what == "the profile's folder":
            os.symlink(roots, f"{cache}/{name}")
            os.chown(f"{cache}/{name}", NOBODY, -1, follow_symlinks=False)
        else:
            os.makedirs(f"{cache}/{name}")
            link = f"{cache}/{name}/" + ("chains" if what == "chains" else "sets.jsonl")
            if what == "a pipe":
                os.mkfifo(link)
            else:
                os.symlink({"chains": roots, "sets.jsonl": f"{roots}/victim"}.get(what, f"{roots}/new"), link)
            os.chown(f"{cache}/{name}", NOBODY, -1)
            os.chown(link, NOBODY, -1, follow_symlinks=False)
        os.chown(cache, NOBODY, -1)
        profile(folder, cache)
        check(files(roots) == before, f"{what}: nothing of root's is changed")
        for each in set(os.listdir(roots)) - set(before):
            shutil.rmtree(f"{roots}/{each}", ignore_errors=True)
            if os.path.exists(f"{roots}/{each}"):
                os.unlink(f"{roots}/{each}")


SECRET = "Xq7secret"  # in a file of root's alone


def read_with(cache, folder, *arguments):
    """What root's tool says of a cache; it may need no more memory than this."""
    done = subprocess.run(["bash", "-c", 'ulimit -v 4000000; exec "$0" "$@"', TOOL, *arguments, "--cache", cache], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=60)
    return done.returncode, done.stdout


def plant_file(what, path, folder):
    """Something of nobody's in the place of one file of a profile."""
    os.unlink(path)
    secret, open_to_all = f"{folder}/roots/secret", f"{folder}/roots/open"
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a huge file":
        with open(path, "wb") as file:
            file.truncate(1 << 42)
    elif what == "a device":
        os.symlink("/dev/zero", path)
    elif what == "a link to a secret":
        os.symlink(secret, path)
    elif what == "a second name of a secret":
        os.link(secret, path)
    elif what == "a second name of what all may write":
        os.link(open_to_all, path)
    if what != "a second name of a secret" and what != "a second name of what all may write":
        os.chown(path, NOBODY, -1, follow_symlinks=False)


def swap(path, good, others):
    """nobody exchanges a file for others while it is read."""
    while True:
        for other in (*others, good):
            os.link(other, path + ".x", follow_symlinks=False)
            os.rename(path + ".x", path)


def read(target, folder):
    """What root reads of nobody's."""
    good, name = f"{folder}/good", os.listdir(f"{folder}/good")[0]
    roots = f"{folder}/roots"
    with open(f"{roots}/secret", "w") as file:
        file.write(f"{SECRET} " * 8 + "\n")
    os.chmod(f"{roots}/secret", 0o600)
    with open(f"{roots}/open", "w") as file:
        file.write("root's\n")
    os.chmod(f"{roots}/open", 0o666)
    before = files(roots)
    table = os.listdir(f"{good}/{name}/chains")[0]
    for what in ("a pipe", "a huge file", "a device", "a link to a secret", "a second name of a secret", "a second name of what all may write"):
        told, passed = [], 0
        for each in ("machine.json", "profile.json", "model.json", "sets.jsonl", f"chains/{table}"):
            cache = f"{folder}/cache"
            shutil.rmtree(cache, ignore_errors=True)
            subprocess.run(["cp", "-a", good, cache], check=True)
            plant_file(what, f"{cache}/{name}/{each}", folder)
            code, text = read_with(cache, folder, "verify")
            told.append(text)
            passed += code == 0
            told.append(profile(folder, cache).stdout)
        check(not any(SECRET in text for text in told), f"{what}: nothing of a secret is shown")
        check(passed == 0, f"{what}: root's tool says that the profile is bad{'' if passed == 0 else f', but not {passed} times'}")
        check(files(roots) == before, f"{what}: nothing of root's is changed")
    # While it is read.
    shutil.rmtree(f"{folder}/cache")
    subprocess.run(["cp", "-a", good, f"{folder}/cache"], check=True)
    path = f"{folder}/cache/{name}/machine.json"
    others = [f"{folder}/cache/{what}" for what in ("pipe", "link")]
    os.mkfifo(others[0])
    os.symlink(f"{roots}/secret", others[1])
    subprocess.run(["cp", "-a", path, f"{folder}/cache/whole"], check=True)
    for each in others:
        os.chown(each, NOBODY, -1, follow_symlinks=False)
    swapping = target.fork(swap, path, f"{folder}/cache/whole", others)
    told = [read_with(f"{folder}/cache", folder, "verify") for _ in range(40)]
    os.kill(swapping, 9)
    target.wait(swapping)
    check(len({code for code, _ in told}) == 2, "while it is exchanged, a profile is good at times, and bad at times")
    check(not any(SECRET in text for _, text in told), "while it is exchanged, nothing of a secret is shown")


def begin(folder, user):
    """A tccld of that user; what it says, where it does not start."""
    child = daemons.spawn(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", f"{daemons.BUILD}/profiler/tccld",
                           "--config", f"{folder}/tccl.conf", "--node", "n1"], f"{folder}/log")
    if daemons.wait_for_socket(f"{folder}/n1/tccld.sock", child):
        return child, ""
    daemons.children.remove(child)
    with open(f"{folder}/log") as file:
        return None, file.read()


def stop(child):
    child.terminate()
    child.wait(daemons.PATIENCE)
    daemons.children.remove(child)


def prepare(folder, user):
    os.makedirs(folder)
    os.chmod(folder, 0o755)
    daemons.prepare_nodes(folder, [daemons.parse_node("amd-4gpu")])
    daemons.write_conf(folder, daemons.free_ports(1))
    with open(f"{folder}/tccl.conf") as file:
        text = file.read().replace("User=root", f"User={pwd.getpwuid(user).pw_name}")
    text = text.replace(f"MungeSocket={folder}", f"MungeSocket={os.path.dirname(folder)}")
    with open(f"{folder}/tccl.conf", "w") as file:
        file.write(text)


KEY = {"cluster": "rig", "job": 7, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}


def join(folder):
    """The plan of a step of OWNER's."""
    with daemons.connect(folder, 0) as peer:
        daemons.send(peer, {"type": "join", "key": KEY, "node": 0, "nodes": "n1", "gres": [0, 1, 2, 3], "mode": "on", "uid": OWNER,
                            "gid": GROUP, "timeout_ms": 60000, "min_nodes": 0, "min_gpus": 0})
        return daemons.receive(peer)


def leave(folder):
    with daemons.connect(folder, 0) as peer:
        daemons.send(peer, {"type": "leave", "key": KEY})
        daemons.receive(peer)


def query(folder):
    with daemons.connect(folder, 0) as peer:
        daemons.send(peer, {"type": "query", "filter": {"end": 1 << 40}})
        return daemons.receive(peer)


def put_record(path):
    """A store with a record that nobody has made up."""
    made = subprocess.run([f"{daemons.BUILD}/testsuite/unit/put-records", path], input=json.dumps(record(4711, uid=0)), text=True)
    if made.returncode:
        daemons.die("the record can't be put into a store")


def serve(folder):
    """A tccld of root's, in folders that are nobody's: TccldUser= was nobody before."""
    prepare(folder, 0)
    roots, node = f"{folder}/roots", f"{folder}/n1"
    os.makedirs(roots)
    for name in ("lock", "ledger", "store", "wal", "mode", "outbox"):
        with open(f"{roots}/{name}", "w") as file:
            file.write("root's\n")
    before = files(roots), os.stat(f"{roots}/mode").st_mode
    os.link(f"{roots}/lock", f"{node}/tccld.sock.lock")
    os.symlink(f"{roots}/mode", f"{node}/tccld.sock.new")
    os.link(f"{roots}/ledger", f"{node}/run/records")
    os.symlink(f"{roots}/store", f"{node}/state/records.db")
    os.symlink(f"{roots}/wal", f"{node}/state/records.db-wal")
    os.symlink(f"{roots}/outbox", f"{node}/state/outbox.db")
    subprocess.run(["chown", "-hR", "--from=root", "nobody", node], check=True)
    for name in ("lock", "ledger"):
        os.chown(f"{roots}/{name}", 0, -1)
    child, said = begin(folder, 0)
    check(not child and "tccld.sock.lock" in said, "a lock with a second name: tccld does not take it, and says so")
    os.unlink(f"{node}/tccld.sock.lock")
    child, said = begin(folder, 0)
    if child:
        plan = join(folder)
        check(plan.get("path"), "a step has its ring in a folder of nobody's")
        with open(f"{folder}/log") as file:
            check("others than root may change it" in file.read(), "records are not kept in a StateDir of nobody's: the log says so")
        check(os.stat(f"{node}/tccld.sock").st_uid == NOBODY, "what root made in nobody's folder is nobody's")
        leave(folder)
        store = f"{node}/state/records.db"
        for name in ("records.db", "records.db-wal"):
            os.unlink(f"{node}/state/{name}")
        put_record(store)
        os.chown(store, NOBODY, -1)
        check(query(folder)["type"] == "error", "records that nobody has made up are not shown")
        os.unlink(store)
        os.mkfifo(store)
        os.chown(store, NOBODY, -1)
        check(query(folder)["type"] == "error", "a question does not wait for a pipe")
        stop(child)
    check(child, f"tccld starts{said}")
    check((files(roots), os.stat(f"{roots}/mode").st_mode) == before, "nothing of root's is changed by tccld")


def keep(folder):
    """A tccld of root's in a StateDir that is root's again, with an outbox that still is a link of nobody's."""
    prepare(folder, 0)
    state, victim = f"{folder}/n1/state", f"{folder}/victim"
    with open(victim, "w") as file:
        file.write("root's\n")
    os.makedirs(state, exist_ok=True)
    os.symlink(victim, f"{state}/outbox.db")
    os.chown(f"{state}/outbox.db", NOBODY, -1, follow_symlinks=False)
    for what in ("nobody's link", "root's own"):
        child, said = begin(folder, 0)
        if not child:
            daemons.die(f"tccld does not start: {said}")
        check(join(folder).get("path"), f"a step has its ring where the outbox is {what}")
        leave(folder)
        stop(child)
        with open(victim) as file:
            check(file.read() == "root's\n", f"nothing of root's is changed where the outbox is {what}")
        if what == "nobody's link":
            os.unlink(f"{state}/outbox.db")
    check(os.path.isfile(f"{state}/outbox.db") and not os.path.islink(f"{state}/outbox.db"), "then it has an outbox of its own")


def opens_as(path, uid, gid):
    """May that user read it, whose group that is?"""
    return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "cat", path], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def plans(folder, user, bare=False):
    """A tccld of that user, whom root's JOIN asks for a job of another user. bare: RunDir can't have ACLs."""
    prepare(folder, user)
    whose = f"tccld of {pwd.getpwuid(user).pw_name}{', no ACLs' if bare else ''}"
    if bare and subprocess.run(["mount", "-t", "ramfs", "none", f"{folder}/n1/run"], stderr=subprocess.DEVNULL).returncode:
        print(f"{whose}: nothing can be mounted here: left out")
        return
    try:
        subprocess.run(["chown", "-R", str(user), f"{folder}/n1"], check=True)
        os.chmod(f"{folder}/n1/run", 0o711)
        child, said = begin(folder, user)
        if not child:
            daemons.die(f"tccld does not start: {said}")
        plan = join(folder)
        path = plan.get("path")
        if bare and user:
            check(not path and "can't be written" in plan.get("reason", ""), f"{whose}: no ring, and the reason says why: {plan.get('reason')}")
        elif not path:
            check(False, f"{whose}: there is a plan: {plan}")
        else:
            for uid, gid, may in ((OWNER, GROUP, True), (OWNER, STRANGER, not bare), (user, user, True), (STRANGER, GROUP, bare),
                                  (STRANGER, STRANGER, False)):
                who = f"{pwd.getpwuid(uid).pw_name} in the {'job' if gid == GROUP else 'user'}'s group"
                check(opens_as(path, uid, gid) == may, f"{whose}: {who} {'can' if may else 'can not'} read the plan")
        leave(folder)
        stop(child)
    finally:
        if bare:
            subprocess.run(["umount", "-l", f"{folder}/n1/run"], check=True)


def main():
    with Target() as target:
        plant(f"{target.folder}/planted")
        read(target, f"{target.folder}/planted")
        serve(f"{target.folder}/serve")
        keep(f"{target.folder}/keep")
        for user in (0, NOBODY):
            for bare in (False, True):
                plans(f"{target.folder}/plans-{user}-{int(bare)}", user, bare)
    verdict()


main()
