# lib.sh: what the end-to-end tests share. Sourced; expects TCCL_MINICLUSTER, the folder of a running
# minicluster (but for tests that start their own), and TCCL_BUILD. Exit status 77: skipped.
set -Eeuo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${here%/*/*}
models=$root/testsuite/machines
build=${TCCL_BUILD:-$root/build}
cluster=${TCCL_MINICLUSTER:-}
test_name=$(basename "$0" .sh)
at_end=() # commands that put the cluster back as it was

mini() {
    "$root/contrib/minicluster" "$@"
}

admin() { # COMMAND...: in the cluster, as root
    mini run -- "$@"
}

user() { # COMMAND...: in the cluster, as an ordinary user
    mini run --as nobody -- "$@"
}

fail() {
    echo "failed: $*"
    exit 1
}

skip() {
    echo "$*"
    exit 77
}

slurms_name() { # of the cluster
    sed -n 's/^ClusterName=//p' "$cluster/slurm.conf"
}

equal() { # WHAT ACTUAL EXPECTED
    [ "$2" = "$3" ] || fail "$1 is '$2', expected '$3'"
}

# The one line that a step says to its user, from its first node only.
says() { # SHELL-PATTERN
    equal "lines with tccl:" "$(grep -c 'tccl: ' "$work/err" || true)" 1
    matches "the line" "$(grep 'tccl: ' "$work/err")" "$1"
}

says_nothing() { # but Slurm may: that the job before is not quite gone
    equal "messages" "$(grep -vE '^srun: job [0-9]+ (queued and waiting for|has been allocated) resources$' "$work/err" || true)" ""
}

matches() { # WHAT ACTUAL SHELL-PATTERN
    [[ $2 == $3 ]] || fail "$1 is '$2', expected to match '$3'"
}

# Waits until the command succeeds; this bounds how long a broken program is waited for, nothing else.
eventually() { # WHAT COMMAND...
    local what=$1 end=$((SECONDS + 240))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "$what: did not happen in 240 s"
        sleep 0.1
    done
}

kill_tccld() { # NODE: at once; returns when it has ended
    local pid
    pid=$(<"$cluster/pid/tccld@$1")
    kill -9 "$pid"
    eventually "end of tccld" sh -c "! kill -0 $pid 2>/dev/null"
}

# ---- the tasks' environment ----------------------------------------------------------------------

# Tasks run this; each writes lines "JOB.STEP NODE PROCID NAME=VALUE", one "started" line first, into a
# file of its own: srun would mix long lines of several tasks.
write_show() {
    cat >"$work/show" <<'SHOW'
#!/bin/sh
{
    echo started
    env | grep -E '^(TCCL(_STATE|_REASON|_RING|_GBPS|_BASELINE_GBPS|_PLAN|_SHIM)?|LD_PRELOAD)=' || :
} | sed "s|^|$SLURM_JOB_ID.${SLURM_STEP_ID:-batch} $SLURMD_NODENAME $SLURM_PROCID |" \
    >"$(dirname "$0")/seen/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}.${SLURM_STEP_ID:-batch}.$SLURM_PROCID"
SHOW
    chmod 755 "$work/show"
    mkdir -p "$work/seen"
    chmod 1777 "$work/seen"
}

# Runs a command as the user whose tasks run $work/show: what they saw goes to $work/out, messages to
# $work/err, the exit status to $status.
user_show() { # COMMAND...
    status=0
    rm -f "$work"/seen/*
    user "$@" 2>"$work/err" || status=$?
    collect
    cat "$work/err"
}

collect() {
    find "$work/seen" -type f -exec cat {} + >"$work/out"
    cut -c 1-200 "$work/out"
}

srun_show() { # SRUN-OPTION...
    user_show srun "$@" "$work/show"
}

tasks() { # [STEP]: how many tasks started
    grep -cE "^[0-9]+\.${1:-[^ ]+} .* started\$" "$work/out" || true
}

values() { # NAME [STEP]: its different values, one a line
    sed -nE "s/^[0-9]+\.${2:-[^ ]+} [^ ]+ [0-9]+ $1=//p" "$work/out" | sort -u
}

carriers() { # NAME [STEP]: how many tasks have it
    grep -cE "^[0-9]+\.${2:-[^ ]+} [^ ]+ [0-9]+ $1=" "$work/out" || true
}

job_of() { # of the first task in $work/out
    sed -nE '1s/^([0-9]+)\..*/\1/p' "$work/out"
}

