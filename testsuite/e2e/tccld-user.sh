#!/bin/bash
# tccld as TccldUser: steps have their rings where the user has another uid on each node, beside a node where tccld is
# root's, and where all are root's (TccldUser=root, which no other test has); the file in /dev/shm is the job's user's;
# kill -9 of tccld or of its monitor ends both, and costs a step nothing but its ring.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

unset TCCL_TCCLD_USER
own_cluster --nodes 2
equal "minicluster's default" "$tccld_user" bin

tccld_of() { # NODE: its process, which is older than its monitor
    pgrep -of "^$cluster/bin/tccld .*--node $1\$" || true
}
monitors_of() { # NODE: by their name, since a tccld that has just been started also runs slurmd -G
    pgrep -P "$(tccld_of "$1")" -x tccld-monitor || true
}
has_monitor() { # NODE
    [ -n "$(monitors_of "$1")" ]
}
monitor_of() { # NODE
    eventually "the monitor of $1" has_monitor "$1"
    monitors_of "$1"
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
    has_ring 2
    recorded "$(job_of)" 0 state planned
}
cat >"$work/look" <<LOOK
#!/bin/bash
all() { # WHAT: until both tasks have come so far, since a node whose step has ended has removed its file
    touch $work/\$1.\$SLURM_PROCID
    until [ -e $work/\$1.0 -a -e $work/\$1.1 ]; do sleep 0.1; done
}
folder=\${TCCL_PLAN%/plan}
all begun
until [ "\$(ls /dev/shm/tccl-\$(id -u)-\${folder##*-}.* | wc -l)" -ge 2 ]; do sleep 0.1; done # the monitor makes them
stat -c "%U %a %n" /dev/shm/tccl-\$(id -u)-\${folder##*-}.*
wc -l <"\$TCCL_PLAN"
all looked
LOOK
chmod 755 "$work/look"
job_files() { # expects those of a step in /dev/shm while it runs, and none after it
    rm -f "$work"/{begun,looked}.*
    user timeout 300 srun -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on "$work/look" >"$work/shared" 2>"$work/err" ||
        fail "$(cat "$work/shared" "$work/err")"
    cat "$work/shared"
    equal "the files in /dev/shm" "$(grep '^nobody 600 /' "$work/shared" | sort -u | wc -l)" 2 # of both nodes, which are one machine here
    removed() { ! ls $(sed -n 's/^nobody 600 //p' "$work/shared") 2>/dev/null | grep . >/dev/null; }
    eventually "both are removed" removed
}

echo "--- the same user on both, as by default"
equal "the user of tccld" "$(uid_of "$(tccld_of n1)" | xargs -n 1 | sort -u)" "$(id -u bin)"
equal "its capabilities" "$(awk '/^CapPrm:/ { print $2 }' "/proc/$(tccld_of n1)/status")" 0000000000000000
equal "the user of its monitor" "$(uid_of "$(monitor_of n1)")" "0 0 0 0"
both
as_solved 0 n1:0-3 n2:0-3

echo "--- the job's file"
job_files

echo "--- another uid on n2"
as_user n2 daemon
both
matches "tccl-check" "$(admin tccl-check --node n2 --timeout 60 --only daemon || true)" "*ok*daemon*as n2, and also over TCP*"

echo "--- a user who is not told of others' jobs"
cp -p "$cluster/slurm.conf" "$work/slurm.conf"
echo "PrivateData=accounts,jobs" >>"$cluster/slurm.conf"
matches "tccl-check" "$(admin tccl-check --node n2 --timeout 60 --only daemon || true)" "*warn*daemon*PrivateData=jobs, so daemon is not told*"
cp -p "$work/slurm.conf" "$cluster/slurm.conf"
matches "tccl-check" "$(admin tccl-check --node n2 --timeout 60 --only daemon || true)" "*ok*daemon*"

echo "--- root on n2, as before an upgrade of that node"
as_user n2 root
equal "its monitors" "$(monitors_of n2)" ""
both

echo "--- root on both"
as_user n1 root
both
as_solved 0 n1:0-3 n2:0-3
job_files
as_user n1 bin

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
no_ring 2 "*n2*"
