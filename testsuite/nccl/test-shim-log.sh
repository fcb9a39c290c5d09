#!/bin/bash
# What NCCL built is read from its log, which nobody else sees: no line of it reaches a program's
# output, and the user's own log is left as it is.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

build_comms make-comms
"$here/describe-machine" "$machines/dual-8gpu.json" "$work/machine"

run() { # NAME=VALUE...: the program under the shim; its output is in $work/out, the shim's log in $work/tccl
    local try
    for try in 1 2 3; do
        run_once "$@"
        came_late || break
    done
    cat "$work/tccl"
}
run_once() {
    make_plans "dual-8gpu:0,2,3=0 -w> 3 -m0> 2 -m1> 0"
    rm -f "$work/tccl" "$work"/users*
    env TCCL_RIG_LAUNCH=nothing LD_LIBRARY_PATH="$rig/lib" LD_PRELOAD="$TCCL_BUILD/runtime/libtccl-nccl.so" NCCL_SOCKET_IFNAME=lo \
        CUDA_VISIBLE_DEVICES=2,0,3 TCCL_PLAN="${plans[0]}" TCCL_DEBUG=INFO TCCL_DEBUG_FILE="$work/tccl" \
        SLURM_JOB_ID="$(key job)" SLURM_STEP_ID="$(key step)" "$@" \
        "$here/on-machine" "$work/machine" -- "$work/${program:-make-comms}" >"$work/out" 2>&1 || { cat "$work/out"; fail "$what"; }
}

logged() { # PATTERN COUNT: lines in the shim's log
    [ "$(grep -c -- "$1" "$work/tccl")" = "$2" ] || fail "$what: not $2 lines with \"$1\""
}
silent() {
    [ ! -s "$work/out" ] || { cat "$work/out"; fail "$what: the program's output is not empty"; }
}

step "nothing set"
run
silent
logged "built as planned" 2
logged "differs\|not known" 0

step "the user's own log, with all that is needed"
run NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=^ENV NCCL_DEBUG_FILE="$work/users.%h.%p"
silent
logged "built as planned" 2
[ "$(cat "$work"/users.*.* | grep -c "Init COMPLETE")" = 6 ] || fail "the user's log is not complete"
! sed '/Init COMPLETE/,$d' "$work"/users.*.* | grep ' via ' || fail "$what: connected at init: not in cuMem mode"

# NCCL's lines about the plugin for its environment, in the user's log of all ranks.
plugin_is() { # NAME COUNT
    grep -q ncclEnvPlugin_v1 "$rig/lib/libnccl.so.2" || return 0 # before 2.28.7
    [ "$(cat "$work"/users.*.* | grep -c "ENV/Plugin: Using $1 ")" = "$2" ] ||
        { grep -h ENV/ "$work"/users.*.*; fail "$what: not $2 times the plugin $1"; }
}
plugin_is tccl 1
readonly all=(NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ALL NCCL_DEBUG_FILE="$work/users.%h.%p")

step "without the plugin for NCCL's environment"
run "${all[@]}" NCCL_ENV_PLUGIN=none
plugin_is tccl 0
logged "built as planned" 2

step "nccl.conf, of which NCCL makes the program's environment"
printf '%s\n' "${all[@]}" >"$work/nccl.conf"
run NCCL_CONF_FILE="$work/nccl.conf"
plugin_is tccl 1
logged "built as planned" 2
echo NCCL_ENV_PLUGIN=none >>"$work/nccl.conf"
run NCCL_CONF_FILE="$work/nccl.conf"
plugin_is tccl 0
logged "built as planned" 2

step "the site's own plugin"
"${CC:-cc}" -shared -fPIC -o "$work/libnccl-env.so" -x c - <<'CODE' || fail "$what"
#include <stdlib.h>
static int start(void) { return 0; }
const struct { const char *name; void *start, *end, *get; } ncclEnvPlugin_v1 = {"own", start, start, getenv};
CODE
run "${all[@]}" LD_LIBRARY_PATH="$work:$rig/lib"
plugin_is own 1
plugin_is tccl 0
! grep -q ncclEnvPlugin_v1 "$rig/lib/libnccl.so.2" || logged "NCCL asks the site's libnccl-env.so" 1

step "a process without a plan"
run "${all[@]}" TCCL_PLAN=
plugin_is tccl 0

step "the user's own log in a file, as NCCL has it by default"
run NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$work/users"
silent
logged "built as planned" 2
! grep -q "Ring 00" "$work/users" || fail "the user's log has what was not asked for"
! sed '/Init COMPLETE/,$d' "$work/users" | grep ' via ' || fail "$what: connected at init: not in cuMem mode"

step "the user's own log on the standard output"
run NCCL_DEBUG=INFO
logged "built as planned" 2
[ "$(grep -c "Init COMPLETE" "$work/out")" = 6 ] || fail "the user's log is not complete"
[ "$(grep -c "Connected all rings" "$work/out")" = 6 ] || fail "the user's log is not complete"
! grep "Ring 00\|tccl-nccl-log" "$work/out" || fail "the user's log has what was not asked for"
run NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/dev/stdout
logged "built as planned" 2

step "the user's own log, without what is connected"
run NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV
logged "NCCL does not log what it connects" 2

for level in WARN VERSION; do
    step "$level only"
    run NCCL_DEBUG=$level
    [ "$(grep -vc "NCCL version" "$work/out")" = 0 ] || { cat "$work/out"; fail "more than NCCL's version"; }
    logged "NCCL does not log what it connects" 2
done

step "a limit on the size of files"
(ulimit -f 1000000000 && run) || fail "$what" # KiB: more than there is
silent
logged "the size of files is limited" 2

step "where nothing is steered, NCCL's log is bounded, too"
cat >"$work/one-each.c" <<'CODE'
/* Makes two communicators of three processes. What NCCL's log is like in the end goes to SEALS. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static int make(const ncclUniqueId *id, int rank)
{
    ncclComm_t comm;
    return cudaSetDevice(rank) != cudaSuccess || ncclCommInitRank(&comm, 3, *id, rank) != ncclSuccess ||
           ncclCommDestroy(comm) != ncclSuccess;
}
static void look(void)
{
    char path[64], name[64];
    FILE *seals = fopen(getenv("SEALS"), "a");
    for (int fd = 3; fd < 256; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, name, sizeof(name));
        if (n > 20 && !memcmp(name, "/memfd:tccl-nccl-log", 20))
            fprintf(seals, "%s\n", fcntl(fd, F_GET_SEALS) & F_SEAL_GROW ? "sealed" : "open");
    }
    fclose(seals);
}
int main(void)
{
    ncclUniqueId *ids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    volatile int *ready = (volatile int *)(ids + 2);
    int failed = 0, status;
    for (int rank = 0; rank < 3; rank++)
        if (fork() == 0) {
            if (rank == 0)
                *ready = ncclGetUniqueId(&ids[0]) == ncclSuccess && ncclGetUniqueId(&ids[1]) == ncclSuccess;
            while (!*ready)
                usleep(1000);
            failed = make(&ids[0], rank) || make(&ids[1], rank);
            look();
            return failed;
        }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
CODE
build_comms one-each "$work"
program=one-each run NCCL_COLLNET_ENABLE=1 SEALS="$work/seals"
logged "NCCL's own choice: the user has set NCCL_COLLNET_ENABLE=1" 2
[ "$(sort -u "$work/seals")" = sealed ] || { cat "$work/seals"; fail "$what"; }
