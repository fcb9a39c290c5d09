#!/bin/bash
# While hundreds of peers hold connections to a tccld and say nothing, steps get their ring.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

python3 - "$cluster/nodes/n2/tccld.sock" "$work/over" <<'PYTHON' &
import os, socket, sys, time
end = time.monotonic() + 900
while time.monotonic() < end and not os.path.exists(sys.argv[2]):
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
at_end+=("kill $crowd 2>/dev/null || true")
for round in 1 2 3; do
    srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    equal "exit status" "$status" 0
    has_ring 2
done
touch "$work/over"
wait $crowd
