#!/bin/bash
# Steps that run side by side on a node: the second one's ring is made beside the first, whatever the first has: a ring,
# NCCL's own rings (its mode is off), chains of several nodes. A tccld that was killed meanwhile still knows them; a step
# whose slurmstepd was killed does not count.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

# With slower P2P a ring of two GPUs is worth it (pathfind/ring/decision.h).
slow=$(mktemp -d)
sed 's/"gbps": 10.4, "users": \["g\*->g@/"gbps": 5, "users": ["g*->g@/' "$models/amd-4gpu.json" >"$slow/slow-p2p.json"
own_cluster --nodes 2 --model "$slow/slow-p2p.json"
rm -rf "$slow"

first_runs() { [ -e "$work/first" ]; }
begin() { # SRUN-OPTION...: a step that runs until end
    rm -f "$work/first" "$work/over"
    user srun "$@" sh -c "touch $work/first; until [ -e $work/over ]; do sleep 0.1; done" 2>"$work/first.err" &
    first=$!
    eventually "the first step" first_runs
}
end() {
    touch "$work/over"
    wait $first || fail "the first step: $(cat "$work/first.err")"
}

beside() { # STEPS GBPS BASELINE
    has_ring "${tasks:-1}"
    matches TCCL_GBPS "$(values TCCL_GBPS)" "$2"
    matches TCCL_BASELINE_GBPS "$(values TCCL_BASELINE_GBPS)" "$3"
    says "*GB/s beside $1 other step*, alone *"
    recorded "$(job_of)" 0 neighbours "$1"
    recorded "$(job_of)" 0 alone_gbps '[1-9]*'
    recorded "$(job_of)" 0 neighbours_by model
}

chmod 1777 "$work"
two=(-N1 -w n1 --gpus=2 --tccl=on)

echo "--- nobody beside it" # of 11.45 an all-reduce of two GPUs reaches 7.87 (unit/reach)
srun_show "${two[@]}"
has_ring 1
says '*ring* of 2 GPUs: 7.9 GB/s (NCCL*'
recorded "$(job_of)" 0 neighbours 0

echo "--- beside a ring: both have all of their bandwidth, where rings planned alone have 7.9 GB/s"
begin "${two[@]}"
srun_show "${two[@]}"
beside 1 7.87 5.00
recorded "$(job_of)" 0 beside '11.45/11.45 ring: *'
recorded "$(job_of)" 0 placed_gbps '7.8*' # of the best two of its four GPUs
holds_ring() { user tcclacct ring "$(job_of)"; }
[[ $(holds_ring) == *"beside it: 11.45 of 11.45 GB/s, a ring"* ]] || fail "the ring beside it is not drawn: $(holds_ring)"
end

echo "--- beside NCCL's own rings: of a step with its mode off, which nobody is told of"
begin -N1 -w n1 --gpus=2
srun_show "${two[@]}"
beside 1 7.87 2.50
recorded "$(job_of)" 0 beside '*/* nccl: *'
kill_tccld n1
mini start-tccld n1

echo "--- the same by a tccld that was started again"
srun_show "${two[@]}"
beside 1 7.87 2.50
end

# Two rings would have 8.07 of the NIC's 12.1 GB/s, and leave 4.03 to each step that runs: beside NCCL's own they have 4.40.
# One ring has 6.05 of the NIC's. Alone it would reach 0.93 of that; while the others rest in their rounds it has more of
# the NIC, so that nothing is lost (unit/reach).
echo "--- each of two nodes with a step of its own: both count, the slower node decides, and they keep what they have beside NCCL's own"
begin -N2 --ntasks-per-node=1 --gpus-per-node=2 --tccl=off
tasks=2
srun_show -N2 --ntasks-per-node=1 --gpus-per-node=2 --tccl=on
beside 2 6.05 4.19
end

echo "--- a step whose slurmstepd was killed is gone"
begin "${two[@]}"
records() { cat "$cluster"/nodes/n1/run/*/plan 2>/dev/null; }
written() { records | grep '"stepd"' >/dev/null; }
eventually "the step is written down" written
kill -9 "$(records | sed -nE 's/.*"stepd": "([0-9]+) .*/\1/p')"
tasks=1
srun_show "${two[@]}"
has_ring 1
says '*ring* of 2 GPUs: 7.9 GB/s (NCCL*'
touch "$work/over"
user scancel -u nobody
wait $first || true
eventually "no jobs left" no_jobs
admin scontrol update nodename=n1 state=resume 2>/dev/null || true

echo "--- nothing is left"
reload_all
no_running() { ! records | grep .; }
eventually "nobody runs" no_running
