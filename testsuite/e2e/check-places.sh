#!/bin/bash
# tccl-check where things lie differently: a login node; libraries of NCCL, and a shim, that don't fit; tasks
# that see one GPU each.
# cluster: mixed
. "$(dirname "$0")/lib.sh"

look() { # [NAME=VALUE]... OPTION...: with this test's slurm.conf
    status=0
    SLURM_CONF=$work/conf/slurm.conf TCCL_CONF=$cluster/tccl.conf PATH=$cluster/bin:$PATH \
        env "${@:2}" tccl-check --node "$1" >"$work/check" || status=$?
    cat "$work/check"
}
library() { # FILE TEXT
    mkdir -p "$(dirname "$1")"
    printf 'const char said[] = "%s";\n' "$2" | gcc -shared -fPIC -x c -o "$1" -
}
mkdir "$work/conf"
cp "$cluster/gres.conf" "$work/conf"

# A login node: the nodes are on other hosts. Nothing is missing there but what it does not need.
sed 's/NodeHostname=[^ ]*/NodeHostname=elsewhere/' "$cluster/slurm.conf" >"$work/conf/slurm.conf"
status=0
SLURM_CONF=$work/conf/slurm.conf TCCL_CONF=$cluster/tccl.conf PATH=$cluster/bin:$PATH \
    tccl-check >"$work/check" || status=$?
cat "$work/check"
equal "exit status" "$status" 0
others_ok
item node ok '* is no compute node'
item daemon ok '*this is no compute node'
item profile ok '*this is no compute node'
item peers ok '4 of 4 answer'

# NCCLs, by the text that each has in it.
library "$work/old/libnccl.so.2" "NCCL version 2.17.1+cuda11.0"
library "$work/new/libnccl.so.2" "NCCL version 2.28.9+cuda12.9"
library "$work/packages/nvidia/nccl/lib/libnccl.so.2" "NCCL version 2.21.5+cuda12.4"
library "$work/torch/torch/lib/libtorch_cuda.so" "NCCL version 2.21.5+cuda12.4"
cp "$cluster/slurm.conf" "$work/conf/slurm.conf"
look n1 LD_LIBRARY_PATH="$work/old"
equal "exit status" "$status" 0
item nccl warn "$work/old/libnccl.so.2 is NCCL 2.17.1+cuda11.0 (LD_LIBRARY_PATH): *2.18 to 2.30*"
look n1 LD_LIBRARY_PATH="/nowhere:$work/new" PYTHONPATH="$work/packages"
item nccl ok "2.28.9+cuda12.9 $work/new/libnccl.so.2 (LD_LIBRARY_PATH)*2.21.5+cuda12.4 $work/packages/*libnccl.so.2 (python3)*"
look n1 PYTHONPATH="$work/torch"
item nccl warn "*torch_cuda.so has no libnccl.so.2 beside it*TCCL_DEBUG=INFO*"

# Isolation: by cgroups; by the shell's settings; of the task that this runs in.
sed -i 's|^TaskPlugin=.*|TaskPlugin=task/affinity,task/cgroup|' "$work/conf/slurm.conf"
echo "ConstrainDevices=yes" >"$work/conf/cgroup.conf"
look n1
others_ok loaded
item isolation ok '*with --gpus-per-task or --gpu-bind*no P2P*--gpus-per-node'
sed -i 's|^TaskPlugin=.*|TaskPlugin=task/none|' "$work/conf/slurm.conf"
look n1
others_ok loaded isolation
item isolation warn 'ConstrainDevices=yes has no effect without TaskPlugin=task/cgroup*'
look n1 SLURM_GPUS_PER_TASK=1
item isolation warn '*SLURM_GPUS_PER_TASK=1 is set here*--gpus-per-node*'
user srun -w n1 -n1 --gpus-per-node=4 tccl-check --only isolation >"$work/check"
item isolation ok '*'
user srun -w n1 -n4 --gpus-per-task=1 sh -c '[ $SLURM_PROCID != 0 ] || tccl-check --only isolation' >"$work/check"
item isolation warn "this task sees 1 of the step's 4 GPUs*--gpus-per-node instead of --gpus-per-task*"

# A shim that needs a newer libc, one for nothing, one that is none.
cp "$cluster/tccl.conf" "$work/tccl.conf"
sed -i "s|^Shim=.*|Shim=$work/shim.so|" "$work/tccl.conf"
shim() {
    admin tccl-check --node n1 --config "$work/tccl.conf" --only shim >"$work/check" && fail "a bad shim is taken"
    cat "$work/check"
}
echo 'void newer(void); void newer(void) {}' >"$work/newer.c"
echo 'GLIBC_2.99 { newer; };' >"$work/newer.map"
gcc -shared -fPIC -Wl,--version-script="$work/newer.map" -o "$work/libnewer.so" "$work/newer.c"
echo 'void newer(void); int ncclCommInitRank(void); int ncclCommInitRank(void) { newer(); return 0; }' |
    gcc -shared -fPIC -x c -o "$work/shim.so" - -L"$work" -lnewer
shim
item shim fail "$work/shim.so needs GLIBC_2.99, and *is here*"
library "$work/shim.so" nothing
shim
item shim fail "$work/shim.so is not the shim: *"
echo "no library at all, but long enough to be taken for one, if one does not look at it" >"$work/shim.so"
shim
item shim fail "*$work/shim.so: is not a library: *"
python3 -c '
import sys
data = bytearray(open("/proc/self/exe", "rb").read(4096))
data[18] ^= 0x55  # e_machine
open(sys.argv[1], "wb").write(data)' "$work/shim.so"
shim
item shim fail "$work/shim.so is for another kind of machine: *"
