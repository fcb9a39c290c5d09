#!/bin/bash
# Where a plan is given, the shim stands in front of LD_PRELOAD; not in a container, unless the site
# says where it is inside, nor where the task does not see it. Programs with AddressSanitizer run.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

command -v gcc >/dev/null || skip "gcc is not installed"
own_cluster --nodes 1

# A shim that does nothing, and plugins that do of pyxis what matters here: one has its option, the
# other brings the task to where the shim is not, unseen.
mkdir -p "$cluster/shim"
gcc -shared -fPIC -x c -o "$cluster/shim/shim.so" - <<<'int nothing(void); int nothing(void) { return 0; }'
gcc -shared -fPIC -x c -o "$cluster/pyxis.so" - <<'PLUGIN'
#include <slurm/spank.h>
SPANK_PLUGIN(pyxis, 1)
static int take(int value, const char *argument, int remote)
{
    (void)value, (void)argument, (void)remote;
    return 0;
}
static struct spank_option option = {"container-image", "IMAGE", "a container", 1, 0, take};
int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    (void)argc, (void)argv;
    return spank_option_register(spank, &option);
}
PLUGIN
gcc -D_GNU_SOURCE -DHIDE="\"$cluster/shim\"" -shared -fPIC -x c -o "$cluster/hide.so" - <<'PLUGIN'
#include <sched.h>
#include <slurm/spank.h>
#include <sys/mount.h>
SPANK_PLUGIN(hide, 1)
int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv)
{
    char value[8];
    (void)argc, (void)argv;
    if (spank_getenv(spank, "HIDE_SHIM", value, sizeof value) != ESPANK_SUCCESS)
        return 0;
    return unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0) ||
           mount("none", HIDE, "tmpfs", 0, 0);
}
PLUGIN
plugin() { # KEY=VALUE...: the line of our plugin has these
    printf '%s\n' "required $cluster/pyxis.so" "required $cluster/hide.so" \
        "optional $cluster/build/spank/spank_tccl.so config=$cluster/tccl.conf $*" >"$cluster/plugstack.conf"
}
in_step() { # SRUN-OPTION...: what of the environment the task has
    user srun -N1 --gpus-per-node=4 --tccl=on "$@" sh -c \
        'echo "$TCCL_STATE,$LD_PRELOAD,$TCCL_SHIM,$ASAN_OPTIONS,$TCCL_REASON"' 2>"$work/err"
}
shim=$cluster/shim/shim.so

plugin "Shim=$shim"
equal "with a plan" "$(in_step)" "planned,$shim,$shim,verify_asan_link_order=0,"
equal "with --tccl=off" "$(in_step --tccl=off)" ",,,,"
equal "the user's own" "$(ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=libutil.so.1 in_step)" \
    "planned,$shim:libutil.so.1,$shim,verify_asan_link_order=0:detect_leaks=0,"
equal "in a step within the step" "$(ASAN_OPTIONS=detect_leaks=0 user srun -N1 --gpus-per-node=4 --tccl=on \
    srun --overlap --tccl=off sh -c 'echo "$LD_PRELOAD,$TCCL_SHIM,$ASAN_OPTIONS"' 2>"$work/err")" ",,detect_leaks=0"

matches "in a container" "$(in_step --container-image=some)" \
    "planned,,,,the ring is not built: the step runs in a container, and ContainerShim=*"
equal "where the task does not see the shim" "$(HIDE_SHIM=1 in_step)" \
    "planned,,,,the ring is not built: the task does not see the shim (a container?)"
matches "the same with the user's own" "$(HIDE_SHIM=1 LD_PRELOAD=libutil.so.1 ASAN_OPTIONS=detect_leaks=0 in_step)" \
    "planned,libutil.so.1,,detect_leaks=0,the ring is not built: *"

plugin "Shim=$shim" "ContainerShim=/opt/inside/shim.so"
equal "in a container that has the shim" "$(in_step --container-image=some)" \
    "planned,/opt/inside/shim.so,/opt/inside/shim.so,verify_asan_link_order=0,"
equal "outside" "$(in_step)" "planned,$shim,$shim,verify_asan_link_order=0,"

plugin "Shim=/nonexistent/shim.so"
equal "without a shim" "$(in_step)" \
    "planned,,,,the ring is not built: this user cannot read the shim, the file named by Shim= in tccl.conf"
says "tccl: the ring is not built: this user cannot read the shim, *"

# $LIB is ld.so's: the folder that Debian and Red Hat have it for.
libc=$(ldd /bin/sh | sed -n 's|.* => /\(usr/\)\{0,1\}\(.*\)/libc\.so\.6 .*|\2|p')
mkdir -p "$cluster/prefix/$libc/tccl"
cp "$shim" "$cluster/prefix/$libc/tccl/shim.so"
plugin 'Shim='"$cluster"'/prefix/$LIB/tccl/shim.so'
lib=$libc # where there are no 32-bit programs
! [ -e /lib/ld-linux.so.2 ] || lib='$LIB'
equal 'with $LIB' "$(in_step | cut -d, -f1-2)" "planned,$cluster/prefix/$lib/tccl/shim.so"
equal "the library that ld.so loads for it" "$(user srun -N1 --gpus-per-node=4 --tccl=on \
    grep -c "$cluster/prefix/$libc/tccl/shim.so" /proc/self/maps 2>"$work/err" | sed 's/[1-9].*/some/')" some

# A program that is made with AddressSanitizer's shared runtime.
if gcc -fsanitize=address -x c -o "$work/program" - <<<'int puts(const char *); int main(void) { return puts("it runs") < 0; }'; then
    chmod 755 "$work/program"
    refused=$(ASAN_OPTIONS= LD_PRELOAD=$shim "$work/program" 2>&1 || true)
    [[ $refused == *"does not come first"* ]] || echo "this AddressSanitizer does not mind: $refused"
    plugin "Shim=$shim"
    equal "with AddressSanitizer" "$(user srun -N1 --gpus-per-node=4 --tccl=on "$work/program" 2>"$work/err")" "it runs"
fi
