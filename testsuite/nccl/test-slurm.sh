#!/bin/bash
# ring-probe in a real Slurm, as a user would start it: a node of each of two kinds, a task for each
# GPU. Without --tccl NCCL builds its own ring; with it, those in TCCL_RING, and tcclacct knows. No
# more nodes: beside several rings each rank of a new NCCL takes 0.9 GB, here all from one machine.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$UID" = 0 ] || { echo "skipped: not root"; exit 77; }
readonly contrib=$here/../../contrib
chmod 755 "$work"
export TCCL_MINICLUSTER=$work/c
trap '"$contrib/minicluster" stop; rm -rf "$work"' EXIT
"$contrib/minicluster" start --patient --nccl --nodes 2 --model amd-4gpu --model intel-4gpu --build "$TCCL_BUILD"

as_user() {
    "$contrib/minicluster" run --as nobody -- "$@"
}

# All tasks print their edges, the first one also its environment.
cat >"$TCCL_MINICLUSTER/home/train" <<'TRAIN'
#!/bin/sh
[ "$SLURM_PROCID" != 0 ] || env | grep -E "^TCCL_(STATE|REASON|RING|PLAN|SHIM)="
exec "$RIG/ring-probe" --edges --go-on
TRAIN
chmod 755 "$TCCL_MINICLUSTER/home/train"

run_step() { # FILE SRUN-OPTION...
    local out=$work/$1
    shift
    RIG=$TCCL_MINICLUSTER/rig as_user srun -N2 --gpus-per-node=4 --ntasks-per-node=4 "$@" \
        "$TCCL_MINICLUSTER/home/train" >"$out" 2>&1 || fail "srun $*: $(cat "$out")"
    grep -q '^ring-probe: comm 0, 8 ranks: ring 0 ' "$out" || fail "no ring: $(cat "$out")"
    for node in n1 n2; do
        grep -q "^ring-probe: comm 0, rank .* on $node): .* by NET/IB" "$out" || fail "no way out of $node: $(cat "$out")"
        [ "$(grep -c "0000:.* on $node)" "$out")" = 4 ] || fail "ranks on $node: $(cat "$out")"
    done
}

run_step without --tccl=off
! grep ^TCCL_ "$work/without" || fail "--tccl=off sets something"
run_step with --tccl=on
grep '^TCCL_STATE=planned' "$work/with" || fail "not planned: $(cat "$work/with")"

"$here/ring-compare" "$work/with" || fail "NCCL built another ring: $(cat "$work/with")"
! "$here/ring-compare" "$work/without" "$(sed -n 's/^TCCL_RING=//p' "$work/with")" ||
    fail "NCCL builds that ring by itself: this test shows nothing"

for round in {1..500}; do
    as_user tcclacct -nP -o jobid,state,built,nccl,ncclgbps >"$work/acct"
    ! grep -q '|planned|yes' "$work/acct" || break
    sleep 0.2
done
cat "$work/acct"
# With the version that ran, and what it would have built by itself: as tccl-path has it for these nodes.
version=$(sed 's/.*nccl-\([0-9.]*\).*/\1/' <<<"$("$here/get-nccl" --built)")
models=()
for model in amd intel; do models+=(--node "$machines/$model-4gpu.json"); done
own=$("$TCCL_BUILD/pathfind/tccl-path" solve --json --rings 1 "${models[@]}" | python3 -c 'import json, sys; print("%.2f" % json.load(sys.stdin)["baseline_reach_gbps"])')
[ "$(cut -d '|' -f 2- "$work/acct" | sort | xargs)" = "off||| planned|yes|$version|$own" ] ||
    fail "records: $(cat "$work/acct"), not planned with $version and $own GB/s"
