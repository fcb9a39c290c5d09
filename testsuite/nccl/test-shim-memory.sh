#!/bin/bash
# Bounce buffers: the rank that receives has them on the plan's NUMA node, without a setting: in cuMem mode by the driver's
# answer to NCCL, in the older mode by a memory policy (cumem=off) while its communicator is made, and not longer. This
# machine has one node: numa-nodes.c shows the model's. What is left alone has its buffers where NCCL has them.
# NCCL is kept from clearing its table of a graph file, so that takes no memory. Where it can't be kept from it (a copy of it that says
# that its pointers to functions are write-protected) only communicators of all GPUs have one; and none where limits leave too little memory.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

bounces() { # CHAIN [OPTION]...
    rm -rf "$work"/policies "$work/logs"
    make_plans "amd-4gpu:0,2,3=$1"
    run_planned amd-4gpu --gpus 0,2,3 --log "$work/logs" --set "TCCL_RIG_POLICIES=$work/policies" "${@:2}"
    as_planned
}

# For each process and service thread of NCCL's that has host buffers, in order: the nodes that they are on.
nodes() {
    local log
    for log in "$work"/logs/node*; do
        sed -n 's/^[^:]*:[0-9]*:\([0-9]*\) .*CUMEM Host Alloc.* numa \([0-9]*\) .*/\1 \2/p' "$log" | uniq | cut -d ' ' -f 2 | paste -sd ' '
    done
}

policies() { # MODE: the nodes of those that were set
    sed -n "s/^[0-9]* $1 //p" "$work/policies" | sort | paste -sd ' '
}

step "each rank has its own"
bounces "0 -m1> 3 -m2> 2 -m3> 0"
[ "$(nodes)" = "$(printf '%s\n' 3 2 1)" ] || fail "on nodes $(nodes)"
bounces "0 -m1> 3 -m3> 2 -m0> 0"
[ "$(nodes)" = "$(printf '%s\n' 0 3 1)" ] || fail "on nodes $(nodes)"
[ "$(policies preferred)" = "0 1 3" ] || fail "asked for $(policies preferred)"
step "and gives it back"
[ "$(policies default)" = "-1 -1 -1" ] || fail "not restored: $(cat "$work/policies")"
while read -r thread _; do
    [ "$(grep "^$thread " "$work/policies" | tail -n 1)" = "$thread default -1" ] || fail "not restored: $(cat "$work/policies")"
done <"$work/policies"
said WARN 0

step "in the older mode, too"
cumem=off
bounces "0 -m1> 3 -m3> 2 -m0> 0"
[ "$(policies preferred)" = "0 1 3" ] && [ -z "$(nodes)" ] || fail "asked for $(policies preferred), on nodes $(nodes)"
cumem=on

step "two nodes: the way to the network goes by the memory of the plan, too"
rm -f "$work"/policies
make_plans "intel-4gpu:0,1=mlx5_0 -m2> 0 -w> 1 -m1> mlx5_0" "intel-4gpu:0,1=mlx5_0 -m0> 0 -m1> 1 -m3> mlx5_0"
run_planned intel-4gpu --gpus 0,1 --nodes 2 --set "TCCL_RIG_POLICIES=$work/policies"
as_planned
[ "$(policies preferred)" = "0 1 1 2" ] || fail "asked for $(policies preferred)"
said "TCCL WARN buffers for the network are on NUMA node 1, planned was 3" 1

step "in a container that forbids memory policies the ring is built, but not as planned"
"${CC:-cc}" -std=gnu17 -O1 -o "$work/refuse-mempolicy" "$here/refuse-mempolicy.c" || fail "refuse-mempolicy can't be built"
make_plans "amd-4gpu:0,2,3=0 -m0> 3 -m0> 2 -m0> 0"
run_planned amd-4gpu --gpus 0,2,3 --set TCCL_RIG_NUMA=0 --under "$work/refuse-mempolicy"
as_planned
said "TCCL WARN buffers in host memory are where the kernel puts them, not where the ring wants them: get_mempolicy: Operation not permitted" 3
said "differs: buffers in host memory are where the kernel puts them, not where the ring wants them: get_mempolicy: Operation not permitted" 1
said "built as planned" 0

