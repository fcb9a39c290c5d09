#!/bin/bash
# Rings by reading: NCCL_P2P_READ_ENABLE is answered in all processes of a step whose plan reads, also for communicators that are
# left alone, and nowhere else: in none if a process may do otherwise. Connections say what they are (their flags, in the log), and all data are those of NCCL alone.
# The user's own setting, in the environment or nccl.conf, is never overruled. First with each NCCL from 2.21 to 2.30 that can be
# had (TCCL_NCCL: with that one alone; kernels of 2.21 are not to be had, nor of released ones: no data then).
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/data.sh"

add "$reducing" "4 40000 1000000" "f32"
add "$copying" "4 40000 1000000" "f16"
all=("${collectives[@]}")

kinds() { # KIND...: those of all P2P connections, each once
    local found
    found=$(python3 -c 'import json, sys
ways = {edge["send"]["via"] for comm in json.load(open(sys.argv[1]))["comms"] for ring in comm["channels"]
        for edge in ring["edges"] if edge["send"]["kind"] == "P2P"}
print(*sorted({"read" if "/read" in way else "write" for way in ways}))' "$work/rings")
    [ "$found" = "$*" ] || { show_log; fail "${what:-}: P2P connections of the kind \"$found\", not \"$*\""; }
}

planned() { # KIND MODEL GPUS CHAIN [OPTION]...: with a communicator beside it of which no tccld knows
    step "${TCCL_NCCL:-2.29.7}: ${*:4}"
    make_plans "$2:$3=$4"
    run_planned "$2" --gpus "$3" "${@:5}" -- --subset 0,1 "${collectives[@]}"
    as_planned
    kinds "$1"
    [ ${#collectives[@]} = 0 ] || right
}

versions() {
    case ${TCCL_NCCL:-2.29.7} in 2.21.* | wheel:*) collectives=() ;; *) collectives=("${all[@]}") ;; esac
    planned read dual-8gpu 0-3 "0 -r> 2 -m0> 1 -r> 3 -m0> 0"
}

if [ -n "${TCCL_NCCL:-}" ]; then
    versions
    exit
fi
for TCCL_NCCL in 2.21.5 2.22.3 2.23.4 2.24.3 2.25.1 2.26.6 2.27.7 2.28.9 2.30.7 wheel:2.32.3; do
    export TCCL_NCCL
    "$here/get-nccl" >/dev/null && versions || [ $? = 77 ]
done
unset TCCL_NCCL
collectives=("${all[@]}")
planned read dual-8gpu 0-3 "3 -r> 0 -r> 1 -r> 2 -r> 3"
planned read dual-8gpu 0-3 "3 -r> 0 -r> 1 -r> 2 -r> 3" --processes 1
planned read dual-8gpu 0-3 "0 -r> 1 -r> 3 -r> 2 -r> 0 | 1 -r> 0 -r> 2 -r> 3 -r> 1"
planned write dual-8gpu 0-3 "3 -w> 0 -w> 1 -w> 2 -w> 3"
cumem=off
planned read dual-8gpu 0-3 "0 -r> 2 -m0> 1 -r> 3 -m0> 0"
cumem=on
planned read dual-8gpu 0-3 "3 -r> 0 -r> 1 -r> 2 -r> 3" --set NCCL_P2P_READ_ENABLE=1

step "P2P ends at the node: one reads, one writes"
make_plans "dual-8gpu:0,2=mlx5_0 -m0> 0 -r> 2 -m0> mlx5_0" "dual-8gpu:0,2=mlx5_0 -m0> 0 -w> 2 -m0> mlx5_0"
run_planned dual-8gpu --gpus 0,2 --nodes 2 -- "${collectives[@]}"
as_planned
kinds read write
right

aside() { # SETTING CHAIN: the user's own
    step "$1: $2"
    make_plans "dual-8gpu:0-3=$2"
    as_alone dual-8gpu --gpus 0-3 --set "$1" -- "${collectives[@]}"
    said "WARN.*NCCL_P2P_READ_ENABLE"
    right "$work/rings" "$alone" --every-bit
}
echo NCCL_P2P_READ_ENABLE=0 >"$work/nccl.conf"
aside NCCL_P2P_READ_ENABLE=0 "3 -r> 0 -r> 1 -r> 2 -r> 3"
aside NCCL_P2P_READ_ENABLE= "3 -r> 0 -r> 1 -r> 2 -r> 3"
aside "NCCL_CONF_FILE=$work/nccl.conf" "3 -r> 0 -r> 1 -r> 2 -r> 3"
aside NCCL_P2P_READ_ENABLE=1 "3 -w> 0 -w> 1 -w> 2 -w> 3"

step "a process without the shim, or with a kind of the user's own, and all have NCCL's kind"
rm "$work/nccl.conf"
for odd in LD_PRELOAD= NCCL_P2P_READ_ENABLE=0; do
    make_plans "dual-8gpu:0-3=3 -r> 0 -r> 1 -r> 2 -r> 3"
    run_planned dual-8gpu --gpus 0-3 --at 2:$odd -- --subset 0,1 "${collectives[@]}"
    kinds write
    right
done

step "both kinds"
make_plans "dual-8gpu:0-3=3 -r> 0 -w> 1 -r> 2 -w> 3"
as_alone dual-8gpu --gpus 0-3
said "WARN.*no ring for this process: the plan.s chain is wrong"
