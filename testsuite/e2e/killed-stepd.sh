#!/bin/bash
# slurmstepd is killed: no LEAVE comes. The step's plan and its file in /dev/shm go at the next sweep, which a reload
# brings forward, and when tccld starts; those of a step that lives stay. Nobody has said what was built of its ring.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

at_end+=("user scancel -u nobody" "mini start-tccld n1 || true")
# Step 1 begins when step 0 has lost its slurmstepd: beside one that lives, NCCL's own ring may be as good as any.
cat >"$work/job" <<JOB
#!/bin/bash
for each in 0 1; do
    until [ -e $work/begin.\$each ]; do sleep 0.1; done
    srun -c 1 --exact --ntasks-per-node=1 --gpus-per-node=2 sh -c "echo \\\$PPID >$work/stepd.\\\$SLURM_STEP_ID.\\\$SLURMD_NODENAME; $work/show; touch $work/shown.\\\$SLURM_STEP_ID.\\\$SLURMD_NODENAME; until [ -e $work/end.\\\$SLURM_STEP_ID ]; do sleep 0.1; done" &
done
wait
JOB

begin() {
    rm -f "$work"/seen/* "$work"/{begin,shown,end,stepd}.*
    job=$(user sbatch --parsable --output="$work/batch" -w n1,n2 -N2 -c 8 --gpus-per-node=4 --tccl=on "$work/job")
    begin_step 0
    [ -e "$(shared_of 0)" ] || fail "no $(shared_of 0)"
    reload_all
    [ -e "$(plan_of 0)" ] && [ -e "$(shared_of 0)" ] || fail "the plan of a living step has gone"
    kill_stepd 0
    begin_step 1
    [ -e "$(shared_of 1)" ] || fail "no $(shared_of 1)"
    [ -e "$(plan_of 0)" ] || fail "the plan has gone before it was looked for: this test sees nothing"
}

begin_step() { # STEP
    touch "$work/begin.$1"
    eventually "step $1" test -e "$work/shown.$1.n1" -a -e "$work/shown.$1.n2"
    collect
    has_ring 2 "$1"
}

plan_of() { # STEP: its plan on n1
    sed -nE "s/^[0-9]+\.$1 n1 [0-9]+ TCCL_PLAN=//p" "$work/out"
}

shared_of() { # STEP: the file of n1 in /dev/shm
    local hash=$(plan_of "$1")
    hash=${hash%/plan}
    echo "/dev/shm/tccl-$(id -u nobody)-${hash##*-}.0"
}

kill_stepd() { # STEP: its parents on both nodes
    local pids=($(cat "$work/stepd.$1".*))
    kill -9 "${pids[@]}"
    ended() { ! kill -0 "$@" 2>/dev/null; }
    eventually "slurmstepd's end" ended "${pids[@]}"
}

only_living() { # of step 1
    [ ! -e "$(plan_of 0)" ] && [ ! -e "$(shared_of 0)" ] && [ -e "$(plan_of 1)" ] && [ -e "$(shared_of 1)" ]
}

end() {
    touch "$work/end.0" "$work/end.1"
    plans_gone() { [ ! -e "$(plan_of 1)" ]; }
    eventually "LEAVE of step 1" plans_gone
    recorded "$job" 0 built_reason "n1 has not said what was built (2 of 2 nodes)"
    recorded "$job" 0 built unknown
    recorded "$job" 1 built "no call"
    user scancel "$job" || true
    eventually "end of job $job" job_ended "$job"
    admin scontrol update nodename=n[1-2] state=resume 2>/dev/null || true
    nodes_are_up
}

begin
reload_all
eventually "plan of step 0 removed" only_living
end

begin
mini stop-tccld n1
[ -e "$(plan_of 0)" ] || fail "no plan"
mini start-tccld n1
eventually "plan of step 0 removed" only_living
end