# Every task of the step has the value.
all_have() { # NAME VALUE [STEP]
    equal "$1" "$(values "$1" "${3:-}")" "$2"
    equal "tasks with $1" "$(carriers "$1" "${3:-}")" "$(tasks "${3:-}")"
}

none_has() { # NAME [STEP]
    equal "tasks with $1" "$(carriers "$1" "${2:-}")" 0
}

has_ring() { # TASKS [STEP]
    equal "tasks" "$(tasks "${2:-}")" "$1"
    all_have TCCL_STATE planned "${2:-}"
    none_has TCCL_REASON "${2:-}"
    equal "rings" "$(values TCCL_RING "${2:-}" | wc -l)" 1
}

no_ring() { # TASKS REASON-PATTERN [STEP]
    equal "tasks" "$(tasks "${3:-}")" "$1"
    all_have TCCL_STATE failed "${3:-}"
    none_has TCCL_RING "${3:-}"
    none_has TCCL_PLAN "${3:-}"
    matches "TCCL_REASON" "$(values TCCL_REASON "${3:-}")" "$2"
}

# ---- rings ---------------------------------------------------------------------------------------

# tccl-path's options for nodes with their GPUs, by their profiles or by the models of these.
node_options() { # profile|model NODE:GPUS...
    local source=$1 node kind
    shift
    for node in "$@"; do
        kind=$(readlink -f "$cluster/nodes/${node%%:*}/kind")
        case $source in
        profile) echo --node "$(dirname "$kind"/cache/*/profile.json)=1:${node#*:}" ;;
        model) echo --node "$kind/model.json=1:${node#*:}" ;;
        esac
    done
}

# Is the step's ring the one that tccl-path solves for these nodes and GPUs: the same ring from the
# same profiles, and the bandwidth that it finds from the models? Several rings at once only where they gain more than 5 %,
# and none with max_rings=1 for MaxRings=1.
as_solved() { # STEP NODE:GPUS...
    local step=$1
    shift
    admin tccl-path solve --rings "${max_rings:-auto}" $(node_options profile "$@") --json >"$work/sets.json"
    admin tccl-path solve --rings 1 $(node_options profile "$@") --json >"$work/single.json"
    admin tccl-path solve --rings 1 $(node_options model "$@") --json >"$work/model.json"
    python3 "$here/same_ring.py" "$work/sets.json" "$work/single.json" "$work/model.json" "$(printf '%s\n' "${@%%:*}" | xargs)" \
        "$(values TCCL_RING "$step")" "$(values TCCL_GBPS "$step")" "$(values TCCL_BASELINE_GBPS "$step")" ||
        fail "step $step: not the ring that tccl-path solves"
}

# ---- records -------------------------------------------------------------------------------------

