#!/bin/bash
# tccl-check where things lie differently: a login node; a shim that is missing or closed to users; tasks
# that see one GPU each.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

look() { # [NAME=VALUE]... OPTION...: with this test's slurm.conf
    status=0
    SLURM_CONF=$work/conf/slurm.conf TCCL_CONF=$cluster/tccl.conf PATH=$cluster/bin:$PATH \
        env "${@:2}" tccl-check --node "$1" --timeout 60 >"$work/check" || status=$?
    cat "$work/check"
}
mkdir "$work/conf"
cp "$cluster/gres.conf" "$work/conf"

# A login node: the nodes are on other hosts. Nothing is missing there but what it does not need.
sed 's/NodeHostname=[^ ]*/NodeHostname=elsewhere/' "$cluster/slurm.conf" >"$work/conf/slurm.conf"
status=0
SLURM_CONF=$work/conf/slurm.conf TCCL_CONF=$cluster/tccl.conf PATH=$cluster/bin:$PATH \
    tccl-check --timeout 60 >"$work/check" || status=$?
cat "$work/check"
equal "exit status" "$status" 0
others_ok
item node ok '* is no compute node'
item daemon ok '*this is no compute node'
item profile ok '*this is no compute node'
item peers ok '4 of 4 answer'

cp "$cluster/slurm.conf" "$work/conf/slurm.conf"

# Isolation: by cgroups; by the shell's settings; of the task that this runs in.
sed -i 's|^TaskPlugin=.*|TaskPlugin=task/affinity,task/cgroup|' "$work/conf/slurm.conf"
echo "ConstrainDevices=yes" >"$work/conf/cgroup.conf"
look n1
others_ok loaded gpus # the slurmd here has the other file
item isolation ok '*with --gpus-per-task or --gpu-bind*no P2P*--gpus-per-node'
sed -i 's|^TaskPlugin=.*|TaskPlugin=task/none|' "$work/conf/slurm.conf"
look n1
others_ok loaded isolation gpus
item isolation warn 'ConstrainDevices=yes has no effect without TaskPlugin=task/cgroup*'
look n1 SLURM_GPUS_PER_TASK=1
item isolation warn '*SLURM_GPUS_PER_TASK=1 is set here*--gpus-per-node*'
user srun -w n1 -n1 --gpus-per-node=4 tccl-check --only isolation >"$work/check"
item isolation ok '*'
user srun -w n1 -n4 --gpus-per-task=1 sh -c '[ $SLURM_PROCID != 0 ] || tccl-check --only isolation' >"$work/check"
item isolation warn "this task sees 1 of the step's 4 GPUs*--gpus-per-node instead of --gpus-per-task*"

# Links= of gres.conf, where this Slurm can use them: as measured, and otherwise.
cp -p "$cluster/gres.conf" "$work/gres.conf"
at_end+=("cp -p $work/gres.conf $cluster/gres.conf")
links() { # GPU...: whose Links= the GPUs get, in this order
    local gpu i=0
    admin tccl-profile gres --slurm 22.05 --cache "$cluster/nodes/n1/cache" >"$work/lines" 2>"$work/err"
    { grep -v '^NodeName=n1 ' "$work/gres.conf"
      for gpu; do
          echo "NodeName=n1 Name=gpu File=$cluster/dev/gpu$((i++)) $(grep "nvidia$gpu " "$work/lines" | grep -o 'Links=.*')"
      done; } >"$cluster/gres.conf"
    check n1 --only gpus
    cp -p "$work/gres.conf" "$cluster/gres.conf"
}
links 0 1 2 3
item gpus ok '4, as Slurm has them'
links 1 0 2 3
case $(slurmd -V) in
*" "2[0-3].*) item gpus warn 'Links=* of *gpu0 in gres.conf are not as measured: tccl-profile gres prints those that are' ;;
*) item gpus ok '4, as Slurm has them' ;;
esac
links 0 1 2 none # one GPU without
case $(slurmd -V) in
*" "2[0-3].*) item gpus warn 'Links=* of *gpu3 in gres.conf are not as measured: tccl-profile gres prints those that are' ;;
*) item gpus ok '4, as Slurm has them' ;;
esac

# What slurmd can't read of gres.conf it leaves out, or takes for something else.
with() { # TEXT...: behind the GPUs' File=, in this order
    local i=0
    { grep -v '^NodeName=n1 ' "$work/gres.conf"
      for text; do echo "NodeName=n1 Name=gpu File=$cluster/dev/gpu$((i++)) $text"; done; } >"$cluster/gres.conf"
    check n1 --only gpus
    cp -p "$work/gres.conf" "$cluster/gres.conf"
}
with Links=-1,4,4,4 Links=best Links=4,4,-1,4 Links=4,4,4,-1
item gpus warn 'Links=best in gres.conf is none that slurmd can read*tccl-profile gres prints them'
equal "lines" "$(grep -c gres.conf "$work/check")" 1
with Links=4,4,4,4 Links=4,4,4,4 Links=4,4,4,4 Links=4,4,4,4
item gpus warn 'Links=4,4,4,4 in gres.conf is none that slurmd can read*'
with Cores=0-31 Cores=0-31 Cores=90-121 Cores=32-63
item gpus warn 'Cores=90-121 of *gpu2 in gres.conf are no cores of this node, 0 to 63 as Slurm counts: tccl-profile gres*'
equal "lines" "$(grep -c gres.conf "$work/check")" 1
with Cores=0-31 Cores=some Cores=0-31 Cores=32-63
item gpus warn 'Cores=some of *gpu1 in gres.conf are no cores of this node*'
with Cores=0-31 Cores=0-31 Cores=32-63 Cores=32-63
item gpus ok '4, as Slurm has them'

# A shim that is not there, and one that is closed to the jobs of users.
cp "$cluster/tccl.conf" "$work/tccl.conf"
sed -i "s|^Shim=.*|Shim=$work/shim.so|" "$work/tccl.conf"
shim() {
    admin tccl-check --node n1 --config "$work/tccl.conf" --only shim >"$work/check" && fail "a bad shim is taken"
    cat "$work/check"
}
shim
item shim fail "Shim=$work/shim.so: No such file*: install it*"
touch "$work/shim.so"
chmod 600 "$work/shim.so"
shim
item shim fail '*is closed to other users*chmod*'
mv "$work/shim.so" "$work/a shim.so"
sed -i "s|^Shim=.*|Shim=$work/a shim.so|" "$work/tccl.conf"
shim
item shim fail "Shim=$work/a shim.so has a space or a colon*"

# Slurm may do without munge, and tccld not: that is said where no munged runs.
sed -i "s|^Shim=.*||; s|^MungeSocket=.*||; s|^\[tccl\]|&\nMungeSocket=$work/none|" "$work/tccl.conf"
munge() {
    status=0
    SLURM_CONF=$work/conf/slurm.conf "$cluster/bin/tccl-check" --node n1 --config "$1" --only munge >"$work/check" || status=$?
    cat "$work/check"
}
munge "$work/tccl.conf"
item munge fail "MungeSocket=$work/none: no munged has this socket: start munged, *"
sed -i 's|^AuthType=.*|AuthType=auth/slurm|' "$work/conf/slurm.conf"
munge "$work/tccl.conf"
equal "exit status" "$status" 1
item munge fail "MungeSocket=$work/none: *: Slurm has AuthType=auth/slurm, but tccld needs munge: start a munged with the same key on all nodes, *"
munge "$cluster/tccl.conf"
item munge ok '*'