step "limits that NCCL alone keeps to"
cat >"$work/limited" <<'LIMITED'
#!/bin/sh
ulimit -d 900000
exec "$@"
LIMITED
chmod 755 "$work/limited"
make_plans "amd-4gpu:0,2,3=0 -m1> 3 -m2> 2 -m3> 0"
as_alone amd-4gpu --gpus 0,2,3 --under "$work/limited" --cpu zhaoxin
said "TCCL INFO a graph file is needed.*neither AMD" 1
said "TCCL WARN .*the limits of process"

step "which are no matter where a topology file does"
run_planned amd-4gpu --gpus 0,2,3 --under "$work/limited"
as_planned
said "TCCL INFO .*; topology file" 1
said "graph file" 0

step "nor between two GPUs at AMD's CPUs, through which NCCL alone takes P2P"
make_plans "amd-4gpu:0,1=0 -m1> 1 -m3> 0"
run_planned amd-4gpu --gpus 0,1
as_planned
said "TCCL INFO .*; topology file" 1
make_plans "amd-4gpu:0,3=mlx5_0 -g> 0 -m1> 3 -m1> mlx5_0" "amd-4gpu:0,3=mlx5_0 -m3> 3 -m3> 0 -m3> mlx5_0"
run_planned amd-4gpu --gpus 0,3 --nodes 2
as_planned
said "TCCL INFO .*; topology file" 2

# Of the last communicator on the first node, MiB: the largest peak of a process.
peak() { # FILE
    python3 -c 'import json, sys; print(max(json.load(open(sys.argv[1]))["comms"][-1]["peak_kib"]) >> 10)' "$1"
}

step "three rings, and a graph file for each of four communicators, take no process as much as the table of one file"
make_plans --rings auto amd-4gpu
run_planned amd-4gpu --set TCCL_RIG_TABLES=whole -- --comms 4
as_planned "comm 3"
said "TCCL INFO communicator .*graph file" 4
run_alone amd-4gpu --set TCCL_RIG_TABLES=whole -- --comms 4
echo "peak of a process: $(peak "$work/rings") MiB, alone $(peak "$alone") MiB"
[ $(($(peak "$work/rings") - $(peak "$alone"))) -lt 400 ] || fail "$what: $(peak "$work/rings") MiB, alone $(peak "$alone") MiB"

step "where the table is cleared only communicators of all of the step's GPUs are given a graph file"
python3 - "$("$here/get-nccl")" "$work/protected" <<'PYTHON' || fail "$what: no copy of NCCL"
import shutil, struct, subprocess, sys
shutil.copytree(sys.argv[1], sys.argv[2])
path = sys.argv[2] + "/lib/libnccl.so.2"
slot = next(int(line.split()[0], 16) for line in subprocess.run(["readelf", "-rW", path], text=True, check=True, stdout=subprocess.PIPE).stdout.splitlines()
            if "JUMP_SLO" in line and " memset@" in line)
with open(path, "r+b") as file:
    header = file.read(64)
    at, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
    for place in range(at, at + size * count, size):
        file.seek(place)
        part = bytearray(file.read(size))
        if struct.unpack_from("<I", part)[0] == 0x6474e552: # PT_GNU_RELRO: to the slot, which the loader rounds down to a page
            struct.pack_into("<Q", part, 40, slot + 8 - struct.unpack_from("<Q", part, 16)[0])
            file.seek(place)
            file.write(part)
            sys.exit()
sys.exit("no RELRO")
PYTHON
cleared=(--gpus 0,2,3 --cpu zhaoxin --nccl "$work/protected")
make_plans "amd-4gpu:0,2,3=0 -m1> 3 -m2> 2 -m3> 0"
run_planned amd-4gpu "${cleared[@]}"
as_planned
said "TCCL INFO a graph file is needed, for which NCCL clears a table of 0.9 GB: .*neither AMD" 1
make_plans "amd-4gpu:0,2,3=0 -m1> 3 -m2> 2 -m3> 0"
sed -i 's/^step_gpus .*/step_gpus 6/' "${plans[0]}"
as_alone amd-4gpu "${cleared[@]}"
said "TCCL WARN communicator .*NCCL's own choice: it needs a graph file, for which this NCCL clears a table of 0.9 GB in each rank" 1
