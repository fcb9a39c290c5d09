#!/bin/bash
# Steps that achieve less with their rings than with NCCL's own choice: their user's no longer get them, nobody's once two users' say so
# (EvidenceUsers=2), all nodes alike, over a restart of tccld, until the profile promises something else. tccl-check and its policy
# --explain say so. What is forged, or can't be, counts for nobody else. The tasks say what the shim would (ACHIEVED, CONFIRM).
# Which jobs are trials follows from their numbers, which a cluster of its own begins at 1.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

model=$here/../machines/amd-4gpu.json
own_cluster --nodes 2 --model "$model"
cat >>"$cluster/tccl.conf" <<CONF
[policy]
Default=on
Trial=50%
CONF
sed -i 's/^\[tccl\]$/[tccl]\nEvidenceUsers=2/' "$cluster/tccl.conf"
grep -q '^EvidenceUsers=2' "$cluster/tccl.conf" || fail "tccl.conf has no [tccl]"
reload_all
cp "$here/ask.py" "$work/ask.py"
chmod 644 "$work/ask.py"
chmod 777 "$work"

# With a ring the task of node 0 says that it reached $1 GB/s, without one $2, and all say that the ring was built as planned.
cat >"$work/task" <<'TASK'
#!/bin/bash
work=$(dirname "$0")
if python3 $work/ask.py --plan chain >/dev/null 2>&1; then
    with=yes best=$1
    python3 $work/ask.py confirm verdict=applied text= ranks=8 gpus=4 whole=yes nccl=22907 >>$work/seen/answers
else
    with=no best=$2
fi
[ "$SLURM_NODEID" != 0 ] || python3 $work/ask.py achieved nccl=22907 ranks=8 rank=0 steered=$with from=${3:-67108864} samples=32 \
    best=$best median=$best bytes=9000000000 share=0.5 >>$work/seen/answers
echo "$TCCL_STATE ${TCCL_REASON%%:*}" >>$work/seen/states
TASK
chmod 755 "$work/task"

