#!/bin/bash
# What NCCL built or used in another way than planned comes with its reason to the shim's log, the step's record and
# tcclacct: memory policies that cpuset.mems forbids, trees in place of the ring, a node that stands aside.
# (This machine has one NUMA node, so no cpuset can leave out that of a buffer: set_mempolicy fails as it would then.)
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"
[ -x "$TCCL_BUILD/spank/tcclacct" ] || { echo "skipped: the build has no tcclacct"; exit 77; }

differs() { # REASON: a pattern of extended regular expressions
    built no
    grep -qE "^planned\|no\|($1)\$" "$step_folder/tcclacct" || fail "$what: tcclacct says $(cat "$step_folder/tcclacct"), not $1"
}

step "the NUMA node of a buffer is not in cpuset.mems"
"${CC:-cc}" -std=gnu17 -O1 -o "$work/refuse-mempolicy" "$here/refuse-mempolicy.c" || fail "refuse-mempolicy can't be built"
joined amd-4gpu -- amd-4gpu --set TCCL_RIG_NUMA=0 --under "$work/refuse-mempolicy --cpuset"
as_planned
said "differs: buffers in host memory are where the kernel puts them, not where the ring wants them: set_mempolicy to node 0: Invalid argument" 1
differs "n1: buffers in host memory are where the kernel puts them, not where the ring wants them: set_mempolicy to node 0: Invalid argument"

step "large all-reduces go by trees"
nccl=$("$here/get-nccl" --built)
"${CC:-cc}" -std=gnu17 -O1 -shared -fPIC -isystem "$nccl/include" -isystem "${CUDA_HOME:-/usr/local/cuda}/include" -o "$work/prefer-tree.so" "$here/prefer-tree.c" ||
    fail "prefer-tree can't be built"
joined amd-4gpu -- amd-4gpu --set NCCL_TUNER_PLUGIN="$work/prefer-tree.so" -- --collective all-reduce:134217728
said "differs: all-reduces, of up to 128 MiB, went by trees in place of the ring" 1
differs "n1: all-reduces, of up to 128 MiB, went by trees in place of the ring"

step "a large all-reduce that NCCL returns an error for has gone by nothing"
make_plans "amd-4gpu=0 -m0> 3 -m0> 1 -m1> 2 -m0> 0"
run_planned amd-4gpu --launch refuse --set NCCL_TUNER_PLUGIN="$work/prefer-tree.so" -- --go-on --collective all-reduce:134217728
said "went by trees" 0
said "built as planned" 1 # by the broadcast after it

step "one node of two stands aside"
# (With one ring: of several the other node builds the first ones only, see test-shim-sets.)
TCCL_CONF_LINES=MaxRings=1 joined amd-4gpu:0,1 intel-4gpu:1,2 -- amd-4gpu --gpus 0,1 --node "$machines/intel-4gpu.json:1,2" --at 3:NCCL_TOPO_FILE=/nowhere
differs "n2: the user has set [^|]* \(1 of 2 nodes left the plan alone\)"
