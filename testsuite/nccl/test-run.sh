#!/bin/bash
# tccl-run: a stock NCCL on one machine without Slurm, by a user without rights and in torchrun's shape: one process that forks a rank for each
# GPU. The planned rings are built, data are right, the record is in the user's file. The command is run in any case, as the process that was started: no profile, none
# of its GPUs, several machines, no room for the record, killed at any time; nothing is left behind. In cuMem mode.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
for program in spank/tccl-run spank/tcclacct profiler/tccld profiler/tccl-profile; do
    [ -x "$TCCL_BUILD/$program" ] || skip "the build has no $program"
done

readonly user=$((1000000 + $$)) # without a name, and nobody else's
export XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state
as_user() { # COMMAND...: without any right
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid $user --regid $user --clear-groups --bounding-set -all "$@"
    else
        "$@"
    fi
}
owner=$([ "$(id -u)" = 0 ] && echo $user || id -u)
as_user unshare --user --mount true 2>/dev/null || skip "a user may not have a mount namespace here"
chmod 755 "$work"
mkdir -m 777 "$work"/{cache,state,out}
printf '[tccl]\nCacheDir=%s\nMachine=%s\nShim=%s\n' "$work/none" "$work/none/machine.json" "$TCCL_BUILD/runtime/libtccl-nccl.so" >"$work/tccl.conf"

# A training: ranks are forked, each takes a GPU; one that fails ends it.
cat >"$work/train" <<'JOB'
#!/bin/bash
ranks=$1; shift
rm -f "$OUT"/id "$OUT"/rank.*
for ((rank = 0; rank < ranks; rank++)); do
    "$RIG/ring-probe" --json --go-on --id "$OUT/id" --rank $rank --ranks $ranks --gpus 1 --device $rank --log "$OUT/log.$rank" "$@" >"$OUT/rank.$rank" &
done
status=0
for job in $(jobs -p); do wait $job || status=$?; done
exit $status
JOB
chmod 755 "$work/train"

machine() { # MODEL: the one that runs from here on
    rm -rf "$work/machine"
    "$here/describe-machine" "$machines/$1.json" "$work/machine"
    chmod -R a+rX "$work/machine"
}

run() { # [NAME=VALUE]... -- COMMAND...: by tccl-run there; what it says on stderr is in $work/said
    local settings=()
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    as_user env LD_LIBRARY_PATH="$rig/lib" LD_PRELOAD="$TCCL_BUILD/testsuite/nccl/numa-nodes.so" NCCL_SOCKET_IFNAME=lo NCCL_GIN_TYPE=2 TCCL_RIG_CUMEM=1 \
        TCCL_RIG_LAUNCH=run TCCL_DEBUG=INFO TCCL_DEBUG_FILE="$work/out/tccl.log" RIG="$rig" OUT="$work/out" XDG_CACHE_HOME="$XDG_CACHE_HOME" \
        XDG_STATE_HOME="$XDG_STATE_HOME" "${settings[@]}" "$here/on-machine" "$work/machine" -- \
        "$TCCL_BUILD/spank/tccl-run" --config "$work/tccl.conf" --tccld "$TCCL_BUILD/profiler/tccld" ${run_options[@]+"${run_options[@]}"} "$@" 2>"$work/said"
}
run_options=()

says() { # TEXT: the one line
    cat "$work/said"
    [ "$(grep -c '^tccl: ' "$work/said")" = 1 ] || fail "$what: not one line"
    grep -qF -- "$1" "$work/said" || fail "$what: it does not say \"$1\""
}

# The folders and processes of runs, and what the shim shares: of this user, made by this test.
left() {
    find /tmp -maxdepth 1 -name 'tccl-run.*' -user "$owner" -newer "$work/begun"
    find /dev/shm -maxdepth 1 -name "tccl-$owner-*" -newer "$work/begun"
    pgrep -u "$owner" -x tccl-run-keep || pgrep -u "$owner" -x tccld || true
}
touch "$work/begun"
nothing_left() {
    local end=$((SECONDS + 60))
    while [ -n "$(left)" ]; do
        [ $SECONDS -lt $end ] || { ls -lR /tmp/tccl-run.* || true; fail "$what: it has left: $(left | tr '\n' ' ')"; }
        sleep 0.1
    done
}

record() { # PYTHON-CONDITION over r, the last record
    nothing_left
    as_user "$TCCL_BUILD/spank/tcclacct" --file "$work/state/tccl/records.db" --json -S now-1day >"$work/records.json"
    python3 - "$work/records.json" "$1" <<'PYTHON' || fail "$what: the record is not so: $1"
import json, sys
records = json.load(open(sys.argv[1]))["records"]
r = records[-1]
print({name: r.get(name) for name in ("job_name", "state", "reason", "built", "built_reason", "gpus", "gbps", "nccl", "sent_bytes")}, len(records))
sys.exit(not eval(sys.argv[2]))
PYTHON
}

