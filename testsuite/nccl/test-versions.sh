#!/bin/bash
# With other versions of NCCL than the rig's: its own rings and what its search says of them are those that we take for the
# baseline; the shim's tests that matter for each. TCCL_NCCL_VERSIONS="2.23.4 wheel:2.30.7" says which (default: the newest
# released one, if it can be had), TCCL_NCCL_TESTS which of the other tests here.
# level: all
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

run=0 failed=0
for TCCL_NCCL in ${TCCL_NCCL_VERSIONS:-wheel:2.32.3}; do
    export TCCL_NCCL
    "$here/get-nccl" || { [ $? = 77 ] && continue; exit 1; }
    for name in ${TCCL_NCCL_TESTS:-baseline-models shim-models shim-edges}; do
        status=0
        bash "$here/test-$name.sh" >/tmp/tccl-version.$$ 2>&1 || status=$?
        case $status in
        0) echo "--- NCCL $TCCL_NCCL, $name: passed"; run=$((run + 1)) ;;
        77) echo "--- NCCL $TCCL_NCCL, $name: $(tail -n 1 /tmp/tccl-version.$$)" ;;
        *) echo "--- NCCL $TCCL_NCCL, $name: FAILED"; cat /tmp/tccl-version.$$; failed=1 ;;
        esac
        rm -f /tmp/tccl-version.$$
    done
done
[ $failed = 0 ] || exit 1
[ $run -gt 0 ] || { echo "skipped: there is no other NCCL here (get-nccl VERSION)"; exit 77; }
