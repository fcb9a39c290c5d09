#!/bin/bash
# Two jobs whose copies collapse beside each other, on a node such as turin-pex890 that was measured, with noise, pair by pair: {0,4}
# runs NCCL's own rings (its mode is off), {1,6} begins. With a ring of ours both keep their part; without, the log says so, and
# the record of the first (of a newcomer that waits, once it has its answer), and place and gres put jobs elsewhere. What each has in truth is what the node's model says of the chains that run.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own=$(mktemp -d --tmpdir tccl-collapse-XXXXXX)
trap 'rm -rf "$own"' EXIT
profile=$build/profiler/tccl-profile
model=$models/turin-pex890.json
how=(run -q --backend noisy --noise 0.02 --model "$model" --cache "$own/node/cache")
mkdir -p "$own/node/cache"
"$profile" init --model "$model" --machine "$own/node/machine.json"
"$profile" "${how[@]}" --neighbours --splits 0-1/2-3
"$profile" "${how[@]}" --gpus "$(for a in {0..7}; do for b in {0..7}; do [ $a -ge $b ] || printf '%s;' $a,$b; done; done)"
"$profile" gres --cache "$own/node/cache" "$own"/node/cache/* >"$own/gres.conf"
grep -c Links= "$own/gres.conf" | grep -x 8 >/dev/null || fail "no Links= for all GPUs: $(<"$own/gres.conf")"

own_cluster --nodes 1 --profile "$own/node" --gres "$own/gres.conf"
mkdir -p "$work"
rm -rf "$own"
chmod 1777 "$work"
folder=$(echo "$cluster"/nodes/n1/cache/*)

# What jobs have while all run, as parts of what each has alone: the least. Each is the texts of its rings, of GPU numbers.
least_share() { # RINGS...
    python3 - "$build/pathfind/tccl-path" "$model" "$@" <<'SHARE'
import json, re, subprocess, sys
program, model, *jobs = sys.argv[1:]

def transfers(rings):
    found = []
    for ring in rings.split("|"):
        words = ring.split()
        for a, how, b in zip(words[::2], words[1::2], words[2::2]):
            memory = re.fullmatch(r"-m(\d+)>", how)
            found += [f"g{a}>m{memory[1]}", f"g{b}<m{memory[1]}"] if memory else [f"g{b}<g{a}" if how == "-r>" else f"g{a}>g{b}"]
    return list(dict.fromkeys(found))  # of rings that are alike each once

def rates(names):
    out = subprocess.run([program, "measure", "--model", model, "--load", " ".join(names), "--json"], check=True, capture_output=True)
    return {each["transfer"]: each["gbps"] for each in json.loads(out.stdout)["transfers"]}

jobs = [transfers(job) for job in jobs]
beside = rates(sum(jobs, []))
print(f"{min(min(beside[name] for name in job) / min(rates(job).values()) for job in jobs):.3f}")
SHARE
}
above() { # WHAT A B: A > B
    python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]))' "$2" "$3" || fail "$1: $2, not above $3"
}
below() { above "$1" "$3" "$2"; }
own_of() { # GPUS: NCCL's own rings, of the profile
    admin tccl-path solve --profile "$folder" --gpus "$1" --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["baseline_ring"])'
}

begin() { # GPUS NAME SRUN-OPTION...: a job on these that runs until end
    local gpus=$1 name=$2
    shift 2
    leave_free n1 "$gpus"
    rm -f "$work/$name" "$work/over"
    user srun -N1 --gpus=2 "$@" sh -c "touch $work/$name; until [ -e $work/over ]; do sleep 0.1; done" 2>"$work/$name.err" &
    begun+=($!)
    eventually "the $name job" test -e "$work/$name"
}
end() {
    touch "$work/over"
    for pid in "${begun[@]}"; do wait "$pid" || fail "a job failed: $(cat "$work"/*.err)"; done
    begun=()
    user scancel --name=hold
}
begun=()
said() { grep "copies of its GPUs 1,6 and those of steps on GPUs 0,4 slow each other down" "$cluster/log/tccld@n1.out"; }

echo "--- a job with a ring of ours beside NCCL's own"
begin 0,4 first --tccl=off
leave_free n1 1,6
srun_show -N1 --gpus=2 --tccl=on
has_ring 1
ring=$(values TCCL_RING)
says 'tccl: * of 2 GPUs: *GB/s beside 1 other step *'
recorded "$(job_of)" 0 neighbours 1
recorded "$(job_of)" 0 beside '*/* nccl: 0 -w> 4 -w> 0'
above "GB/s that NCCL's own is known to have there" 2 "$(values TCCL_BASELINE_GBPS)"
chain=$(sed -E 's/^n1\[(.*)\]$/\1/' <<<"$ring")
with=$(least_share "$(own_of 0,4)" "$chain")
without=$(least_share "$(own_of 0,4)" "$(own_of 1,6)")
echo "least share of the jobs on GPUs 0,4 and 1,6: $with with our ring for the second ($chain), $without with NCCL's own"
above "least share with our ring" "$with" 0.3
below "least share with NCCL's own" "$without" 0.05
! said >/dev/null || fail "the log says what is not so: $(said)"
sleep 2 # a look at those that ran before
! grep "is slowed down" "$cluster/log/tccld@n1.out" || fail "the first is told of a ring that leaves it its share"