step() {
    what=$*
    echo "== $what"
}

train=("$work/train" 4 --check --collective all-reduce:4194304:f32)
right_data() {
    grep -h '"wrong"' "$work"/out/rank.* >/dev/null || fail "$what: no rank says how its data are"
    ! grep -hE '"wrong": *[1-9]' "$work"/out/rank.* || fail "$what: wrong data"
}

step "nothing was measured"
machine amd-4gpu
own_ring() { # NEXT: the line names the ring that NCCL builds, which goes from GPU 0 to GPU NEXT
    run -- "${train[@]}" || fail "$what: status $?"
    says "no ring: nothing was measured on this machine"
    python3 - "$work/said" "$1" "$work"/out/rank.? <<'PYTHON' || fail "$what: the line has another ring than NCCL built"
import json, re, sys
said = open(sys.argv[1]).read()
ranks = [next(json.loads(line) for line in open(path) if '"channels"' in line) for path in sys.argv[3:]]
following = {rank["rank"]: rank["channels"][0]["next"] for rank in ranks}
ring = [0]
while (rank := following[ring[-1]]) != 0: # from GPU 0 on, as NCCL has connected them
    ring.append(rank)
told = re.search(r"without NVLink NCCL by itself builds (?:\d+ rings, the first is )?([-0-9a-z> ]+)", said)
print(ring, told and told[1])
sys.exit(not told or [int(gpu) for gpu in re.findall(r"(?:^|> )(\d+)", told[1])] != ring + [0] or ring[1] != int(sys.argv[2]))
PYTHON
    right_data
}
own_ring 3
# GPUs 0 and 2 are below one switch by the file of a virtual machine's host, and so are 1 and 3.
host_file=$work/machine/run/nvidia-topologyd/virtualTopology.xml
cp "$host_file" "$work/host-file"
python3 - "$host_file" 01,44 41,61 <<'PYTHON'
import re, sys
text = open(sys.argv[1]).read()
for node, buses in enumerate(sys.argv[2:]):
    gpus = "".join(f'<pci busid="0000:{bus}:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"/>' for bus in buses.split(","))
    switch = f'<pci busid="ffff:ff:0{node}.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">{gpus}</pci>'
    text = re.sub(f'(<cpu numaid="{node}"[^>]*>)', rf"\1{switch}", text)
open(sys.argv[1], "w").write(text)
PYTHON
own_ring 2
cp "$work/host-file" "$host_file"
printf '# of an image\nNCCL_GRAPH_FILE=%s\n' "$work/none.xml" >"$work/nccl.conf"
chmod 644 "$work/nccl.conf"
for setting in NCCL_TOPO_FILE="$work/none.xml" NCCL_GRAPH_FILE="$work/none.xml" NCCL_CONF_FILE="$work/nccl.conf"; do
    run "$setting" -- true
    ! grep -q "by itself builds" "$work/said" || fail "$what: $setting: $(cat "$work/said")"
done
nothing_left

step "the user's own profile"
as_user "$TCCL_BUILD/profiler/tccl-profile" run -q --config "$work/tccl.conf" --model "$machines/amd-4gpu.json" >"$work/profile.log" 2>&1 ||
    { cat "$work/profile.log"; fail "$what: tccl-profile run ended with an error"; }
[ -d "$work/cache/tccl" ] || fail "$what: the profile is not in the user's cache"
run -- "${train[@]}" || fail "$what: status $?"
cat "$work/said"
grep -qE '^tccl: (ring|[0-9] rings) of 4 GPUs: .* GB/s \(NCCL' "$work/said" || fail "$what: no ring"
right_data
record 'r["built"] == "yes" and r["gpus"] == 4 and r["job_name"] == "train" and r["nccl"] and len(records) == 1'

step "some GPUs, by numbers and by UUIDs; groups of them; what CUDA would not show"
run CUDA_VISIBLE_DEVICES=2,0 -- "$work/train" 2 --check --collective all-reduce:4194304:f32 || fail "$what: status $?"
cat "$work/said"
record 'r["gpus"] == 2 and len(records) == 2'
uuids=$(sed -n 's/.*\(GPU-[0-9a-f-]*\).*/\1/p' "$work/machine/devices" | tr '\n' ' ')
read -r -a uuids <<<"$uuids"
run CUDA_VISIBLE_DEVICES="${uuids[3]},${uuids[0]:0:14},${uuids[1]},9,2" -- true
record 'r["gpus"] == 3 and len(records) == 3'
run CUDA_VISIBLE_DEVICES=1 -- true
says "nothing to do: one GPU"
run CUDA_VISIBLE_DEVICES=-1 -- true
says "CUDA_VISIBLE_DEVICES shows no GPU"
run CUDA_VISIBLE_DEVICES=0,MIG-1234 -- true
says "MIG instance"
run -- "$work/train" 2 --collective all-reduce:4194304:f32 || fail "$what: status $?"
record 'r["gpus"] == 4 and len(records) == 4'