kinds=() # of the jobs so far: planned, trial or evidence
steps() { # USER N RING OWN: as many jobs of a step on two nodes
    local who=$1 n=$2 i
    shift 2
    for ((i = 0; i < n; i++)); do
        rm -f "$work"/seen/*
        mini run --as "$who" -- srun -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 "$work/task" "$@" >"$work/srun" 2>&1 ||
            fail "srun: $(cat "$work/srun")"
        equal "both nodes alike" "$(sort "$work/seen/states" | uniq -c | awk '{print $1}')" 2
        equal "answers" "$(sort -u "$work/seen/answers")" "tccl-ok 1; end"
        case $(sort -u "$work/seen/states") in
        "planned ") kinds+=(planned) ;;
        "left trial") kinds+=(trial) ;;
        "left evidence") kinds+=(evidence) ;;
        *) fail "states: $(cat "$work/seen/states")" ;;
        esac
    done
}
has() { # KIND N: is one of the last N jobs of that kind?
    printf '%s\n' "${kinds[@]: -$2}" | grep -x "$1" >/dev/null
}
gets() { # USER KIND RING OWN: is one of the user's next jobs of that kind? Half of all are trials.
    local tries
    for tries in {1..20}; do
        steps "$1" 1 "$3" "$4"
        ! has "$2" 1 || return 0
    done
    return 1
}
until_left() { # USER RING OWN: jobs until one has no ring for what was measured
    local tries=0
    until steps "$1" 1 "$2" "$3" && has evidence 1; do
        tries=$((tries + 1))
        [ $tries -lt 60 ] || fail "60 jobs, and the ring is still given: ${kinds[*]}"
    done
    echo "--- $1: left after $tries jobs"
}
explained() {
    admin tccl-check policy --explain --node n1 | grep '^evidence'
}
knows() { # SHELL-PATTERN: does tccld of n1 say so?
    explained >"$work/explained" || true
    case $(cat "$work/explained") in $1) ;; *) return 1 ;; esac
}

user_show srun -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on "$work/show"
has_ring 2
promised=$(record "$(job_of)" 0 gbps)
part() { python3 -c "print(round($promised * $1, 4))"; }
slow=$(part 0.6) own=$(part 1.0)

echo "--- one user's steps are slower with the ring: his alone have it no more"
until_left nobody "$slow" "$own"
gets nobody evidence "$slow" "$own" || fail "the ring is given again: ${kinds[*]}"
steps games 8 "$slow" "$own"
! has evidence 8 || fail "by one user's steps another one's have no ring"
matches "explained" "$(explained)" "evidence *GPUs *:0-3 of 2 nodes, * GB/s promised: 0.60x NCCL's own choice (* steps with it, * without); slower by the steps of 1 user, good by 0: given*"

echo "--- absurd figures count for nothing; two users' count for all"
steps daemon 8 9999 0.01
! has evidence 8 || fail "by absurd figures a ring is not given"
until_left games "$slow" "$own"
knows "*slower by the steps of 2 users, good by 0: no longer given*" || fail "explained: $(cat "$work/explained")"
gets daemon evidence "$slow" "$own" || fail "two users' steps say that it is slower, and a third one has it: ${kinds[*]}"
check n1 --only profile
item profile warn "*no longer true here: measure again (tccl-profile run): steps with rings on GPUs *:0-3 of 2 nodes, this one the first, reach 0.60 of *"

echo "--- asked for, too; a restart forgets nothing"
status=0
user_show srun -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on "$work/show"
case $(values TCCL_STATE) in
left)
    says "tccl: no ring: evidence: steps before were slower with the ring than with NCCL's own choice (tccl-check policy --explain)"
    recorded "$(job_of)" 0 reason_class evidence ;;
*) has_ring 2 ;; # one job in ten
esac
mini stop-tccld n1
equal "mode of evidence.json" "$(stat -c %a "$cluster/nodes/n1/state/evidence.json")" 600
mini start-tccld n1
eventually "n1 knows" knows "*no longer given*"
gets daemon evidence "$slow" "$own" || fail "forgotten: ${kinds[*]}"

echo "--- a file that can't be read is begun anew"
mini stop-tccld n1
cp "$cluster/nodes/n1/state/evidence.json" "$work/evidence.json"
echo '{"format": "tccl-evidence", "version": 1, "rows": [{"subject": 1, "what": 7}]}' >"$cluster/nodes/n1/state/evidence.json"
mini start-tccld n1
steps daemon 6 "$slow" "$own"
! has evidence 6 || fail "known from nothing: ${kinds[*]}"
grep -q "evidence.json.*what steps achieve is collected anew: row 0: " "$cluster/log/tccld@n1.out" || fail "no line in n1's log"
mini stop-tccld n1
cat "$work/evidence.json" >"$cluster/nodes/n1/state/evidence.json"
mini start-tccld n1
eventually "n1 knows again" knows "*no longer given*"

echo "--- switched off, and on"
sed -i 's/^EvidenceUsers=2/&\nEvidence=off/' "$cluster/tccl.conf"
reload_all
steps daemon 6 "$slow" "$own"
! has evidence 6 || fail "Evidence=off: ${kinds[*]}"
sed -i '/^Evidence=off/d' "$cluster/tccl.conf"
reload_all
gets daemon evidence "$slow" "$own" || fail "Evidence=on: ${kinds[*]}"

echo "--- a new measurement promises something else: the ring is given at once"
python3 - "$model" >"$work/model.json" <<'PYTHON'
import json
import sys
model = json.load(open(sys.argv[1]))
for resource in model["resources"]:
    resource["gbps"] *= 0.9
json.dump(model, sys.stdout)
PYTHON
admin tccl-profile run --model "$work/model.json" --cache "$work/cache" >/dev/null
for node in n1 n2; do
    folder=$(basename "$(ls -d "$cluster/nodes/$node/cache"/*/ | head -1)")
    cp -r "$work/cache/$folder" "$cluster/nodes/$node/cache/new"
    chown -R --reference="$cluster/nodes/$node/cache" "$cluster/nodes/$node/cache/new"
    mv "$cluster/nodes/$node/cache/$folder" "$work/old-$node"
    mv "$cluster/nodes/$node/cache/new" "$cluster/nodes/$node/cache/$folder"
done
steps daemon 8 "$slow" "$own"
! has evidence 8 || fail "a new profile, and the ring is not given: ${kinds[*]}"
gets daemon planned "$slow" "$own" || fail "no ring: ${kinds[*]}"
