#!/bin/bash
# The way from the first node to the second one's tccld loses packets, and the second node's slurmd sleeps, so that
# nothing comes from there. Where all are lost (a port whose queue is full: the kernel drops them), the wait ends for all
# nodes, with the AliveTimeout= that sites have; where only the first connection of several fails, because nothing is
# heard on it or it is reset, the node is waited for, and there is a ring.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 3
sed -i '/^AliveTimeout=/d' "$cluster/tccl.conf" # the default
first=$(sed -nE 's/^n\[1-3\]=.*:([0-9]+)-.*/\1/p' "$cluster/tccl.conf")

cat >"$work/way" <<'PYTHON'
"""way PORT lost|silent|reset FILE: to a tccld on PORT; FILE: the own port, then a line per connection."""
import socket, struct, sys, threading
to, kind, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
log = open(path, "w", buffering=1)
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0 if kind == "lost" else 64)
filling = socket.create_connection(listener.getsockname())  # the queue's only place
if kind != "lost":
    listener.accept()
print(listener.getsockname()[1], file=log)


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


kept = []
while True:
    if kind == "lost":
        threading.Event().wait()
    peer = listener.accept()[0]
    kept.append(peer)
    if len(kept) % (2 if kind == "reset" else 3) == 1:  # the second one only asks whether it is busy
        print("failed", file=log)
        if kind == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
        continue
    print("forwarded", file=log)
    other = socket.create_connection(("127.0.0.1", to))
    threading.Thread(target=copy, args=(peer, other), daemon=True).start()
    threading.Thread(target=copy, args=(other, peer), daemon=True).start()
PYTHON

# n1's tccld reaches n2's this way. Sets way.
go_by() { # lost|silent|reset
    rm -f "$work/connections"
    python3 "$work/way" $((first + 1)) "$1" "$work/connections" &
    way=$!
    eventually "the way" test -s "$work/connections"
    {
        grep -v '^n\[1-3\]=' "$cluster/tccl.conf"
        printf '%s\n' "n1=127.0.0.1:$first" "n2=127.0.0.1:$(head -n 1 "$work/connections")" "n3=127.0.0.1:$((first + 2))"
    } >"$work/tccl.conf"
    rm -f "$cluster/nodes/n1/run/hung"
    admin tccld --foreground --config "$work/tccl.conf" --node n1 >>"$cluster/log/tccld@n1.out" 2>&1 &
    tccld=$!
    eventually "tccld of n1" test -S "$cluster/nodes/n1/tccld.sock"
}

stay() {
    kill "$way" "$(<"$cluster/nodes/n1/tccld.sock.lock")"
    wait "$way" "$tccld" || true
}
trap 'status=$?; kill -CONT "$(<"$cluster/pid/slurmd@n2")" || true; kill $way $(<"$cluster/nodes/n1/tccld.sock.lock") 2>/dev/null || true; end_own_cluster "$cluster" $status' EXIT

# A step, while n2's slurmd sleeps until COMMAND has come true.
sleep_until() { # COMMAND...
    rm -f "$work"/seen/* "$work/go" "$work/allocated"
    printf '%s\n' '#!/bin/bash' "touch $work/allocated" "until [ -e $work/go ]; do sleep 0.1; done" \
        "srun --ntasks-per-node=1 --tccl=on $work/show" >"$work/job"
    job=$(user sbatch --parsable --output="$work/err" -N3 --gpus-per-node=4 "$work/job")
    eventually "the job" test -e "$work/allocated"
    kill -STOP "$(<"$cluster/pid/slurmd@n2")"
    touch "$work/go"
    "$@"
    kill -CONT "$(<"$cluster/pid/slurmd@n2")"
    eventually "end of job $job" job_ended "$job"
    collect
    cat "$work/err"
}
started() { [ "$(find "$work/seen" -type f | wc -l)" = "$1" ]; }
lines() { [ "$(grep -c "^$1$" "$work/connections")" -ge "$2" ]; }

mini stop-tccld n1
echo "--- all is lost"
go_by lost
sleep_until eventually "tasks of n1 and n3, without n2" started 2
no_ring 3 'n[23]: no * within * ms (127.0.0.1:*)'
says 'tccl: no ring: n[23]: no * within * ms (127.0.0.1:*)*'
stay

for kind in silent reset; do
    echo "--- the first connection is $kind"
    go_by $kind
    forwarded=2
    [ $kind != silent ] || forwarded=4 # whether it is busy is asked first, each time
    sleep_until eventually "n2's second answer" lines forwarded $forwarded
    has_ring 3
    lines failed 2 || fail "no connection has failed"
    stay
done
