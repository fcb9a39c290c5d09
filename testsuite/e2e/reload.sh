#!/bin/bash
# tccl.conf is written again and again while steps start, whole (renamed into place) and in place, where it
# is for a moment half a file; each time tccld is told to read it. No step is lost, and those that met
# half a file say so. Then [peers] excludes a node: its steps have no ring, and say so, others have.
# And nodes are found by the address that slurmctld knows.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
conf=$cluster/tccl.conf
printf '[policy]\nMinGpus=2\n[policy all]\nUsers=nobody\nDefault=on\n' >>"$conf"
cp "$conf" "$work/good"
half=$(grep -n '^Timeout=' "$work/good" | cut -d : -f 1)
size=$({ head -n $((half - 1)) "$work/good"; printf Timeo; } | wc -c)

tccld_pids() {
    cat "$cluster"/nodes/n[12]/tccld.sock.lock
}

rewrite() { # until $work/stop is there
    until [ -e "$work/stop" ]; do
        cp "$work/good" "$conf.new"
        echo "# $RANDOM" >>"$conf.new"
        mv "$conf.new" "$conf"
        kill -HUP $(tccld_pids)
        sleep 0.3
        truncate -s "$size" "$conf" # at no moment less than that
        kill -HUP $(tccld_pids)
        sleep 0.2
        tail -c +$((size + 1)) "$work/good" >>"$conf"
        kill -HUP $(tccld_pids)
        sleep 0.3
    done
}

before=$(tccld_pids)
rewrite &
writer=$!
trap 'status=$?; touch "$work/stop"; wait $writer || true; end_own_cluster "$cluster" $status' EXIT
whole=0 broken=0
for ((i = 0; i < 40 || (i < 200 && (whole == 0 || broken == 0)); i++)); do
    srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    equal "exit status of step $i" "$status" 0
    equal "tasks of step $i" "$(tasks)" 2
    if [ "$(carriers TCCL_PLAN)" = 2 ]; then
        whole=$((whole + 1))
        continue
    fi
    equal "tasks of step $i that know how it stands" "$(carriers TCCL_STATE)" 2
    broken=$((broken + 1))
    matches "reason of step $i" "$(values TCCL_REASON)" "*@(tccl.conf:|no tccld at )*"
done
touch "$work/stop"
wait $writer
echo "$whole steps with a ring, $broken without"
[ $whole -gt 0 ] || fail "no step had a ring"
[ $broken -gt 0 ] || fail "no step met half a file"
cp "$work/good" "$conf"
kill -HUP $(tccld_pids)
equal "daemons" "$(tccld_pids)" "$before"
srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1
has_ring 2
recorded "$(job_of)" 0 policy all

# n2's tccld has not read it yet, and is told.
sed -i 's/^\[peers\]/&\nn2=down/' "$conf"
line=$(grep -n '^n2=down' "$conf" | cut -d : -f 1)
kill -HUP "$(cat "$cluster/nodes/n1/tccld.sock.lock")"
excluded() {
    srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1
    equal "exit status" "$status" 0
    [[ $(values TCCL_REASON) == n2:\ excluded* ]]
}
eventually "steps without n2" excluded
no_ring 2 "n2: excluded from rings: it is down by \[peers\] in $conf:$line"
recorded "$(job_of)" 0 reason "n2: excluded from rings: *"
srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1
has_ring 1
kill -HUP $(tccld_pids)
alone() {
    srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1
    [[ $(values TCCL_REASON) == n2:\ excluded* ]]
}
eventually "steps of n2 alone" alone

# Names that DNS doesn't know: slurmctld says where they are.
for node in n1 n2; do ! getent hosts $node || { echo "$node is in DNS here" && exit 77; }; done
sed 's/^n\[1-2\]=127.0.0.1:/n[1-2]=n[1-2]:/' "$work/good" >"$conf"
grep -q '^n\[1-2\]=n\[1-2\]:' "$conf"
kill -HUP $(tccld_pids)
found() {
    srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1
    [ "$(carriers TCCL_PLAN)" = 2 ]
}
eventually "a ring of nodes at Slurm's addresses" found
