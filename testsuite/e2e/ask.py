"""ask.py TYPE [MEMBERS]: asks tccld about the step that this runs in, as the runtime shim does.

MEMBERS: a JSON object that is added to the message. The plan is $TCCL_PLAN. Prints the answer."""
import json
import os
import socket
import struct
import sys

with open(os.environ["TCCL_PLAN"]) as file:
    plan = json.load(file)
message = {"v": 1, "type": sys.argv[1], "key": plan["key"]}
message.update(json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
with socket.socket(socket.AF_UNIX) as peer:
    peer.settimeout(20)
    peer.connect(plan["socket"])
    data = json.dumps(message).encode()
    peer.sendall(struct.pack(">I", len(data)) + data)
    stream = peer.makefile("rb")
    size = struct.unpack(">I", stream.read(4))[0]
    print(json.dumps(json.loads(stream.read(size))))
