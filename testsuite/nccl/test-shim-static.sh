#!/bin/bash
# NCCL linked statically. Into a program, or into a library that hides it: its calls pass the shim by, so it is left alone,
# with a line for each process, and has the tables, transports and buffers of the same program without the shim. In a library that shows
# its functions the calls reach the shim, and the ring is built.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

nccl=$("$here/get-nccl" --built)
[ -e "$nccl/lib/libnccl_static.a" ] || { echo "skipped: $nccl has no libnccl_static.a"; exit 77; }
toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")")")")
sources=("${probe_parts[@]}" "$here"/{sparse-memset,patient-sockets}.c)
archive=("$nccl/lib/libnccl_static.a" "$rig/lib/libcudart.so.13" -lstdc++ -lm -ldl -lrt -lpthread)

build() { # OUTPUT OPTION...
    local output=$1
    shift
    "${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -isystem "$nccl/include" -isystem "$toolkit/include" -o "$work/$output" "$@" 2>"$work/compiler" ||
        fail "$output can't be built: $(tail -n 3 "$work/compiler")"
}
build inside "${sources[@]}" "${archive[@]}"
build shown -rdynamic "${sources[@]}" "${archive[@]}"
for kind in open hidden; do
    options=()
    [ $kind = open ] || options=(-Wl,--exclude-libs,ALL)
    build "lib$kind.so" -shared -fPIC -Dmain=probe_main "${sources[@]}" "${options[@]}" "${archive[@]}"
    build "with-$kind" -x c - -x none "$work/lib$kind.so" "-Wl,-rpath,$work" "$rig/lib/libcudart.so.13" \
        <<<'int probe_main(int, char **); int main(int n, char **words) { return probe_main(n, words); }'
done

chain="amd-4gpu:0-3=0 -m3> 1 -m2> 3 -m1> 2 -m0> 0" # memories that are not NCCL's own choice
facts() { # LOGS: tables, transports, and where buffers are
    sed -n 's/^[^ ]* *\[[0-9]*\] NCCL INFO //p' "$work/$1"/*.log | grep -E '^ *(AllReduce \||Channel|Ring|Trees)|via |CUMEM allocated|MMAP allocated' |
        sed 's/0x[0-9a-f]*/X/g; s/\/dev\/shm\/nccl-[^ ]*/X/g' | sort
}
for kind in inside shown with-hidden; do
    step "$kind"
    make_plans "$chain"
    rm -rf "$work"/*logs
    run_ring "$work/alone" amd-4gpu --program "$work/$kind" --preload - --log "$work/alone-logs"
    run_planned amd-4gpu --program "$work/$kind" --log "$work/logs"
    "$here/same-rings" "$work/alone" "$work/rings" || { show_log; fail "$what: not as NCCL alone"; }
    diff <(facts alone-logs) <(facts logs) || fail "$what: NCCL's log has other facts"
    [ "$(facts logs | wc -l)" -gt 20 ] || fail "$what: NCCL's log has no facts"
    said "TCCL WARN no ring for this process: its calls to NCCL" 4
done

step "with-open"
make_plans "$chain"
run_planned amd-4gpu --program "$work/with-open"
as_planned
said "built as planned" 1