step "the command is the process that was started, and its end is its own"
[ "$(run -- sh -c 'echo $PPID $$; exec cat' <<<"standard input" | sed -n 2p)" = "standard input" ] || fail "$what: standard input"
run -- sh -c 'exit 7' && status=0 || status=$?
[ $status = 7 ] || fail "$what: status $status, not 7"
run -- sh -c 'kill -USR1 $$' && status=0 || status=$?
[ $status = 138 ] || fail "$what: status $status, not that of SIGUSR1"
run -- "$work/none/program" && status=0 || status=$?
[ $status = 127 ] || fail "$what: status $status, not 127"
grep -q "none/program: not found" "$work/said" || fail "$what: no line for a command that is not there"
run -- "$work/tccl.conf" && status=0 || status=$?
[ $status = 126 ] || fail "$what: status $status, not 126"
run -- printf '%s|' a --complete "b c" -h >"$work/words"
[ "$(cat "$work/words")" = "a|--complete|b c|-h|" ] || fail "$what: the command's words: $(cat "$work/words")"
run -- sh -c 'test "$TCCL_STATE" = planned' <&- >&- || fail "$what: no ring without standard input and output"
nothing_left

begin() { # NAME=VALUE... -- COMMAND...: in the background, until it runs; $started is its process
    rm -f "$work/out/pid"
    run "$@" &
    until [ -s "$work/out/pid" ]; do sleep 0.05; done
    started=$(cat "$work/out/pid")
}
readonly idle='echo $$ >$OUT/pid.new; mv $OUT/pid.new $OUT/pid; exec sleep 1000'

step "nobody waits for its keeper"
[ "$(timeout 60 bash -c "$(declare -f run as_user); $(declare -p rig work here TCCL_BUILD user XDG_CACHE_HOME XDG_STATE_HOME); run_options=(); run -- sh -c 'echo a; echo b' | wc -l")" = 2 ] || fail "$what: a pipe stays open"
run -- sh -c 'wait; ps -o pid= --ppid $$ | wc -l' >"$work/children" # ps, and the shell of the pipe
[ "$(cat "$work/children")" -le 2 ] || fail "$what: the command has a child that it did not start"

step "two at once, of which one is killed"
begin -- sh -c "$idle"
first=$started
begin -- sh -c "$idle"
[ "$(left | grep -c /tmp/tccl-run)" = 2 ] || fail "$what: not two folders: $(left)"
kill -KILL "$first"
end=$((SECONDS + 60))
until [ "$(left | grep -c /tmp/tccl-run)" = 1 ]; do [ $SECONDS -lt $end ] || fail "$what: $(left)"; sleep 0.1; done
kill -TERM "$started"
wait || true
nothing_left

step "killed while ranks have the ring"
rm -f "$work/out/tccl.log" "$work/out/pid"
run -- sh -c 'echo $$ >$OUT/pid; "$0" "$@" & wait' "$work/train" 4 --times 100000 --collective all-reduce:4194304:f32 &
until grep -q "built as planned" "$work/out/tccl.log" 2>/dev/null; do sleep 0.1; done
kill -KILL "$(cat "$work/out/pid")"
nothing_left # but the ranks, that nobody has ended
for process in $(pgrep -u "$owner" -x ring-probe); do
    [[ $(tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null) != *"$work"* ]] || kill -KILL "$process" 2>/dev/null || true
done
wait || true

step "tccld and the keeper are killed: the command goes on, and the next one removes what they left"
begin -- sh -c "$idle"
folder=$(left | grep /tmp/tccl-run)
kill -KILL $(pgrep -u "$owner" -x tccld)
sleep 0.5
kill -0 "$started" || fail "$what: the command has ended"
kill -KILL $(pgrep -u "$owner" -x tccl-run-keep)
touch -d "2 minutes ago" "$folder"
run -- true
grep -q "GB/s" "$work/said" || fail "$what: no ring beside it"
gone() { # FOLDER
    end=$((SECONDS + 60))
    while [ -e "$1" ]; do [ $SECONDS -lt $end ] || fail "$what: $1 is still there"; sleep 0.1; done
}
gone "$folder"
kill -KILL "$started"
wait || true
nothing_left

