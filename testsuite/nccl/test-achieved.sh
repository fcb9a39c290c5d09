#!/bin/bash
# What large collectives reach is on record (ACHIEVED), with a stock NCCL on machines whose copies take their time, and a real tccld: with
# the planned rings, and with NCCL's own where the user wants a tree, where the ring is no gain, and where the plan is there to measure; not
# where the user says TCCL_ACHIEVED=0 or the site Achieved=off, for small ones only, or with a profiler plugin. No figure is beyond what the machine can do; how near they are is for ../bench (achieved). In cuMem mode, but for one.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"

readonly slower=4
record() { # PYTHON-CONDITION over r, the record
    python3 - "$step_folder/record.json" "$1" <<'PYTHON' || { show_log; fail "$what: the record is not so: $1"; }
import json
import sys
r = json.load(open(sys.argv[1]))[0]
most = 1.05  # of what the model gives
print({name: r.get(name) for name in ("state", "built", "gbps", "nccl_gbps", "achieved_gbps", "achieved_with", "achieved_algorithm", "achieved_median", "achieved_from", "samples", "sent_bytes",
                                      "sent_share")})
sys.exit(not eval("(" + sys.argv[2] + ")"))
PYTHON
}
large=(--go-on --times 2) # three times each, after which its end is waited for
for _ in {1..4}; do large+=(--collective all-reduce:16777216:f32); done
readonly none='not r.get("samples") and not r.get("achieved_gbps")'

step "planned rings"
joined amd-4gpu:0-2 -- amd-4gpu --gpus 0-2 --pace $slower -- "${large[@]}"
built yes
record 'r["samples"] >= 4 and r["achieved_from"] == 16 << 20 and r["sent_bytes"] >= 12 << 24 and
    0 < r["achieved_median"] <= r["achieved_gbps"] <= r["gbps"] * most and 0 < r["sent_share"] <= 1 and
    r["achieved_with"] == "rings" and r["achieved_algorithm"] in ("ring", "either") and abs(r["achieved_share"] - r["achieved_gbps"] / r["gbps"]) < 1e-9'
said "TCCL INFO" # of rank 0, at the end
grep -q "of 3 ranks, with the ring: the best tenth of [0-9]* collectives from 16 MiB on reached" "$work/rings" || fail "no line says it"

step "NCCL has connected rings and trees: it takes either"
cumem=off
joined amd-4gpu:0-2 -- amd-4gpu --gpus 0-2 --pace $slower -- "${large[@]}"
built yes
record 'r["samples"] >= 4 and r["achieved_with"] == "rings" and r["achieved_algorithm"] == "either"'
cumem=on

step "two nodes"
joined amd-4gpu:0,1 intel-4gpu:1,2 -- amd-4gpu --gpus 0,1 --node "$machines/intel-4gpu.json:1,2" --pace $slower -- "${large[@]}"
built yes
record 'r["samples"] >= 4 and 0 < r["achieved_gbps"] <= r["gbps"] * most'

step "the user wants no P2P and a tree"
joined amd-4gpu:1,2 -- amd-4gpu --gpus 1,2 --pace $slower --set NCCL_ALGO=Tree -- "${large[@]}"
built no
record 'r["samples"] >= 4 and r["achieved_gbps"] > 0 and r["achieved_with"] == "own" and r["achieved_algorithm"] == "tree" and
    abs(r["achieved_share"] - r["achieved_gbps"] / r["nccl_gbps"]) < 1e-9'

step "groups: one collective in each, as PyTorch has them; several, as FSDP's coalesced ones; data are right"
for coalesced in 1 3; do
    joined amd-4gpu:0-2 -- amd-4gpu --gpus 0-2 --pace $slower -- --group --coalesced $coalesced --check --times 4 \
        --collective all-gather:12582912:f32 --collective reduce-scatter:12582912:f32
    built yes
    record "r['samples'] >= 4 and r['achieved_from'] == 4 << 20 and r['sent_bytes'] >= 10 * $coalesced * (12 << 20) and
        0 < r['achieved_gbps'] <= r['gbps'] * most and r['achieved_with'] == 'rings' and r['achieved_algorithm'] == 'ring'"
    "$here/compare-data" "$work/rings" || { show_log; fail "$what: wrong data"; }
done

step "NCCL's own rings are as good"
joined dual-8gpu:0-2 -- dual-8gpu --gpus 0-2 --pace $slower -- "${large[@]}"
record 'r["state"] == "left" and r["built"] == "" and r["samples"] >= 4 and r["achieved_with"] == "own" and
    0 < r["achieved_gbps"] <= r["baseline_gbps"] * most and r["nccl"]'

step "a plan that is there to measure"
TCCL_EDIT_PLAN='/^gbps /,$c ring no\ngroups no\nend' joined amd-4gpu:0-2 -- amd-4gpu --gpus 0-2 --pace $slower -- "${large[@]}"
record 'r["samples"] >= 4 and r["achieved_with"] == "own" and 0 < r["achieved_gbps"] <= r["baseline_gbps"] * most'
run_alone amd-4gpu --gpus 0-2
"$here/same-rings" "$alone" "$work/rings" || { show_log; fail "$what: not as NCCL alone"; }
said "TCCL .* communicator [0-9a-f]{16}" 0
no_warning

step "not measured"
for set in TCCL_ACHIEVED=0 NCCL_PROFILER_PLUGIN=/nowhere; do
    joined amd-4gpu:1,2 -- amd-4gpu --gpus 1,2 --set $set -- "${large[@]}"
    record "$none"
done
TCCL_CONF_LINES=Achieved=off joined amd-4gpu:1,2 -- amd-4gpu --gpus 1,2 -- "${large[@]}"
built yes
record "$none"
joined amd-4gpu:1,2 -- amd-4gpu --gpus 1,2 -- --go-on --times 9 --collective all-reduce:1048576:f32
record "$none and r['sent_bytes'] >= 10 << 20"