outboxes() { # prints how many records wait in those of all nodes; ROWS: what of them
    python3 - "${1:-count(*) FROM waiting}" "$cluster"/nodes/*/state/outbox.db <<'EOF'
import contextlib, sqlite3, sys
found = 0
for path in sys.argv[2:]:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as db:
        found += db.execute(f"SELECT {sys.argv[1]}").fetchone()[0]
print(found)
EOF
}

records() { # TCCLACCT-OPTION...: as root, to $work/records.json
    admin tcclacct --json "$@" >"$work/records.json"
}

# What COMMAND prints for the record that fits, e.g. record 12 0 state.
record() { # JOB STEP FIELD
    records -j "$1"
    python3 "$here/record.py" "$work/records.json" "$2" "$3"
}

has_record() { # JOB STEP
    [ -n "$(record "$1" "$2" state)" ]
}

# A record is delivered after the step has its plan, and what was built comes later still.
recorded() { # JOB STEP FIELD VALUE-PATTERN
    eventually "a record of $1.$2" has_record "$1" "$2"
    (eventually "record $1.$2: $3" record_matches "$@") ||
        matches "record $1.$2 ($(record "$1" "$2" reason)): $3" "$(record "$1" "$2" "$3")" "$4"
}

record_matches() { # JOB STEP FIELD VALUE-PATTERN
    [[ $(record "$1" "$2" "$3") == $4 ]]
}

# Has the step a slurmstepd on a node of this cluster? By its socket: other clusters number their jobs alike.
has_stepd() { # JOB.STEP
    grep -qE " $cluster/[^ ]*_${1//./\\.}\$" /proc/net/unix
}

# ---- how long steps wait ---------------------------------------------------------------------------

# Where a test is about a node that never comes: as little as nodes need that do. Steps that must have their ring
# have the Timeout= of minicluster --patient.
wait_little() {
    sed -i -E 's/^(Timeout|AutoTimeout|RequireTimeout)=.*/\1=6s/; s/^AliveTimeout=.*/AliveTimeout=2s/' "$cluster/tccl.conf"
}

wait_long() {
    sed -i -E 's/^(Timeout|AutoTimeout)=.*/\1=30s/; s/^RequireTimeout=.*/RequireTimeout=60s/; s/^AliveTimeout=.*/AliveTimeout=10s/' \
        "$cluster/tccl.conf"
}

# ---- tccl-check ----------------------------------------------------------------------------------

# Runs tccl-check for a node as root: its lines in $work/check, the exit status in $status.
check() { # NODE OPTION...
    local node=$1
    shift
    status=0
    admin tccl-check --node "$node" --timeout 60 "$@" >"$work/check" || status=$?
    cat "$work/check"
}

# One line for the item, of this level, that matches.
item() { # NAME LEVEL SHELL-PATTERN
    matches "item $1" "$(awk -v item="$1" '$2 == item' "$work/check")" "$2 *$1 *$3"
}

# All items but these are ok. Which NCCL this machine has is its own affair, and GPUs that it has are not
# those of a model.
others_ok() { # NAME...
    local bad
    set -- "$@" machine nccl $([ ! -e /proc/driver/nvidia ] || echo profile)
    bad=$(awk -v but=" $* " '$1 != "ok" && !index(but, " " $2 " ")' "$work/check")
    equal "other items that are not ok" "$bad" ""
}

# ---- nodes that come late ------------------------------------------------------------------------

# The Prolog of these nodes goes on when the test says so; $work/held.NODE: it has begun.
hold() { # NODE...
    local node
    rm -f "$work/release" "$work"/held.*
    for node in "$@"; do
        printf '#!/bin/sh\ntouch %s/held.%s\nuntil [ -e %s/release -o ! -d %s ]; do sleep 0.1; done\n' \
            "$work" "$node" "$work" "$work" \
            >"$cluster/nodes/$node/prolog.new"
        chmod 755 "$cluster/nodes/$node/prolog.new"
        mv "$cluster/nodes/$node/prolog.new" "$cluster/nodes/$node/prolog"
    done
}

