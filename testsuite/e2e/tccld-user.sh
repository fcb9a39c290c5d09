#!/bin/bash
# tccld as TccldUser: steps have their rings where the user has another uid on each node, and beside a node where
# tccld is root's; the file in /dev/shm is the job's user's; kill -9 of tccld or of its monitor ends both, and costs
# a step nothing but its ring.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2 --tccld-user bin

tccld_of() { # NODE: its process
    pgrep -f "^$cluster/bin/tccld .*--node $1\$" | while read -r pid; do
        [ "$(<"/proc/$pid/comm")" != tccld ] || echo "$pid"
    done
}
monitor_of() { # NODE
    pgrep -P "$(tccld_of "$1")"
}
uid_of() { # PID: of the process, whatever /proc's files belong to
    awk '/^Uid:/ { print $2, $3, $4, $5 }' "/proc/$1/status"
}
as_user() { # NODE USER: starts its tccld anew, which becomes that user
    mini stop-tccld "$1"
    chown -R "$2:" "$cluster/nodes/$1"/{run,cache,state,machine.json,tccld.sock.lock}
    chown "$2:" "$cluster/nodes/$1"
    sed -i "s/^TccldUser=.*/TccldUser=$2/" "$cluster/tccl.conf"
    mini start-tccld "$1"
    equal "the user of $1's tccld" "$(uid_of "$(tccld_of "$1")" | xargs -n 1 | sort -u)" "$(id -u "$2")"
}
gone() { # NODE
    [ -z "$(tccld_of "$1")" ]
}
both() { # expects a ring over both nodes, and its record
    srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    applied 2
    recorded "$(job_of)" 0 state applied
}

echo "--- the same user on both"
equal "the user of tccld" "$(uid_of "$(tccld_of n1)")" "2 2 2 2"
equal "its capabilities" "$(awk '/^CapPrm:/ { print $2 }' "/proc/$(tccld_of n1)/status")" 0000000000000000
equal "the user of its monitor" "$(uid_of "$(monitor_of n1)")" "0 0 0 0"
both
as_solved 0 n1:0-3 n2:0-3

echo "--- the job's file"
shared=$work/shared
user srun -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on bash -c \
    'folder=${TCCL_PLAN%/plan}; stat -c "%U %a" /dev/shm/tccl-$(id -u)-${folder##*-}.*; cat "$TCCL_PLAN" | wc -l' >"$shared" 2>"$work/err"
cat "$shared"
equal "the files in /dev/shm" "$(grep -c '^nobody 600$' "$shared")" 4 # each of two nodes, on one machine here, sees both

echo "--- another uid on n2"
as_user n2 daemon
both
matches "tccl-check" "$(admin tccl-check --node n2 --only daemon || true)" "*ok*daemon*as n2, and also over TCP*"

echo "--- a user who is not told of others' jobs"
cp -p "$cluster/slurm.conf" "$work/slurm.conf"
echo "PrivateData=accounts,jobs" >>"$cluster/slurm.conf"
matches "tccl-check" "$(admin tccl-check --node n2 --only daemon || true)" "*warn*daemon*PrivateData=jobs, so daemon is not told*"
cp -p "$work/slurm.conf" "$cluster/slurm.conf"
matches "tccl-check" "$(admin tccl-check --node n2 --only daemon || true)" "*ok*daemon*"

echo "--- root on n2, as before an upgrade of that node"
as_user n2 root
equal "its monitors" "$(pgrep -P "$(tccld_of n2)" | wc -l)" 0
both

echo "--- killed"
as_user n2 bin
monitor=$(monitor_of n2)
kill -9 "$(tccld_of n2)"
eventually "the end of the monitor" test ! -e "/proc/$monitor"
mini start-tccld n2
both
kill -9 "$(monitor_of n2)"
eventually "the end of tccld" gone n2
srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
fallback 2 "*n2*"
