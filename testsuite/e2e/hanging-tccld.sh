#!/bin/bash
# A tccld that hangs (SIGSTOP): a step finds out, runs without a ring on all nodes, and says why; with require it
# fails. The next steps on that node don't wait for it, and say that, until it answers at once again; what others have put
# in the place of the note, or what is old, says nothing.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

signal() { # SIGNAL NODE
    kill -"$1" "$(cat "$cluster/nodes/$2/tccld.sock.lock")"
}
stamp=$cluster/nodes/n2/run/hung
plans() { # a record may be there alone
    find "$cluster/nodes/n2/run" -name plan -exec grep -l '^tccl-plan ' {} +
}
no_plans() { # a LEAVE that took too long on a busy machine is made up for at a reload
    signal HUP n2
    [ -z "$(plans)" ]
}
restart() {
    mini stop-tccld n2
    mini start-tccld n2
}

at_end+=("signal CONT n2" wait_long restart)
signal STOP n2
wait_little
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
no_ring 1 'n2: tccld hangs: no answer within * ms*'
says "tccl: no ring: n2: tccld hangs: no answer within * ms; steps here don't wait for it for 60 s*"
alone=$(job_of)

echo "--- the next steps"
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
equal "tasks" "$(tasks)" 2
all_have TCCL_STATE failed
none_has TCCL_PLAN
says 'tccl: no ring: n2: no * within * ms*'
matches "n2's reason" "$(sed -nE 's/^.* n2 .* TCCL_REASON=//p' "$work/out")" 'n2: its tccld hung less than a minute ago: not asked until a minute is over'
both=$(job_of)
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=require
[ "$status" != 0 ] || fail "srun ended with 0"
equal "tasks" "$(tasks)" 0
says 'tccl: no ring: n2: its tccld hung*'
nodes_are_up

echo "--- it goes on: what was sent to it is heard, and steps have rings again"
signal CONT n2
wait_long
goes_on() {
    srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    [ ! -e "$stamp" ] || { says 'tccl: no ring: n2: its tccld hung*'; return 1; }
}
eventually "the note gone" goes_on
has_ring 2
recorded "$alone" 0 state failed
[ "$(record "$alone" 0 solve_us)" -ge 1900000 ] || fail "it waited 2 s, by its record $(record "$alone" 0 solve_us) us"
recorded "$both" 0 state failed
eventually "plan files gone" no_plans

echo "--- it is started again; notes that are old, or another user's, or no file"
restart
[ ! -e "$stamp" ] || fail "$stamp is still there"
for note in "echo 1" "echo 999999999999999" "date" forged folder; do
    rm -rf "$stamp"
    now=$(awk '{ print int($1 * 1000) }' /proc/uptime)
    case $note in
    forged) echo "$now" >"$stamp" && chown nobody "$stamp" ;;
    folder) mkdir "$stamp" ;;
    *) $note >"$stamp" ;;
    esac
    srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    has_ring 2
done
rm -rf "$stamp"
signal STOP n2
awk '{ print int($1 * 1000) }' /proc/uptime >"$stamp"
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
no_ring 1 'n2: its tccld hung*'
