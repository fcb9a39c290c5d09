"""ask.py TYPE [KEY=VALUE]...: asks tccld about the step that this runs in, as the runtime shim does: "tccl-TYPE 1",
the key of the plan $TCCL_PLAN, and the lines "KEY VALUE". Prints the answer, its lines with "; " between.

ask.py --plan KEY: prints a fact of the plan."""
import os
import socket
import struct
import sys

KEY = ["cluster", "job", "het_job", "het_offset", "step", "restart", "run"]

with open(os.environ["TCCL_PLAN"]) as file:
    plan = dict(line.rstrip("\n").partition(" ")[::2] for line in file)
if sys.argv[1] == "--plan":
    print(plan[sys.argv[2]])
    sys.exit()
lines = [f"tccl-{sys.argv[1]} 1"] + [f"{name} {plan[name]}" for name in KEY]
lines += [argument.replace("=", " ", 1) for argument in sys.argv[2:]] + ["end"]
with socket.socket(socket.AF_UNIX) as peer:
    peer.settimeout(20)
    peer.connect(plan["socket"])
    data = "".join(line + "\n" for line in lines).encode()
    peer.sendall(struct.pack(">I", len(data)) + data)
    stream = peer.makefile("rb")
    size = struct.unpack(">I", stream.read(4))[0]
    print("; ".join(stream.read(size).decode().splitlines()))
