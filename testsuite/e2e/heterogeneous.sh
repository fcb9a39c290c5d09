#!/bin/bash
# A step over the components of a heterogeneous job: one ring over all of them, or none and why;
# never one ring for each. tcclacct shows it under each component that it ran in, as sacct does.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on : \
    -N2 --gpus-per-node=2 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
equal "tasks" "$(tasks)" 3
equal "states" "$(values TCCL_STATE | wc -l)" 1
case $(values TCCL_STATE) in
planned) equal "rings" "$(values TCCL_RING | wc -l)" 1 ;;
failed)
    matches "reason" "$(values TCCL_REASON)" "*het*"
    none_has TCCL_RING
    ;;
*) fail "state $(values TCCL_STATE)" ;;
esac
recorded "$(job_of)" 0 state "$(values TCCL_STATE)"

ids() { # JOB: what tcclacct finds, in order
    user tcclacct -nP -o jobid -j "$1" | LC_ALL=C sort | xargs
}
finds() { [ "$(ids "$1")" = "$2" ]; } # JOB RECORDS
shows() { # JOB RECORDS
    (eventually "records of $1" finds "$1" "$2") || fail "-j $1 shows '$(ids "$1")', expected '$2'"
}
leader=$(job_of)
shows "$leader" "$leader+0.0 $leader+1.0"
shows "$leader+1" "$leader+1.0"
shows "$leader+1.0" "$leader+1.0"
shows "$leader+2" ""
equal "-X" "$(user tcclacct -nPX -o jobid,state -j "$leader" | LC_ALL=C sort | xargs)" "$leader+0|failed $leader+1|failed"

# ---- in a job of sbatch: over both components, then in each ----
cat >"$work/script" <<SCRIPT
#!/bin/bash
srun --het-group=0,1 --ntasks-per-node=1 true
srun --het-group=1 --ntasks-per-node=1 true
srun --het-group=0 --ntasks-per-node=1 true
echo "\$SLURM_JOB_ID_HET_GROUP_1" >"$work/seen/component"
SCRIPT
chmod 755 "$work/script"
leader=$(user sbatch --parsable --output="$work/batch" --tccl=on -N1 --gpus-per-node=4 : -N2 --gpus-per-node=2 "$work/script")
shows "$leader" "$leader+0.0 $leader+0.2 $leader+0.batch $leader+1.0 $leader+1.1"
shows "$leader+0" "$leader+0.0 $leader+0.2 $leader+0.batch"
shows "$leader+1" "$leader+1.0 $leader+1.1"
shows "$leader+1.1" "$leader+1.1"
shows "$leader.0" "$leader+0.0 $leader+1.0"
eventually "the id of the second component" test -s "$work/seen/component"
shows "$(cat "$work/seen/component")" "$leader+1.0 $leader+1.1"
