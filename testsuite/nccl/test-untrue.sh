#!/bin/bash
# A machine that is slower than its profile says, from its users' steps to a new measurement, with a stock NCCL under srun: what they
# achieve with the ring and, in trials, without it is on record; the ring, which is slower than NCCL's own choice, is no longer given;
# tccl-check says that the profile is no longer true; the machine measured anew has another ring, which is given, and reaches what the
# new profile promises.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/truth.sh"

# What the profile promises is held against collectives from 64 MiB on.
readonly slower=30 train="--times 2 --collective all-reduce:67108864:f32"
# By this name five of the first ten jobs are trials, and none of the next ten: which, is drawn by it and the job's number.
begin_cluster --slurm-conf ClusterName=untrue10709 --tccl-conf EvidenceUsers=1 --tccl-conf "[policy]" --tccl-conf Default=on --tccl-conf Trial=50%
kinds=()

until_kind() { # KIND MOST: steps until one is of that kind: planned, trial or evidence
    local i kind
    for ((i = 0; i < $2; i++)); do
        run_step
        kind=$(of_step state)
        [ "$kind" = planned ] || kind=$(of_step reason_class)
        echo "job $job: $kind: $(of_step achieved_gbps) GB/s with $(of_step achieved_with), promised $(of_step gbps)"
        kinds+=("$kind")
        [ "$kind" != "$1" ] || return 0
    done
    fail "$what: none of $2 steps is $1: ${kinds[*]}"
}

check() {
    as_root tccl-check --node n1 --timeout 60 --only profile >"$work/check" || true
    cat "$work/check"
}

explained() {
    as_root tccl-check policy --explain --node n1 | grep '^evidence'
}

step "a ring that is slower than NCCL's own choice is found out"
make_model "$home/true.json" "m2 memory=0.25" "g0 out=0.95" # of which the second changes what the best ring has, too
truth "$home/true.json"
until_kind evidence 40
of_record 'r["state"] == "left" and r["built"] == "" and r["achieved_with"] == "own" and r["achieved_gbps"] > 0'
for kind in planned trial; do
    [ "$(printf '%s\n' "${kinds[@]}" | grep -cx $kind)" -ge 5 ] || fail "$what: left after ${kinds[*]}"
done
explained | tee "$work/explained"
grep -q "no longer given" "$work/explained" || fail "$what: policy --explain does not say so"

step "the profile is no longer true"
check
grep -q "^warn  *profile  *.*no longer true here: measure again" "$work/check" || fail "$what: tccl-check does not say so"
as_root tcclacct summary >"$work/summary"
grep "measure again" "$work/summary" || fail "$what: tcclacct summary does not say so: $(cat "$work/summary")"

step "tccld starts anew"
"$contrib/minicluster" stop-tccld n1
"$contrib/minicluster" start-tccld n1
until_kind evidence 10

step "measured anew"
as_root tccl-profile run --quiet --model "$home/true.json" --cache "$work/cache"
readonly profile=$(basename "$work"/cache/*)
chown -R --reference="$TCCL_MINICLUSTER/nodes/n1/cache" "$work/cache"
mv "$TCCL_MINICLUSTER/nodes/n1/cache/$profile" "$work/before"
mv "$work/cache/$profile" "$TCCL_MINICLUSTER/nodes/n1/cache/"
kinds=()
until_kind planned 40
! printf '%s\n' "${kinds[@]}" | grep -x evidence >/dev/null || fail "$what: the new ring is not given: ${kinds[*]}"
of_record '"-m2>" not in r["ring"] and r["built"] == "yes" and r["gbps"] > r["baseline_gbps"]'
achieves --tccl=on
check
grep -q "^ok  *profile" "$work/check" || fail "$what: tccl-check does not say so"
as_root tcclacct summary >"$work/summary"
! grep "measure again" "$work/summary" || fail "$what: tcclacct summary does not say so"
