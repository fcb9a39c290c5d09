#!/bin/bash
# AccountingHost goes away during a thousand launches, in every way a daemon can: it is killed, stopped,
# frozen. What was launched is then on record, each step once.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 4
: >"$work/launched"

# Most steps are JOINs without Slurm: a thousand times srun takes minutes.
launch() { # FIRST COUNT
    python3 "$here/launches.py" "$cluster" launch "$1" "$2" n2 n3 n4 >>"$work/launched.$1" ||
        fail "launches from $1"
}

# Some are real: steps of one job, on one, two or three nodes, one after the other.
cat >"$work/say" <<'SAY'
#!/bin/sh
[ "$SLURM_PROCID" != 0 ] || echo "$SLURM_JOB_ID.$SLURM_STEP_ID $TCCL_STATE"
SAY
cat >"$work/steps" <<'STEPS'
#!/bin/sh
for round in 1 2 3 4 5 6 7 8 9 10; do
    for nodes in 1 2 3; do
        srun -N$nodes -n$nodes -w "n[2-$((nodes + 1))]" --gpus-per-node=4 --ntasks-per-node=1 --tccl=on "$(dirname "$0")/say"
    done
done
STEPS
chmod 755 "$work/say" "$work/steps"
real() {
    user salloc -w n2,n3,n4 -N3 --gpus-per-node=4 --ntasks-per-node=1 "$work/steps" >"$work/launched.real" 2>"$work/err" ||
        { cat "$work/err"; fail "the real steps"; }
    [ "$(wc -l <"$work/launched.real")" = 30 ] || { cat "$work/err"; fail "some of the real steps"; }
}

host() { # SIGNAL
    kill "-$1" "$(cat "$cluster/pid/tccld@n1")"
}

launch 4000000 150 &
first=$!
sleep 1
host KILL # while records arrive
wait "$first"
launch 4001000 235 &
real
wait $!
mini stop-tccld n2 # with records in its outbox
mini start-tccld n2
launch 4002000 200

mini start-tccld n1 &
launch 4003000 100 # the outboxes are found to be deliverable now
wait $!
host STOP
launch 4004000 100 # their records meet a host that takes connections, and no more
mini stop-tccld n3 # some of them are under way
mini start-tccld n3
host CONT
launch 4005000 100
mini stop-tccld n1
launch 4006000 100
begun=$SECONDS
mini start-tccld n1
launch 4007000 9 # from each node: it can be reached again

spooled() { outboxes; }
end=$((SECONDS + 300))
until [ "$(spooled)" = 0 ]; do
    [ $SECONDS -lt $end ] || fail "$(spooled) records are still in an outbox after 300 s"
    sleep 0.2
done
echo "the outboxes were empty after $((SECONDS - begun)) s"
equal "records put aside" "$(outboxes "count(*) FROM aside")" 0

cat "$work"/launched.* | sort >"$work/launched"
all_there() { # the last ones may be under way, past the outbox
    python3 "$here/launches.py" "$cluster" records n1 | sort >"$work/recorded"
    [ "$(wc -l <"$work/recorded")" -ge 1024 ]
}
(eventually "1024 records" all_there) || true
equal "launches" "$(wc -l <"$work/launched")" 1024
diff "$work/launched" "$work/recorded" >"$work/diff" ||
    { head -n 20 "$work/diff"; fail "what is on record is not what was launched"; }
sqlite3 -version >/dev/null 2>&1 || exit 0
equal "the store" "$(sqlite3 "$cluster/nodes/n1/state/records.db" 'PRAGMA integrity_check')" ok
