#!/bin/bash
# While hundreds of peers hold connections to a tccld and say nothing, steps get their ring.
# cluster: mixed
. "$(dirname "$0")/lib.sh"

python3 - "$cluster/nodes/n2/tccld.sock" <<'PYTHON' &
import socket, sys, time
end = time.time() + 8
while time.time() < end:
    peers = []
    for _ in range(100):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(1)
        try:
            peer.connect(sys.argv[1])
        except OSError:
            pass
        peers.append(peer)
    time.sleep(0.2)
PYTHON
crowd=$!
for round in 1 2 3; do
    srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    equal "exit status" "$status" 0
    applied 2
done
wait $crowd