release() {
    touch "$work/release"
    rm -f "$cluster"/nodes/*/prolog
}

# As user_show, with a node that is held: it comes when the others have been there for two seconds.
late_show() { # COMMAND...
    local pid
    status=0
    rm -f "$work"/seen/*
    user "$@" 2>"$work/err" &
    pid=$!
    (eventually "a node in its Prolog" eval "ls $work/held.*") || { cat "$work/err"; release; exit 1; }
    sleep 2
    release
    wait "$pid" || status=$?
    collect
    cat "$work/err"
}

# A step in an allocation, while the slurmd of NODE sleeps for SECONDS: that node comes so late. As user_show.
late_slurmd() { # NODE SECONDS SALLOC-OPTION... -- SRUN-OPTION...
    local node=$1 seconds=$2 options=() slurmd pid
    shift 2
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    slurmd=$(<"$cluster/pid/slurmd@$node")
    rm -f "$work"/seen/* "$work/go" "$work/allocated"
    printf '#!/bin/bash\ntouch %q\nuntil [ -e %q ]; do sleep 0.1; done\nexec srun %s %q\n' "$work/allocated" "$work/go" \
        "$*" "$work/show" >"$work/in-job"
    status=0
    user salloc -Q "${options[@]}" bash "$work/in-job" 2>"$work/err" &
    pid=$!
    eventually "allocation" test -e "$work/allocated"
    kill -STOP "$slurmd"
    touch "$work/go"
    sleep "$seconds"
    kill -CONT "$slurmd"
    wait $pid || status=$?
    collect
    cat "$work/err"
}

# ---- which GPUs a job gets -----------------------------------------------------------------------

# Leaves these GPUs of the node free, and holds all others by jobs without a step.
leave_free() { # NODE GPUS
    local job gpu more=1 i
    user scancel --name=hold -w "$1"
    eventually "no GPU is held" no_holders "$1"
    while [ -n "$more" ]; do # several at once: an salloc that has its GPU looks for three seconds whether the node is ready
        local holders=()
        more=""
        for ((i = 0; i < 8; i++)); do
            user salloc --no-shell --immediate=2 -J hold -w "$1" -N1 -n1 --gpus=1 >/dev/null 2>&1 &
            holders+=($!)
        done
        for i in "${holders[@]}"; do
            wait "$i" && more=1 || true
        done
    done
    for job in $(user squeue -h -n hold -w "$1" -o %A); do
        gpu=$(admin scontrol -d show job "$job" | sed -nE 's/.*\(IDX:([0-9]+)\).*/\1/p')
        [[ ,$2, != *,$gpu,* ]] || user scancel "$job"
    done
    eventually "GPUs $2 are free" free_are "$1" "$2"
}
no_holders() { [ -z "$(user squeue -h -t all -n hold -w "$1" -o %T | grep -E 'RUNNING|COMPLETING')" ]; }
free_are() { # as many as are wanted: all jobs that are left hold others
    [ "$(user squeue -h -n hold -w "$1" -t COMPLETING -o %A)" = "" ] && [ -n "$2" ]
}

# ---- Slurm anew ------------------------------------------------------------------------------------

# slurmctld and all slurmd are started again, as slurm.conf and gres.conf are now; nobody else uses the cluster.
restart_slurm() {
    local name begun
    nodes_are_up
    for name in $(cd "$cluster/pid" && ls -d slurmd@*) slurmctld; do
        kill "$(<"$cluster/pid/$name")"
        eventually "end of $name" test ! -e "/proc/$(<"$cluster/pid/$name")"
    done
    begun=$(date +%s)
    start_slurm slurmctld slurmctld
    for name in $(cd "$cluster/nodes" && ls); do start_slurm "slurmd@$name" slurmd -N "$name"; done
    eventually "all nodes, with their new slurmd" all_new "$begun"
}

start_slurm() { # NAME COMMAND...
    local name=$1
    shift
    admin setsid "$@" -D -f "$cluster/slurm.conf" </dev/null >>"$cluster/log/$name.out" 2>&1 &
    eventually "pid of $name" sh -c "pgrep -ofx '$* -D -f $cluster/slurm.conf' >$cluster/pid/$name"
}

