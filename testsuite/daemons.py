"""daemons.py: a munged and tccld of a test's own, in a folder of its own: their profiles are those of models of machines/.
What is said to them is said as Slurm's plugin would. Who starts them calls end_all() in the end."""
import contextlib
import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("TCCL_BUILD", os.path.join(HERE, "..", "build")))
TCCLD = os.environ.get("TCCL_TCCLD", f"{BUILD}/profiler/tccld")
PATIENCE = 300  # seconds: for a busy machine
children = []


def die(text, status=1):
    print(f"tccl: {os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(status)


def die_late(text):
    die(text, 75)


@contextlib.contextmanager
def uninterrupted():
    """The runner's SIGTERM comes when this has ended."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def go_ahead():
    """Ahead of other programs where that is allowed: what is asked here has deadlines."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    except OSError:
        pass


def spawn(command, log):
    with open(log, "ab") as file, uninterrupted():
        children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                         preexec_fn=go_ahead))
    return children[-1]


def listens(path):
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.connect(path)
        return True
    except OSError:
        return False
    finally:
        peer.close()


def wait_for_socket(path, process):
    """Does the process listen, in the end?"""
    deadline = time.monotonic() + PATIENCE
    while not listens(path):
        if process.poll() is not None:
            return False
        if time.monotonic() > deadline:
            die_late(f"nobody listens at {path}")
        time.sleep(0.02)
    return True


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start_munged(folder):
    """Of our own: nobody else's credentials are good. And no slurmd is tccld's, whatever runs here."""
    os.environ["SLURM_CONF"] = f"{folder}/slurm.conf"
    os.makedirs(f"{folder}/munge", mode=0o755)
    with open(f"{folder}/munge/key", "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(os.urandom(128))
    process = spawn(["munged", "--foreground", f"--socket={folder}/munge/socket", f"--key-file={folder}/munge/key",
                     f"--seed-file={folder}/munge/seed", f"--pid-file={folder}/munge/pid", "--num-threads=2",
                     "--force"], f"{folder}/munge/log")
    if not wait_for_socket(f"{folder}/munge/socket", process):
        die("munged has ended")


def groups_of_eight():
    """Those that layouts of parallel jobs have: halves, pairs and single GPUs."""
    pairs = [f"{a},{a + 1}" for a in range(0, 8, 2)] + [f"{a},{a + 4}" for a in range(4)]
    return ["0-3", "4-7", "0,2,4,6", "1,3,5,7", *pairs, *map(str, range(8))]


def profile_of(model, gpus):
    """Of the subsets of these GPUs, made once for a build."""
    subsets = "all" if len(gpus) <= 4 else " ".join([",".join(map(str, gpus)), *groups_of_eight()])
    store = f"{BUILD}/testsuite/nccl/profiles/{os.path.basename(model)}-{subsets.split()[0]}"
    tool = f"{BUILD}/profiler/tccl-profile"
    newest = max(os.path.getmtime(model), os.path.getmtime(tool))
    os.makedirs(os.path.dirname(store), exist_ok=True)
    with open(f"{store}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run beside each other
        if not os.path.exists(f"{store}/done") or os.path.getmtime(f"{store}/done") < newest:
            shutil.rmtree(store, ignore_errors=True)
            os.makedirs(store)
            run_quietly([tool, "init", "--model", model, "--machine", f"{store}/machine.json"])
            run_quietly([tool, "run", "-q", "--model", model, "--cache", f"{store}/cache"] +
                        ([] if subsets == "all" else ["--gpus", subsets, "--budget", "500"]))
            open(f"{store}/done", "w").close()
    return store


def run_quietly(command):
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        die(f"{' '.join(command)}: {made.stdout}")


def write_conf(folder, ports, more=()):
    user = pwd.getpwuid(os.getuid()).pw_name
    lines = ["[tccl]", f"Socket={folder}/%n/tccld.sock", f"RunDir={folder}/%n/run", f"CacheDir={folder}/%n/cache",
             f"StateDir={folder}/%n/state", f"Machine={folder}/%n/machine.json", f"MungeSocket={folder}/munge/socket",
             "BindAddr=127.0.0.1", "Squeue=none", f"TccldUser={user}", f"MungeUser={user}", "AccountingHost=n1", *more, "[peers]"]
    lines += [f"n{i + 1}=127.0.0.1:{port}" for i, port in enumerate(ports)]
    with open(f"{folder}/tccl.conf", "w") as file:
        file.write("\n".join(lines) + "\n")


def give_folders(folder, nodes, user):
    """To the user that tccld becomes: the folders of nodes aren't tccld's alone, so it does not do it by itself."""
    subprocess.run(["chown", "-R", f"{user}:", *(f"{folder}/n{i + 1}" for i in range(len(nodes)))], check=True)


def prepare_nodes(folder, nodes):
    for i, (model, gpus) in enumerate(nodes):
        store = profile_of(model, gpus)
        os.makedirs(f"{folder}/n{i + 1}/run")
        os.makedirs(f"{folder}/n{i + 1}/state", exist_ok=True)
        shutil.copy(f"{store}/machine.json", f"{folder}/n{i + 1}/machine.json")
        shutil.copytree(f"{store}/cache", f"{folder}/n{i + 1}/cache")


def lacks_port(log):
    with open(log) as file:
        return "can't listen" in file.read()


def start_tccld(folder, nodes, more=()):
    """Do all of them run?"""
    started = []
    write_conf(folder, free_ports(len(nodes)), more)
    for i in range(len(nodes)):
        started.append(spawn([TCCLD, "--config", f"{folder}/tccl.conf", "--node", f"n{i + 1}"],
                             f"{folder}/n{i + 1}/log"))
        if not wait_for_socket(f"{folder}/n{i + 1}/tccld.sock", started[-1]) or lacks_port(f"{folder}/n{i + 1}/log"):
            for process in started:
                process.kill()
                process.wait()
                children.remove(process)
            return False
    return True


def uids(process):
    with open(f"/proc/{process.pid}/status") as file:
        return next(line.split()[1:] for line in file if line.startswith("Uid:"))


def check_user(process, user=None):
    """That a tccld which listens is the user whom it was to become; None: it has stayed who started it."""
    uid = pwd.getpwnam(user).pw_uid if user else os.getuid()
    if uids(process) != [str(uid)] * 4:
        die(f"tccld runs as {uids(process)}, not as {uid}")


def start_nodes(folder, nodes, more=(), user=None):
    """A tccld for each node, n1, n2, ..., which listens; more: lines of tccl.conf, section [tccl]; user: whom root's tccld
    becomes. Ports that are free may be taken by somebody else before tccld has them: tried anew."""
    prepare_nodes(folder, nodes)
    if user:
        give_folders(folder, nodes, user)
        more = [*more, f"TccldUser={user}"]
    if not any(start_tccld(folder, nodes, more) for _ in range(5)):
        die("tccld does not start")
    for process in children[-len(nodes):]:
        check_user(process, user)


def parse_node(text):
    model, _, gpus = text.partition(":")
    file = model if os.path.exists(model) else os.path.join(HERE, "machines", model + ".json")
    with open(file) as opened:
        count = len(json.load(opened)["machine"]["gpus"])
    chosen = []
    for part in gpus.split(",") if gpus else []:
        first, _, last = part.partition("-")
        chosen += range(int(first), int(last or first) + 1)
    return os.path.abspath(file), chosen or list(range(count))


def send(peer, message):
    data = json.dumps({"v": 1, **message}).encode()
    peer.sendall(struct.pack(">I", len(data)) + data)


def receive_bytes(peer):
    """The content of a frame; None if the other side hangs up."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack(">I", data[:4])[0]:
        more = peer.recv(65536)
        if not more:
            return None
        data += more
    return data[4:]


def receive(peer):
    return json.loads(receive_bytes(peer) or die("tccld hung up"))


def connect(folder, node):
    """As libraries do: where tccld has as many to accept as it may, a little later. With a timeout a socket does not wait itself."""
    peer, deadline = socket.socket(socket.AF_UNIX), time.monotonic() + PATIENCE
    peer.settimeout(PATIENCE)
    while True:
        try:
            peer.connect(f"{folder}/n{node + 1}/tccld.sock")
            return peer
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.002)


def join_all(folder, nodes, key):
    peers = []
    for i, (_, gpus) in enumerate(nodes):
        peers.append(connect(folder, i))
        send(peers[-1], {"type": "join", "key": key, "node": i, "nodes": ",".join(f"n{k + 1}" for k in range(len(nodes))),
                         "gres": gpus, "mode": "on", "uid": os.getuid(), "gid": os.getgid(), "timeout_ms": PATIENCE * 500,
                         "hidden": bool(os.environ.get("TCCL_HIDDEN")), "whole": True, "min_nodes": 0, "min_gpus": 0, "user": "tester",
                         "partition": "all", "job_name": "rig"})
    plans = [receive(peer) for peer in peers]
    for peer in peers:
        peer.close()
    for plan in plans:
        if "path" not in plan:
            die_late(f"no plan: {plan}")
    return [plan["path"] for plan in plans]


def ask(folder, node, message):
    """The answer. On a busy machine we may have no time to send within the second that tccld waits: once more then."""
    for _ in range(20):
        with connect(folder, node) as peer, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            send(peer, message)
            return receive(peer)
    die_late("tccld closes connections before anything is sent")


def leave_all(folder, nodes, key):
    for i in range(len(nodes)):
        with contextlib.suppress(ConnectionRefusedError):  # a test has killed it
            ask(folder, i, {"type": "leave", "key": key})


def query(folder):
    return ask(folder, 0, {"type": "query", "filter": {}}).get("records", [])


def end_all():
    """What was started, the last first."""
    for child in reversed(children):
        child.send_signal(signal.SIGTERM)
    for child in children:
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    children.clear()
