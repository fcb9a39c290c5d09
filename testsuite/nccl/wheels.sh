# wheels.sh: what the tests share that run Python's packages of NCCL, without a rig.
. "$(dirname "${BASH_SOURCE[0]}")/base.sh"
readonly shim=$TCCL_BUILD/runtime/libtccl-nccl.so
[ -e "$shim" ] || skip "the build has no libtccl-nccl.so"
unset LD_PRELOAD LD_LIBRARY_PATH TCCL_PLAN TCCL_DEBUG TCCL_DEBUG_FILE PYTHONPATH ${!NCCL_*}
echo "no plan" >"$work/bad-plan"