echo "--- a job with its mode off: the log says what it does"
begin 1,6 second --tccl=off
eventually "a line in tccld's log" said
said
on_gpus() { # GPUS: the job that has these
    local job
    for job in $(user squeue -h -t R -o %A); do
        user scontrol -d show job "$job" | grep -E "\(IDX:$1\)" >/dev/null && echo "$job"
    done
}
first=$(on_gpus 0,4) second=$(on_gpus 1,6)

echo "--- who ran before is told, in its record; who came is not, nor is anybody whom a ring of ours left alone"
recorded "$first" 0 slowed 'n1: a step began later on GPUs 1,6: copies of both slow each other down: * of * GB/s on GPUs 0,4'
record "$first" 0 slowed
equal "the state of the first" "$(record "$first" 0 state)" off
equal "Slowed of the second" "$(record "$second" 0 slowed)" ""
end

echo "--- a newcomer that waits for slurmctld's word, while another one begins beside it, is told once it has its answer; the other one is not"
cat >"$work/squeue" <<SH
#!/bin/sh
touch $work/asked
until [ -e $work/second ]; do sleep 0.1; done # tccld gives it 5 s
exec squeue "\$@"
SH
chmod 755 "$work/squeue"
sed -i "s|^\[tccl\]|&\nSqueue=$work/squeue|" "$cluster/tccl.conf"
printf '[policy others]\nPartitions=others\nForbid=yes\n' >>"$cluster/tccl.conf"
reload_all
rm -f "$work/first" "$work/second" "$work/over"
allocate() { # NAME GPUS: a job without a step; prints its number
    leave_free n1 "$2" >&2
    user salloc -Q --no-shell -J "$1" -N1 -n1 --gpus=2
    user squeue -h -n "$1" -o %A
}
first=$(allocate first 0,4) second=$(allocate second 1,6)
run_in() { # JOB NAME MODE
    user srun --jobid="$1" -n1 --tccl="$3" sh -c "touch $work/$2; until [ -e $work/over ]; do sleep 0.1; done" 2>"$work/$2.err" &
    begun+=($!)
}
run_in "$first" first on
eventually "slurmctld is asked" test -e "$work/asked"
[ ! -e "$work/first" ] || fail "the newcomer does not wait"
run_in "$second" second off
eventually "both run" test -e "$work/first" -a -e "$work/second"
recorded "$first" 0 slowed 'n1: a step began later on GPUs 1,6: copies of both slow each other down: * of * GB/s on GPUs 0,4'
record "$first" 0 state
record "$first" 0 slowed
equal "Slowed of the second" "$(record "$second" 0 slowed)" ""
end
user scancel "$first" "$second"
sed -i '/^Squeue=/d' "$cluster/tccl.conf"
reload_all

echo "--- place: none of the sets that come before the last ones collapse, whatever runs there"
admin tccl-path place --profile "$folder" --gpus 2 --busy 0,4 --json >"$work/places.json"
ranked() { # true|false: sets where NCCL's own collapses, or not, as GPU lists, in order
    python3 - "$work/places.json" "$1" <<'SETS'
import json, sys
places = json.load(open(sys.argv[1]))["places"]
flags = [place["collapses"] for place in places]
assert flags == sorted(flags) and flags.count(True) == 4, flags
for place in places:
    if place["collapses"] == (sys.argv[2] == "true"):
        print(",".join(map(str, place["gpus"])))
SETS
}
for gpus in $(ranked true); do
    below "least share on $gpus" "$(least_share "$(own_of 0,4)" "$(own_of "$gpus")")" 0.05
done
for gpus in $(ranked false); do
    above "least share on $gpus" "$(least_share "$(own_of 0,4)" "$(own_of "$gpus")")" 0.2
done

echo "--- gres: Slurm gives jobs of two GPUs such as don't collapse"
for name in a b c d; do
    rm -f "$work/over"
    user srun -N1 --gpus=2 --tccl=off sh -c "touch $work/$name; until [ -e $work/over ]; do sleep 0.1; done" 2>"$work/$name.err" &
    begun+=($!)
    eventually "job $name" test -e "$work/$name"
done
rings=()
for job in $(user squeue -h -t R -o %A); do
    gpus=$(admin scontrol -d show job "$job" | sed -nE 's/.*\(IDX:([0-9,-]+)\).*/\1/p')
    echo "job $job has GPUs $gpus"
    rings+=("$(own_of "$gpus")")
done
equal jobs "${#rings[@]}" 4
above "least share of four jobs by gres" "$(least_share "${rings[@]}")" 0.2
end
