#!/bin/bash
# The node's shared memory: full, hostile, left over from a job that was killed. No init fails or
# waits for it.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

small=(dual-8gpu --gpus 0,1)
plan="dual-8gpu:0,1=0 -m0> 1 -m1> 0"
registry() { local folder=${plans[0]%/plan}; echo "/dev/shm/tccl-$UID-${folder##*-}.0"; }

hostile() { # WHAT COMMAND: makes $file what it must not be
    make_plans "$plan"
    step "$1"
    file=$(registry)
    eval "$2"
    as_alone "${small[@]}"
    said WARN
    rm -rf "$file"
}

hostile "a link in its place" 'ln -s "$work/target" "$file"'
[ ! -e "$work/target" ] || fail "a link was followed"
hostile "a folder in its place" 'mkdir "$file"'
hostile "a pipe in its place" 'mkfifo -m 600 "$file"'
hostile "another user's file" ': >"$file"; chmod 666 "$file"; chown 65534 "$file"'
hostile "a file that all may write" ': >"$file"; chmod 666 "$file"'
hostile "a file with two names" ': >"$file"; chmod 600 "$file"; ln "$file" "$file.2"; '
rm -f /dev/shm/tccl-*.2
hostile "a file of another layout" 'head -c 100000000 /dev/urandom >"$file"; chmod 600 "$file"'

step "an empty file"
make_plans "$plan"
install -m 600 /dev/null "$(registry)"
run_planned "${small[@]}"
as_planned

step "a rank is killed in the middle; the next job of the step finds its traces"
make_plans "$plan"
for delay in 0.1 0.3 0.6; do
    "$here/run-ring" "$machines/dual-8gpu.json" --gpus 0,1 --plan "${plans[0]}" --kill "1:$delay" >"$work/out" 2>&1 || true
done
run_planned "${small[@]}"
as_planned

step "the same step's communicators, one after the other" # of which none needs a graph file
make_plans "amd-4gpu:0,1=0 -m1> 1 -m0> 0"
run_planned amd-4gpu --gpus 0,1 -- --comms 8
for i in 0 7; do as_planned "comm $i"; done
said "a graph file is needed" 0

step "a full /dev/shm"
make_plans "$plan"
mkdir "$work/shm"
# NCCL itself needs some of it: 64 MiB would be enough, and the rest is taken when the shim comes.
cat >"$work/full" <<FULL
set -e
mount -t tmpfs -o size=16k tmpfs /dev/shm
head -c 16k /dev/zero >/dev/shm/full || true
export PATH=$PATH
"$here/run-ring" "$machines/dual-8gpu.json" --gpus 0,1 "\$@" 
FULL
unshare --mount --propagation private bash "$work/full" --plan "${plans[0]}" >"$work/rings" 2>"$work/err" && planned=0 || planned=$?
unshare --mount --propagation private bash "$work/full" >"$work/alone" 2>"$work/err2" && alone=0 || alone=$?
[ "$planned" = "$alone" ] || fail "with a full /dev/shm: $planned, NCCL alone $alone: $(tail -n 5 "$work/err")"
if [ "$alone" = 0 ]; then
    "$here/same-rings" "$work/alone" "$work/rings" || fail "not as NCCL alone"
    said WARN
fi
