#!/bin/bash
# A node that is late (its slurmd sleeps) and whose tccld is alive is waited for: all have the ring. In mode auto the
# wait is AutoTimeout=. A step that is cancelled while it waits ends at once. A node whose plugin will never speak, where the
# step has started all the same, is not waited for.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

two="-w n1,n2 -N2 --gpus-per-node=4"
at_end+=(wait_long 'kill -CONT $(<"$cluster/pid/slurmd@n2") $(<"$cluster/nodes/n2/tccld.sock.lock")')

for mode in on auto require; do
    echo "--- $mode"
    late_slurmd n2 3 $two -- --ntasks-per-node=1 --tccl=$mode
    equal "exit status" "$status" 0
    has_ring 2
done

echo "--- auto, with less patience"
sed -i 's/^AutoTimeout=.*/AutoTimeout=2s/' "$cluster/tccl.conf"
late_slurmd n2 5 $two -- --ntasks-per-node=1 --tccl=auto
equal "exit status" "$status" 0
no_ring 2 'n2: the step has not started there within * ms*'
recorded "$(job_of)" 0 reason 'n2: the step has not started there within * ms*'

echo "--- its plugin does not speak"
restart_slurmd() { # [COMMAND]...: n2's slurmd, run by the command
    kill "$(<"$cluster/pid/slurmd@n2")"
    eventually "end of slurmd" sh -c "! [ -e /proc/$(<"$cluster/pid/slurmd@n2") ]"
    admin setsid "$@" slurmd -D -N n2 -f "$cluster/slurm.conf" </dev/null >>"$cluster/log/slurmd@n2.out" 2>&1 &
    eventually "slurmd" sh -c "pgrep -ofx 'slurmd -D -N n2 -f $cluster/slurm.conf' >$cluster/pid/slurmd@n2"
    nodes_are_up
}
printf '#!/bin/sh\nmount --make-rprivate / && mount --bind "$1" "$2" && shift 2 && exec "$@"\n' >"$work/instead"
chmod 755 "$work/instead"
at_end+=(restart_slurmd reload_all)
printf '#!/bin/sh\n"%s/show"\nuntil ls %s/seen/*.0 >/dev/null 2>&1; do sleep 0.1; done\n' "$work" "$work" >"$work/stay" # until n1's has begun
chmod 755 "$work/stay"
: >"$work/nothing"
echo nonsense >"$work/bad.conf"
for file in nothing:plugstack.conf bad.conf:tccl.conf; do
    restart_slurmd unshare -m "$work/instead" "$work/${file%:*}" "$cluster/${file#*:}"
    user_show srun $two --ntasks-per-node=1 --tccl=on "$work/stay"
    equal "exit status" "$status" 0
    equal "tasks" "$(tasks)" 2
    none_has TCCL_RING
    silent='n2: the step has started there, but its plugin has not spoken for 3 s: run tccl-check there'
    grep -qF "tccl: no ring: $silent" "$work/err" || fail "the user is not told that n2's plugin does not speak"
    recorded "$(job_of)" 0 reason "$silent"
done
wait_long
reload_all
restart_slurmd

echo "--- cancelled while it waits"
sed -i 's/^Timeout=.*/Timeout=300s/' "$cluster/tccl.conf"
cat >"$work/wait" <<WAIT
#!/bin/bash
touch $work/allocated
until [ -e $work/go ]; do sleep 0.1; done
srun --ntasks-per-node=1 --tccl=on $work/show
WAIT
rm -f "$work/allocated" "$work/go"
job=$(user sbatch --parsable --output="$work/batch" $two "$work/wait")
eventually "the job" test -e "$work/allocated"
kill -STOP "$(<"$cluster/pid/slurmd@n2")"
touch "$work/go"
eventually "its step on n1" has_stepd "$job.0"
user scancel "$job"
ended() { ! has_stepd "$job.0"; }
eventually "the step's end on n1, before the timeout" ended
kill -CONT "$(<"$cluster/pid/slurmd@n2")"
eventually "end of job $job" job_ended "$job"
equal "tasks with a ring" "$(grep -lsr TCCL_RING "$work/seen" | wc -l)" 0
