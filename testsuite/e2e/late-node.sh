#!/bin/bash
# A node that is late (its slurmd sleeps) and whose tccld is alive is waited for: all have the ring. In mode auto the
# wait is AutoTimeout=. A step that is cancelled while it waits ends at once.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

two="-w n1,n2 -N2 --gpus-per-node=4"
at_end+=(wait_long 'kill -CONT $(<"$cluster/pid/slurmd@n2") $(<"$cluster/nodes/n2/tccld.sock.lock")')

for mode in on auto require; do
    echo "--- $mode"
    late_slurmd n2 3 $two -- --ntasks-per-node=1 --tccl=$mode
    equal "exit status" "$status" 0
    applied 2
done

echo "--- auto, with less patience"
sed -i 's/^AutoTimeout=.*/AutoTimeout=2s/' "$cluster/tccl.conf"
late_slurmd n2 5 $two -- --ntasks-per-node=1 --tccl=auto
equal "exit status" "$status" 0
fallback 2 'n2: the step has not started there within * ms*'
recorded "$(job_of)" 0 reason 'n2: the step has not started there within * ms*'

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
waits() { [ -n "$(pgrep -f "slurmstepd: \[$job\.0\]")" ]; }
eventually "its step on n1" waits
user scancel "$job"
ended() { ! waits; }
eventually "the step's end on n1, before the timeout" ended
kill -CONT "$(<"$cluster/pid/slurmd@n2")"
eventually "end of job $job" job_ended "$job"
equal "tasks with a ring" "$(grep -lsr TCCL_RING "$work/seen" | wc -l)" 0
