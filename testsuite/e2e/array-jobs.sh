#!/bin/bash
# The tasks of a job array, asked for and shown as sacct's users know it; what a task's job inherits from another
# array; who claims to be a task of somebody else's array.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

# Each task says who it is, has a step, and lets another job be submitted, which inherits its variables.
cat >"$work/script" <<SCRIPT
#!/bin/bash
echo "\$SLURM_JOB_ID \${SLURM_ARRAY_JOB_ID}_\$SLURM_ARRAY_TASK_ID" >"$work/seen/\$SLURM_JOB_ID.array"
srun -n1 true
[ "\$SLURM_ARRAY_TASK_ID" != 5 ] || sbatch --parsable -N1 -x n1,n2 --gpus=3 --output="$work/inner" \
    --wrap 'env | grep ^SLURM_ARRAY_JOB_ID=; srun -n1 true' >"$work/seen/inner"
SCRIPT
chmod 755 "$work/script"
array=$(user sbatch --parsable --array=1-3,5 -N1 -x n1,n2 --gpus=3 --tccl=on --output=/dev/null "$work/script")
ids() { # OPTION...: what tcclacct finds, in order
    user tcclacct -nP -o jobid "$@" | LC_ALL=C sort | xargs
}
everywhere() { # SUFFIX TASK...
    local suffix=$1 task
    shift
    for task; do echo "${array}_$task$suffix ${array}_$task.batch"; done | xargs
}
all_there() { [ "$(ids -j "$array")" = "$(everywhere .0 1 2 3 5)" ]; }
(eventually "records of all tasks" all_there) || fail "the array is '$(ids -j "$array")'"

# ---- the task of each record is what Slurm told its job ----
said=$(LC_ALL=C sort "$work"/seen/*.array | xargs)
equal "jobs and tasks" "$(user tcclacct -nP -j "$array" -o jobidraw,jobid | sed -n 's/\.0|/ /;s/\.0$//p' | LC_ALL=C sort | xargs)" "$said"
raw=$(awk -v task="${array}_2" '$2 == task {print $1}' "$work"/seen/*.array)
equal "by its own id" "$(ids -j "$raw")" "$(everywhere .0 2)"
equal "one task" "$(ids -j "${array}_2")" "$(everywhere .0 2)"
equal "a step of a task" "$(ids -j "${array}_2.0")" "${array}_2.0"
equal "the script of a task" "$(ids -j "${array}_2.batch")" "${array}_2.batch"
equal "some tasks" "$(ids -j "${array}_[1-3]")" "$(everywhere .0 1 2 3)"
equal "a list" "$(ids -j "${array}_[1,5].0,${array}_3.batch")" "${array}_1.0 ${array}_3.batch ${array}_5.0"
equal "step 0 of all" "$(ids -j "$array.0")" "$(for task in 1 2 3 5; do echo "${array}_$task.0"; done | xargs)"
equal "a task that is not" "$(ids -j "${array}_4")" ""
equal "-X" "$(user tcclacct -nPX -o jobid,steps -j "${array}_[1-2]" | LC_ALL=C sort | xargs)" "${array}_1|2 ${array}_2|2"
recorded "$raw" 0 array_job_id "$array"
recorded "$raw" 0 array_task_id 2

# ---- the other commands ----
user tcclacct ring "${array}_2" >"$work/ring"
grep -qF "Step ${array}_2." "$work/ring" || fail "tcclacct ring ${array}_2 shows '$(cat "$work/ring")'"
equal "steps in the summary" "$(user tcclacct summary --json -j "${array}_[1-3]" | python3 -c 'import json,sys; print(json.load(sys.stdin)["steps"])')" 6
if user tcclacct -j "${array}_x" >"$work/out" 2>&1; then
    fail "${array}_x is taken for a task"
fi
matches "the line" "$(cat "$work/out")" "tccl: '${array}_x' is not a job*"

# ---- a job that was submitted by a task is none, whatever it inherited ----
inner_known() { [ -s "$work/seen/inner" ] && has_record "$(cat "$work/seen/inner")" 0; }
eventually "a record of the job that a task submitted" inner_known
inner=$(cat "$work/seen/inner")
eventually "a record of its script" has_record "$inner" batch
equal "what it inherited" "$(grep ^SLURM_ARRAY "$work/inner")" "SLURM_ARRAY_JOB_ID=$array"
equal "the job that a task submitted" "$(ids -j "$inner")" "$inner.0 $inner.batch"
all_there || fail "the array is '$(ids -j "$array")' after that"

# ---- who says that he is a task of another's array is found under his own job, by his own name ----
# slurmctld knows better; where it isn't asked, the claim is on record as one.
admin env SLURM_ARRAY_JOB_ID="$array" SLURM_ARRAY_TASK_ID=2 srun -N1 -x n1,n2 --gpus=3 -J known --tccl=on true
known() { [ -n "$(admin tcclacct -nP --name=known -o jobidraw)" ]; }
eventually "the record of one who claims the array" known
equal "the job" "$(admin tcclacct -nP --name=known -o jobid)" "$(admin tcclacct -nP --name=known -o jobidraw)"
equal "what is claimed" "$(admin tcclacct -nP --name=known -o claimed)" ""
cp "$cluster/tccl.conf" "$work/tccl.conf"
at_end+=('cp "$work/tccl.conf" "$cluster/tccl.conf"; reload_all')
sed -i 's/^\[tccl\]/&\nSqueue=none/' "$cluster/tccl.conf"
reload_all
admin env SLURM_ARRAY_JOB_ID="$array" SLURM_ARRAY_TASK_ID=2 srun -N1 -x n1,n2 --gpus=3 -J claim --tccl=on true
claimed() { [ -n "$(admin tcclacct -nP --name=claim -o jobidraw)" ]; }
eventually "the record of one who claims the array" claimed
claim=$(admin tcclacct -nP --name=claim -o jobidraw)
all_there || fail "its user sees another's record in his array: '$(ids -j "$array")'"
matches "what is claimed" "$(admin tcclacct -nP -j "$claim" -o claimed)" "*array"
equal "its user" "$(admin tcclacct -nP -j "$claim" -o user)" root
equal "the array, for an admin" "$(admin tcclacct -nP -j "$array" -o jobid | LC_ALL=C sort | xargs)" "$(everywhere .0 1 2 3 5)"
admin tcclacct -anP -S now-1hour >/dev/null 2>"$work/err"
matches "what an admin is told" "$(cat "$work/err")" "tccl: tasks of array $array have different users*"
for task in x -1 99999999999 4000001; do # no numbers of tasks
    admin env SLURM_ARRAY_JOB_ID="$array" SLURM_ARRAY_TASK_ID=$task srun -N1 -x n1,n2 --gpus=3 -J "odd$task" --tccl=on true
    odd() { [ -n "$(admin tcclacct -nP --name="odd$task" -o jobid)" ]; }
    eventually "the record of task $task" odd
    matches "task $task" "$(admin tcclacct -nP --name="odd$task" -o jobid)" "+([0-9]).0"
done
