#!/bin/bash
# Packages of Python's that bring NCCL along, as users import them: PyTorch, which is linked to it, and JAX, whose plugin
# for CUDA opens it. Without a GPU nothing makes a communicator; what can be seen is the same with the shim as without it, and
# PyTorch's NCCL is reached through the shim.
# Usage: test-packages.sh [--get]   those that are kept (see get-python); --get downloads them, some 4 GB
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/wheels.sh"
readonly torch="torch==2.15.0 nvidia-cudnn-cu13==9.26.0.51 nvidia-cusparselt-cu13==0.8.1 nvidia-nccl-cu13==2.30.7
    nvidia-nvshmem-cu13==3.7.2 nvidia-cublas==13.4.1.3 nvidia-cuda-cupti==13.2.86 nvidia-cuda-nvrtc==13.2.86
    nvidia-cuda-runtime==13.2.86 nvidia-cufft==12.2.0.57 nvidia-cufile==1.17.1.22 nvidia-cusolver==12.2.0.11
    nvidia-cusparse==12.7.10.12 nvidia-nvtx==13.2.86 nvidia-nvjitlink==13.5.37 cuda-bindings==13.5.0 cuda-pathfinder==1.9.0
    fsspec==2026.9.0 networkx==3.6.1 sympy==1.14.0 mpmath==1.3.0 typing_extensions==4.16.0 filelock==4.2.11 Jinja2==3.1.6
    MarkupSafe==3.0.4 numpy"
readonly jax="jax==0.10.2 jaxlib==0.10.2 jax-cuda13-plugin==0.10.2 jax-cuda13-pjrt==0.10.2 ml_dtypes opt_einsum scipy numpy"

kept=--kept
case ${1:-} in
--get) kept= ;;
"") ;;
*) echo "Usage: test-packages.sh [--get]" >&2; exit 2 ;;
esac
[ "$(uname -m)" = x86_64 ] || skip "these packages are for x86-64"
export PYTHONDONTWRITEBYTECODE=1 CUDA_VISIBLE_DEVICES=

cat >"$work/torch.code" <<'CODE'
import torch
print(torch.__version__, "NCCL", torch.cuda.nccl.version(), "for distributed", torch.distributed.is_nccl_available())
print("ids", len(torch.cuda.nccl.unique_id()), torch.cuda.nccl.unique_id() != torch.cuda.nccl.unique_id())
print("on the CPU", (torch.ones(3) + 1).sum().item())
CODE
cat >"$work/jax.code" <<'CODE'
import ctypes, os
import jax
print(jax.__version__, [device.platform for device in jax.devices()], float(jax.jit(lambda x: (x + 1).sum())(jax.numpy.ones(3))))
plugin = ctypes.CDLL(os.path.join(os.path.dirname(jax.__file__), "..", "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so"))
plugin.GetPjrtApi.restype = ctypes.c_void_p
print("plugin", plugin.GetPjrtApi() is not None)
CODE
cat >"$work/use.py" <<'CODE'
import os, sys
exec(open(sys.argv[1]).read())
mapped = {os.path.basename(line.split()[-1]) for line in open("/proc/self/maps") if line.split()[-1].startswith("/")}
print("shim", "libtccl-nccl.so" in mapped, file=sys.stderr)
print("loaded", sorted(name for name in mapped if "nccl" in name and "tccl" not in name))
CODE

use() { # NAME WAY [NAME=VALUE]...: the program's lines in NAME.WAY, and how long it took
    local TIMEFORMAT="$1, $2: %U s in user mode, %S s in the kernel"
    time env "${@:3}" PYTHONPATH="$folder" python3 "$work/use.py" "$work/$1.code" >"$work/$1.$2" 2>"$work/$1.$2.err" ||
        fail "$1, $2: $(tail -n 5 "$work/$1.$2.err")"
}

same() { # NAME: with the shim as without it
    use "$1" alone
    use "$1" shim LD_PRELOAD="$shim" TCCL_PLAN="$work/bad-plan" TCCL_DEBUG=INFO TCCL_DEBUG_FILE="$work/$1.log"
    cat "$work/$1.alone"
    diff "$work/$1.alone" "$work/$1.shim" || fail "$1: not the same with the shim"
    grep -q "shim False" "$work/$1.alone.err" || fail "$1: the shim is loaded without being asked for"
    grep -q "shim True" "$work/$1.shim.err" || fail "$1: the shim is not loaded"
}

found=0
if folder=$("$here/get-python" $kept torch-2.15.0 $torch 2>"$work/why"); then
    found=1
    same torch
    grep -q "NCCL (2, 30, 7)" "$work/torch.shim" || fail "torch: another NCCL"
    [ "$(grep -c "WARN no ring for this process: the plan can't be read" "$work/torch.log")" = 1 ] ||
        fail "torch: its calls do not reach the shim: $(cat "$work/torch.log")"
else
    echo "left out: $(tail -n 1 "$work/why")"
fi
if folder=$("$here/get-python" $kept jax-0.10.2 $jax 2>"$work/why"); then
    found=1
    same jax
    [ ! -e "$work/jax.log" ] || fail "jax: the shim speaks of a program that has no NCCL: $(cat "$work/jax.log")"
else
    echo "left out: $(tail -n 1 "$work/why")"
fi
[ $found = 1 ] || skip "no package is kept; test-packages.sh --get has them"
