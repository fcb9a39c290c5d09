# truth.sh: tests of a machine that is not what its profile says, on a minicluster of one node.
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

[ "$UID" = 0 ] || skip "not root"
readonly contrib=$here/../../contrib
chmod 755 "$work"
export TCCL_MINICLUSTER=$work/c
readonly home=$TCCL_MINICLUSTER/home

as_user() {
    "$contrib/minicluster" run --as nobody -- "$@"
}

as_root() {
    "$contrib/minicluster" run -- "$@"
}

# amd-4gpu, $slower times so slow, that two processors can do as much, with less of some resources. Its best ring goes through all four memories,
# NCCL's own through none.
make_model() { # FILE [RESOURCE=SHARE]...
    python3 - "$machines/amd-4gpu.json" "$1" "$slower" "${@:2}" <<'PYTHON'
import json, sys
model = json.load(open(sys.argv[1]))
shares = dict(share.split("=") for share in sys.argv[4:])
for limit in model["resources"] + model["rules"]:
    limit["gbps"] = round(limit["gbps"] / float(sys.argv[3]) * float(shares.pop(limit["name"], 1)), 6)
assert not shares, shares
json.dump(model, open(sys.argv[2], "w"))
PYTHON
}

begin_cluster() { # START-OPTION...
    trap '"$contrib/minicluster" stop; rm -rf "$work"' EXIT
    make_model "$work/told.json"
    "$contrib/minicluster" start --patient --nccl --nodes 1 --model "$work/told.json" --build "$TCCL_BUILD" "$@"
    cp "$TCCL_BUILD/testsuite/nccl/numa-nodes.so" "$home/"
    # A program on each GPU that trains.
    cat >"$home/train" <<TRAIN
#!/bin/sh
[ "\$SLURM_PROCID" != 0 ] || echo "job \$SLURM_JOB_ID"
export TCCL_RIG_LAUNCH=run TCCL_RIG_PACE=$home/pace
export LD_PRELOAD=\$LD_PRELOAD:$home/numa-nodes.so # those of the model, behind the shim
exec $TCCL_MINICLUSTER/rig/ring-probe $train
TRAIN
    chmod 755 "$home/train"
}

# What the machine is from now on, whatever tccld has been told.
truth() { # MODEL
    true_model=$1
    rm -rf "$home/pace"
    "$here/describe-pace" "$home/pace" "$true_model"
    chmod -R a+rwX "$home/pace"
}

# A step of all GPUs; its record is in $work/record.json once it has figures.
run_step() { # SRUN-OPTION...
    local round
    as_user srun -N1 -n4 --gpus-per-node=4 "$@" "$home/train" >"$work/step" 2>&1 || fail "srun $*: $(cat "$work/step")"
    job=$(sed -n '/^job /{s///; p; q}' "$work/step")
    for round in {1..500}; do
        as_user tcclacct --json -j "$job" >"$work/record.json"
        ! grep -q '"achieved_gbps"' "$work/record.json" || return 0
        sleep 0.2
    done
    fail "no figures of job $job: $(cat "$work/step" "$work/record.json")"
}

of_record() { # PYTHON-CONDITION over r, the record
    python3 - "$work/record.json" "$1" <<'PYTHON' || fail "$what: the record is not so: $1"
import json, sys
r = json.load(open(sys.argv[1]))["records"][0]
print({name: r.get(name) for name in ("state", "built", "gbps", "baseline_gbps", "achieved_gbps", "achieved_median", "samples")})
sys.exit(not eval(sys.argv[2]))
PYTHON
}

of_step() { # MEMBER of the record
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["records"][0].get(sys.argv[2], ""))' "$work/record.json" "$1"
}

# Steps until one with a ring has achieved 0.92 to 1.05 of what tccl-path says that an all-reduce reaches on the true machine, in the
# middle of its samples: this one may be busy, and a collective that its rank began last seems short.
achieves() { # SRUN-OPTION...
    local try status
    for try in {1..8}; do
        run_step "$@"
        "$TCCL_BUILD/pathfind/tccl-path" eval --json --model "$true_model" --ring "$(of_step ring)" >"$work/eval.json"
        status=0
        python3 - "$work/record.json" "$work/eval.json" <<'PYTHON' || status=$?
import json, sys
record, able = json.load(open(sys.argv[1]))["records"][0], json.load(open(sys.argv[2]))["reach_gbps"]
share = record["achieved_median"] / able
print(f"achieved {record['achieved_median']:.4f} GB/s, {share:.2f} of what the machine can do ({able:.4f}) with {record['ring']}; promised {record['gbps']:.4f}")
sys.exit(not 0.92 <= share <= 1.05)
PYTHON
        [ $status != 0 ] || return 0
    done
    fail "$what: not what the machine can do in each of $try steps"
}
