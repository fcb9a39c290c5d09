#!/bin/bash
# Ranks that don't take part: without the shim, without a plan, or with another one. The others see
# it, and the communicator is made as by NCCL alone; other nodes still have their chains.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

make_plans "dual-8gpu:0,2,3=0 -m0> 3 -m0> 2 -m0> 0"
for rank in 0 1 2; do
    step "rank $rank without the shim"
    as_alone dual-8gpu --gpus 0,2,3 --at "$rank:LD_PRELOAD="
    said WARN
done
step "rank 1 without a plan"
as_alone dual-8gpu --gpus 0,2,3 --at 1:TCCL_PLAN=
said WARN
step "rank 2 with another step's plan"
first=("${plans[@]}")
make_plans "dual-8gpu:0,2,3=0 -m0> 2 -m0> 3 -m0> 0"
other=${plans[0]}
plans=("${first[@]}")
as_alone dual-8gpu --gpus 0,2,3 --at "2:TCCL_PLAN=$other"
said WARN

step "two nodes, a rank of the second without the shim"
make_plans "dual-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0" "dual-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0"
run_planned dual-8gpu --gpus 0,1 --nodes 2 --at 3:LD_PRELOAD=
run_alone dual-8gpu --gpus 0,1 --nodes 2
plans[1]=-
as_planned
python3 - "$alone" "$work/rings" <<'PYTHON' || fail "the second node is not as NCCL alone"
import json, sys
def kinds(path):
    return [[e["send"]["kind"] for e in ring["edges"] if e["from"] > 1] for ring in json.load(open(path))["comms"][0]["channels"]]
alone, rings = kinds(sys.argv[1])[0], kinds(sys.argv[2])[0]
if sorted(alone) != sorted(rings):
    sys.exit(f"{alone} and {rings}")
PYTHON
said "node 1.*WARN"

step "a node without a plan"
make_plans "dual-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0" "dual-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0"
plans[0]=-
run_planned dual-8gpu --gpus 0,1 --nodes 2
as_planned

step "a subset of ranks, one without the shim"
make_plans "dual-8gpu:0,2,3=0 -m0> 3 -m0> 2 -m0> 0"
as_alone dual-8gpu --gpus 0,2,3 --at 1:LD_PRELOAD= -- --comms 0 --subset 0-1

step "a rank closes what it did not open: nobody is answered"
cat >"$work/closer.c" <<'CLOSER'
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int socket(int domain, int type, int protocol)
{
    char path[64], name[64];
    for (int fd = 3; fd < 256; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, name, sizeof name);
        if (n > 17 && !memcmp(name, "/memfd:tccl-graph", 17))
            close(fd);
    }
    return (int)syscall(SYS_socket, domain, type, protocol);
}
CLOSER
cc -shared -fPIC -o "$work/closer.so" "$work/closer.c"
make_plans "dual-8gpu:0,2,3=0 -m0> 3 -m0> 2 -m0> 0"
as_alone dual-8gpu --gpus 0,2,3 --at "1:LD_PRELOAD=$TCCL_BUILD/runtime/libtccl-nccl.so:$work/closer.so"
said "WARN.*has closed files"