step "other ways to start"
aside() { # TEXT NAME=VALUE... -- COMMAND...
    run "${@:2}" && status=0 || status=$?
    [ $status = 0 ] || fail "$what: status $status"
    says "$1"
    [ -z "$(left)" ] || fail "$what: $1: a tccld all the same"
}
aside "8 ranks of Open MPI on several machines" OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_RANK=0 -- true
aside "in front of the command that starts them all" WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 RANK=0 -- true
aside "--nnodes 2: without Slurm it is for one machine" -- env true --nnodes 1:2
for program in mpirun "mpiexec.hydra"; do
    printf '#!/bin/sh\nexit 0\n' >"$work/$program"
    chmod 755 "$work/$program"
done
printf '# two\nn1 slots=4\n\nn2 slots=4\n' >"$work/hosts"
printf 'lr: 0.1\nbatch: 3\n' >"$work/own.yaml"
chmod 644 "$work/hosts" "$work/own.yaml"
aside "mpirun on several machines" -- "$work/mpirun" -np 2 -H n1:4,n2:4 true
aside "mpiexec.hydra on several machines" -- "$work/mpiexec.hydra" -f "$work/hosts" true
aside "mpirun on several machines" -- "$work/mpirun" --hostfile="$work/hosts" true
aside "mpirun on several machines" -- "$work/mpirun" --host=n1,n2 true
for words in "-H n1:2,n1 --hostfile $work/none sh" "-H localhost,$(uname -n),$(uname -n).site true" "-np 4 true -f $work/own.yaml"; do
    run -- "$work/mpirun" $words
    grep -q "GB/s" "$work/said" || fail "$what: $words: one host is several machines: $(cat "$work/said")"
    nothing_left
done
aside "a job of 2 machines" SLURM_JOB_NUM_NODES=2 -- true
for setting in "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1" "TCCL_STATE=planned" "TCCL=off"; do
    run $setting -- true
    [ ! -s "$work/said" ] || { cat "$work/said"; fail "$what: $setting: it is not silent"; }
done
[ -z "$(run TCCL_STATE=failed -- sh -c 'echo "${TCCL_PLAN:-}"')" ] || fail "$what: a plan in a step that has none"
run_options=(--quiet)
run -- sh -c 'test "$TCCL_STATE" = planned' || fail "$what: no ring with --quiet"
[ ! -s "$work/said" ] || fail "$what: not quiet"
nothing_left

step "a tar that was unpacked where LD_PRELOAD can't name it"
mkdir -p "$work/a folder/lib/tccl"
cp "$TCCL_BUILD/runtime/libtccl-nccl.so" "$work/a folder/lib/tccl/"
chmod -R a+rX "$work/a folder"
sed "s,^Shim=.*,Shim=$work/a folder/lib/tccl/libtccl-nccl.so," "$work/tccl.conf" >"$work/odd.conf"
run_options=(--config "$work/odd.conf")
aside "can't have: move it" -- sh -c '[ -z "${TCCL_STATE:-}" ]'

step "no room for the record"
run_options=(--records /dev/full)
run -- sh -c 'exit 3' && status=0 || status=$?
[ $status = 3 ] || fail "$what: status $status"
grep -q "^tccl: no record of this run: /dev/full" "$work/said" || { cat "$work/said"; fail "$what: it does not say so"; }
nothing_left
if [ "$(id -u)" = 0 ]; then
    mkdir "$work/small"
    mount -t tmpfs -o size=400k,mode=777 tmpfs "$work/small"
    trap 'umount "$work/small"; rm -rf "$work"' EXIT
    run_options=(--records "$work/small/records.db")
    run -- sh -c "dd if=/dev/zero of=$work/small/fill bs=4k 2>/dev/null; exit 3" && status=0 || status=$?
    [ $status = 3 ] || fail "$what: full meanwhile: status $status"
    end=$((SECONDS + 60)) # its keeper ends, and keeps the record
    while pgrep -u "$owner" -x tccl-run-keep >/dev/null; do [ $SECONDS -lt $end ] || fail "$what: the keeper does not end"; sleep 0.1; done
    folder=$(left)
    [ -e "$folder/state/records.db" ] || fail "$what: full meanwhile: the record is lost: $folder"
    touch -d "2 minutes ago" "$folder"
    rm "$work/small/fill"
    run -- true
    nothing_left
    kept=$(as_user "$TCCL_BUILD/spank/tcclacct" --file "$work/small/records.db" -nP -S now-1day -o JobName | sort | xargs)
    [ "$kept" = "sh true" ] || fail "$what: records once there is room: $kept"
fi

step "a tccld that is not there"
run_options=(--tccld "$work/none/tccld")
run -- true
says "no ring:"
nothing_left