# A slurmctld that has just been started takes the nodes for idle, with the GPUs that they had, until their slurmd have spoken.
all_new() { # SECONDS since the epoch
    local node since
    for node in $(cd "$cluster/nodes" && ls); do
        since=$(admin timeout 30 scontrol show node "$node" | sed -nE 's/.*SlurmdStartTime=([0-9T:-]+).*/\1/p') &&
            [ -n "$since" ] && [ "$(date -d "$since" +%s)" -ge "$1" ] || return
    done
    [ "$(admin timeout 30 sinfo -hNo %t -p all | sort -u)" = idle ]
}

# ---- the cluster's health ------------------------------------------------------------------------

nodes_are_up() { # for a moment a busy one may not answer
    eventually "all nodes up" all_up
}

all_up() {
    local nodes
    nodes=$(admin sinfo -hNo '%N %T %E') && ! grep -E 'drain|down|fail|unk|\*' <<<"$nodes"
}

# Submits a batch job as the user and waits for its end. Its output is in $work/batch.
batch() { # SBATCH-OPTION... SCRIPT
    rm -f "$work"/seen/* "$work/batch"
    job=$(user sbatch --parsable --output="$work/batch" "$@")
    eventually "end of job $job" job_ended "$job"
    cat "$work/batch"
    collect
}

# That slurmctld had no time to answer is no answer.
job_ended() { # JOB
    local jobs
    jobs=$(admin squeue -h -j "$1" -t PENDING,RUNNING,COMPLETING -o %i) || {
        jobs=$(admin squeue -h -t PENDING,RUNNING,COMPLETING -o %F) && ! grep -qx "${1%%_*}" <<<"$jobs"
        return
    }
    [ -z "$jobs" ]
}

no_jobs() {
    local jobs
    jobs=$(admin squeue -h) && [ -z "$jobs" ]
}

undo() {
    local status=$? command
    trap - EXIT
    for command in ${at_end[@]+"${at_end[@]}"}; do
        eval "$command" || status=1
    done
    if [ -n "${work:-}" ] && [ -d "$work" ] && [ $status = 0 -o $status = 77 ]; then
        (nodes_are_up) || status=1
        eventually "no jobs left" no_jobs
        rm -rf "$work"
    fi
    exit "$status"
}

use_cluster() { # FOLDER
    cluster=$1
    work=$cluster/home/$test_name
    tccld_user=$(sed -n 's/^TccldUser=//p' "$cluster/tccl.conf") # that it is, minicluster has looked
    echo "tccld runs as $tccld_user"
    export TCCL_MINICLUSTER=$cluster
    rm -rf "$work"
    mkdir -p "$work"
    chmod 1777 "$work"
    write_show
}

# A cluster of this test's own, for what would disturb others. A second call replaces the first's.
# tccl.conf, as it is now, holds for all tccld of the cluster.
reload_all() {
    local node before=$(reloads)
    for node in "$cluster"/nodes/*; do kill -HUP "$(cat "$node/tccld.sock.lock")"; done
    all_reloaded() { [ "$(reloads)" -ge $((before + $(ls -d "$cluster"/nodes/* | wc -l))) ]; }
    eventually "all tccld have reloaded tccl.conf" all_reloaded
}

reloads() {
    cat "$cluster"/log/tccld@* | grep -c "configuration reloaded" || true
}

own_cluster() { # START-OPTION...
    local dir=/tmp/tccl-test-$test_name-$$
    mini stop --dir "$dir"
    trap "end_own_cluster $dir" EXIT
    mini start --patient --dir "$dir" --build "$build" "$@"
    use_cluster "$dir"
}

end_own_cluster() { # FOLDER [STATUS]
    local status=${2:-$?}
    trap - EXIT
    [ $status = 0 ] || tail -n 15 "$1"/log/tccld@* || true
    mini stop --dir "$1" || status=1
    exit "$status"
}

if [ -n "$cluster" ]; then
    use_cluster "$cluster"
    trap undo EXIT
fi
