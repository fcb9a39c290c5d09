#!/bin/bash
# Bounce buffers: the rank that receives asks for memory of the plan's NUMA node while its
# communicator is made, and not longer. (This machine has one node, so what it asks for is looked at.)
# And where limits leave too little memory to read a graph file, there is none, and none for later ones of many groups.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

strace -e trace=none true 2>/dev/null || { echo "skipped: no strace"; exit 77; }
late="$late|is left as it is: not all" # as in a process that has several of the GPUs, where it is no matter of time

traced() { # CHAIN
    rm -f "$work"/trace.*
    make_plans "amd-4gpu:0,2,3=$1"
    run_planned amd-4gpu --gpus 0,2,3 --under "strace -f -ff -qq -e trace=set_mempolicy -o $work/trace"
    as_planned
}

# Of each thread that set a policy, the calls: mode and first word of the nodes.
calls() {
    sed -s -n 's/^set_mempolicy(\([A-Z_|]*\), \(\[\(0x\)\?0*\([0-9a-f]*\).*\|NULL.*\)/\1 \4/p' "$work"/trace.* | sort
}

step "each rank asks for its own"
traced "0 -m1> 3 -m2> 2 -m3> 0"
[ "$(calls | grep PREFERRED)" = "$(printf 'MPOL_PREFERRED %s\n' 2 4 8)" ] || fail "asked for $(calls)"

step "and gives it back"
traced "0 -m0> 3 -m0> 2 -m0> 0"
[ "$(calls | grep -c 'MPOL_PREFERRED 1')" = 3 ] || fail "asked for $(calls)"
[ "$(calls | grep -c MPOL_DEFAULT)" = 3 ] || fail "not restored: $(calls)"
for file in $(grep -l set_mempolicy "$work"/trace.*); do
    tail -n 1 "$file" | grep -q MPOL_DEFAULT || fail "not restored: $(cat "$file")"
done

step "two nodes: the way to the network goes by the memory of the plan, too"
rm -f "$work"/trace.*
make_plans "intel-4gpu:0,1=mlx5_0 -m2> 0 -w> 1 -m1> mlx5_0" "intel-4gpu:0,1=mlx5_0 -m0> 0 -m1> 1 -m3> mlx5_0"
run_planned intel-4gpu --gpus 0,1 --nodes 2 --under "strace -f -ff -qq -e trace=set_mempolicy -o $work/trace"
as_planned
[ "$(calls | grep PREFERRED)" = "$(printf 'MPOL_PREFERRED %s\n' 1 2 2 4)" ] || fail "asked for $(calls)"
said "TCCL WARN bounce buffers of the way to the network lie on NUMA node 1, not 3" 1

step "in a container that forbids memory policies the ring is built, but not as planned"
"${CC:-cc}" -std=gnu17 -O1 -o "$work/refuse-mempolicy" "$here/refuse-mempolicy.c" || fail "refuse-mempolicy can't be built"
make_plans "amd-4gpu:0,2,3=0 -m0> 3 -m0> 2 -m0> 0"
run_planned amd-4gpu --gpus 0,2,3 --under "$work/refuse-mempolicy"
as_planned
said "TCCL WARN bounce buffers lie where the kernel puts them: get_mempolicy: Operation not permitted" 3
said "differs: bounce buffers lie where the kernel puts them: get_mempolicy: Operation not permitted" 1
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

step "of many communicators in a process the first ones are given a graph file, the later ones are left alone on all ranks"
many=(--gpus 0,2,3 --cpu zhaoxin -- --comms 4)
make_plans "amd-4gpu:0,2,3=0 -m1> 3 -m2> 2 -m3> 0"
run_planned amd-4gpu "${many[@]}"
as_planned "comm 0"
as_planned "comm 1"
said "TCCL INFO communicator .*graph file" 2
said "TCCL WARN communicator .*NCCL's own choice: it needs a graph file, which costs this NCCL seconds: a process reads at most 2" 2
run_alone amd-4gpu "${many[@]}"
python3 - "$alone" "$work/rings" <<'PYTHON' || { show_log; fail "$what: later ones are not as NCCL alone"; }
import json, sys
def edges(comm):
    return [[(edge["from"], edge["to"], edge["send"]["kind"]) for edge in ring["edges"]] for ring in comm["channels"]]
alone, planned = [{comm["comm"]: edges(comm) for comm in json.load(open(path))["comms"]} for path in sys.argv[1:3]]
for name in ("comm 2", "comm 3"):
    if planned[name] != alone[name] or planned[name] == planned["comm 0"]:
        sys.exit(f"{name}: {planned[name]}, alone {alone[name]}, planned {planned['comm 0']}")
PYTHON
