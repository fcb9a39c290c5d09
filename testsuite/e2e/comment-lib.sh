# comment-lib.sh: what the tests of contrib/admin-comment share: a cluster with slurmdbd, where slurmctld soon forgets
# jobs. Sourced after lib.sh.
PATH=$PATH:/usr/sbin:/sbin
for program in python3 slurmdbd mariadbd mariadb-install-db sacctmgr; do
    command -v $program >/dev/null || skip "no $program here (contrib/setup test-all)"
done

comment_cluster() {
    own_cluster --nodes 2 --accounting --slurm-conf MinJobAge=2 --slurm-conf MessageTimeout=10
}

comment() { # OPTION...: its lines go to $work/comment
    admin "$root/contrib/admin-comment/admin-comment" --node n1 --state "$cluster/comment.json" "$@" >"$work/comment" 2>&1
}

shown() { # JOB
    admin sacct -nPX -j "$1" -o AdminComment
}

shows() { # JOB PATTERN: in any letters, since sacctmgr writes small ones
    shopt -s nocasematch
    matches "AdminComment of job $1" "$(shown "$1")" "$2"
    shopt -u nocasematch
}

ended() { # JOB: for slurmdbd, too
    [[ $(admin sacct -nPX -j "$1" -o State) =~ ^(COMPLETED|CANCELLED) ]]
}

step() { # SRUN-OPTION...: a step with a ring that has ended; sets job
    srun_show --tccl=on "$@"
    job=$(job_of)
    eventually "a record of $job" has_record "$job" 0
    eventually "the end of job $job" ended "$job"
}

running() { # NAME SRUN-OPTION...: a job that goes on; sets job
    local name=$1
    shift
    user srun -J "$name" --tccl=on "$@" sleep 600 >/dev/null 2>&1 </dev/null &
    eventually "a job $name" job_runs "$name"
    job=$(admin squeue -h -n "$name" -o %i)
    eventually "a record of $job" has_record "$job" 0
}

job_runs() { # NAME
    [ "$(admin squeue -h -n "$1" -o %T)" = RUNNING ]
}

end_job() { # JOB
    admin scancel "$1"
    eventually "the end of job $1" ended "$1"
}

not_built() { # JOB
    [ "$(record "$1" 0 built)" = "no call" ]
}

updates() {
    grep -c '^tccl: job [0-9]*: AdminComment in ' "$work/comment" || true
}

ring2="tccl: ring 2 nodes 8 GPUs *.* GB/s *.*x"
