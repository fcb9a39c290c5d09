#!/bin/bash
# NCCL as drivers from CUDA 12 on make it run: with virtual memory management (cuMem), connected at the
# first collective, up to the launch of its kernel. The rings and the transport of each edge are those
# of the older mode; which mode NCCL was in is read from its own log.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# ring-probe ends with an error where a kernel is launched, which nothing here can do.
collective() { # NAME MODEL OPTION...: logs of all ranks in $work/NAME
    local name=$1 model=$2
    shift 2
    "$here/run-ring" "$machines/$model.json" "$@" --log "$work/$name" -- --all-reduce >"$work/$name.json" 2>"$work/$name.err" &&
        fail "$model: an all-reduce without a GPU"
    grep -q "a kernel launch refused" "$work/$name.err" || { tail -n 5 "$work/$name.err"; fail "$model: the collective did not get to the launch of its kernel"; }
}

# "Channel 00 : 0[0] -> 3[3] via P2P/CUMEM": P2P, SHM or NET, without the words for how handles are passed.
edges() { # NAME
    sed -nE 's,.*NCCL INFO (Channel [0-9]+)(/[0-9]+)? : ([0-9]+)\[[0-9]+\] -> ([0-9]+)\[[0-9]+\] (\[(send|receive)\] )?via (P2P|SHM|NET)/.*,\1 \3 \4 \6 \7,p' "$work/$1"/*.log | sort -u
}

compare() { # MODEL OPTION...
    TCCL_RIG_CUMEM=1 collective new "$@"
    TCCL_RIG_CUMEM=0 collective old "$@"
    grep -qE 'CUMEM allocated shareable buffer|via P2P/CUMEM' "$work"/new/*.log || fail "$*: NCCL was not in cuMem mode"
    ! grep -q 'CUMEM' "$work"/old/*.log || fail "$*: NCCL was in cuMem mode"
    edges new >"$work/new-edges"
    edges old >"$work/old-edges"
    [ -s "$work/new-edges" ] || fail "$*: no edges in NCCL's log"
    # What is connected at init includes the tree; at the first collective only what its algorithm needs.
    [ -z "$(comm -23 "$work/new-edges" "$work/old-edges")" ] || { comm -3 "$work/new-edges" "$work/old-edges"; fail "$*: edges that the older mode does not have"; }
    echo "$*: $(wc -l <"$work/new-edges") of $(wc -l <"$work/old-edges") edges"
    rm -rf "$work"/{new,old}*
}

# At the end of the init nothing is connected yet.
TCCL_RIG_CUMEM=1 "$here/run-ring" "$machines/amd-4gpu.json" --log "$work/init" >"$work/init.json" || no_ring $? "run-ring in cuMem mode"
! grep -q ' via ' "$work"/init/*.log || fail "connected at init"
compare amd-4gpu
compare dual-8gpu
compare epyc-8gpu --nodes 2
