#!/bin/bash
# Python's environment has an NCCL that is not known: line, TCCL_STATE and record say so before anything is promised;
# the plan is there, as the program may have another one, and then the record has what that built. A known one, other
# programs, and a folder that only another user may read: as ever. tccl-check says which one the environment has.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"
for each in /usr/local/lib /usr/lib64 /usr/lib/*-linux-gnu; do
    [ ! -e "$each/libnccl.so.2" ] || skip "this machine has an NCCL that any Python may find"
done

venv=$work/venv
lib=$venv/lib/python3.$(/usr/bin/python3 -c 'import sys; print(sys.version_info.minor)')/site-packages/nvidia/nccl
step=(-w n1 -N1 --gpus-per-node=4 --ntasks-per-node=4)

has_nccl() { # CODE: NCCL_VERSION_CODE of the environment's package
    mkdir -p "$lib/lib" "$lib/include"
    touch "$lib/lib/libnccl.so.2"
    printf '#define NCCL_MAJOR 2\n#define NCCL_VERSION_CODE %s\n' "$1" >"$lib/include/nccl.h"
}

python_show() { # SRUN-OPTION...
    user_show srun "$@" "$venv/bin/python" -c "import os; os.execv('$work/show', ['show'])"
}

# As the shim would say it, in a step of one task.
says_built() { # VERDICT TEXT
    cat >"$work/say" <<SAY
import os, subprocess, sys
print(os.environ["SLURM_JOB_ID"], flush=True)
subprocess.run([sys.executable, "$work/ask.py", "confirm", "verdict=$1", "text=$2", "ranks=4", "gpus=4", "whole=yes"])
SAY
    chmod 644 "$work/say"
    user srun -w n1 -N1 -n1 --gpus-per-node=4 --tccl=on "$venv/bin/python" "$work/say" >"$work/answer" 2>"$work/err" ||
        { cat "$work/err"; fail "a step that says $1"; }
    job=$(head -1 "$work/answer")
    equal "answer" "$(tail -n +2 "$work/answer")" "tccl-ok 1; end"
}

unknown() { # the step before
    says "tccl: no ring: NCCL 2.99.1: not known (2.* to 2.* are): $lib/lib/libnccl.so.2: update slurm-tccl (NCCL's own choice is used)"
    equal "tasks" "$(tasks)" 4
    all_have TCCL_STATE failed
    matches "TCCL_REASON" "$(values TCCL_REASON)" "NCCL 2.99.1: not known (*$lib/lib/libnccl.so.2*"
    none_has TCCL_RING
    none_has TCCL_GBPS
    equal "tasks with a plan" "$(carriers TCCL_PLAN)" 4
}

/usr/bin/python3 -m venv --without-pip "$venv"
chmod -R a+rX "$venv"
cp "$here/ask.py" "$work"
chmod 644 "$work/ask.py"

checks() { # LEVEL PATTERN
    user sh -c "PATH=$venv/bin:\$PATH exec tccl-check --node n1 --timeout 60 --only nccl" >"$work/check"
    item nccl "$1" "$2"
}

checks ok 'none in this environment*'
has_nccl 29901
checks warn "NCCL 2.99.1: not known (*), and left alone: $lib/lib/libnccl.so.2: update slurm-tccl"
python_show "${step[@]}" --tccl=on
equal "exit status" "$status" 0
unknown
job=$(job_of)
recorded "$job" 0 state failed
recorded "$job" 0 reason "NCCL 2.99.1: not known (*"
user tcclacct -X -n -j "$job" -o state,reason%30 | grep 'failed *NCCL 2.99.1: not known' >/dev/null || fail "tcclacct's table"
user tcclacct summary -j "$job" --json >"$work/summary.json"
grep -q '"class": "unknown NCCL"' "$work/summary.json" || fail "no class of its own in the summary"

# The program has another one.
says_built applied ""
recorded "$job" 0 state planned
equal "tcclacct" "$(user tcclacct -nP -j "$job" -o state,reason,built)" "planned||yes"

# On several nodes; and where a ring is required.
python_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on
unknown
recorded "$(job_of)" 0 reason "NCCL 2.99.1: not known (*"
python_show -w n1,n2 -N2 --gpus-per-node=4 --tccl=require
[ "$status" != 0 ] || fail "a step that requires a ring goes on"
equal "lines that say why it ends" "$(grep -c 'tccl: no ring: NCCL 2.99.1: not known .*(the step ends, because a ring is required)' "$work/err")" 1
equal "tasks" "$(tasks)" 0

# The NCCL of an environment is nothing to other programs.
srun_show "${step[@]}" --tccl=on
says 'tccl: *ring*GB/s*'
has_ring 4

has_nccl 23005
checks ok "NCCL 2.30.5 in $lib/lib/libnccl.so.2: known"
python_show "${step[@]}" --tccl=on
says 'tccl: *ring*GB/s*'
has_ring 4
says_built "not used" "NCCL 2.99.1: not known (2.1 to 2.2 are)"
recorded "$job" 0 state failed
recorded "$job" 0 reason "NCCL 2.99.1: not known (*"

has_nccl 29901
chmod 700 "$lib"
python_show "${step[@]}" --tccl=on
says 'tccl: *ring*GB/s*'
has_ring 4
