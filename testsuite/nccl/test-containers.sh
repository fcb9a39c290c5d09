#!/bin/bash
# Tasks in containers, as pyxis (enroot) and Apptainer make them: a root of their own, in a user namespace, with
# what contrib/containers/50-tccl.sh puts there. NCCL builds the ring, and tcclacct knows, whether the user is
# himself inside or root; without the mounts NCCL builds its own, and the step runs. Neither program is here: a
# small script does to the root what they do.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$UID" = 0 ] || { echo "skipped: not root"; exit 77; }
setpriv --reuid nobody --clear-groups unshare --user --mount true 2>/dev/null ||
    { echo "skipped: users may not make namespaces here"; exit 77; }
readonly contrib=$here/../../contrib inside=/opt/tccl/libtccl-nccl.so
chmod 755 "$work"
export TCCL_MINICLUSTER=$work/c
trap '"$contrib/minicluster" stop; rm -rf "$work"' EXIT
"$contrib/minicluster" start --patient --nccl --nodes 2 --model amd-4gpu --model intel-4gpu --build "$TCCL_BUILD" \
    --tccl-conf "ContainerShim=$inside"
readonly home=$TCCL_MINICLUSTER/home
cp "$contrib/containers/50-tccl.sh" "$home/"

as_user() {
    "$contrib/minicluster" run --as nobody -- "$@"
}

# container NAMESPACE-OPTION HOOK COMMAND...: all tasks of a node go into one container, which the first of
# them makes: a root with the host's programs, but without the folders of the cluster's nodes and its build, and
# what the hook wrote.
cat >"$home/container" <<'CONTAINER'
#!/bin/bash
set -e
preload=$LD_PRELOAD
[ -z "${APPTAINER-}" ] || preload=$APPTAINERENV_LD_PRELOAD
unset LD_PRELOAD
map=$1 hook=$2
shift 2
top=$(dirname "$0")/$SLURM_JOB_ID.$SLURM_STEP_ID.$SLURMD_NODENAME
if [ "$SLURM_LOCALID" = 0 ]; then
    mkdir -p "$top/root"
    : >"$top/mounts"
    ENROOT_ROOTFS=$top/root ENROOT_MOUNTS=$top/mounts "$hook"
    unshare --user "$map" --keep-caps --mount --propagation private bash -e -c '
        top=$1 root=$1/root
        mount -n -t tmpfs tmpfs "$root"
        for entry in /*; do
            case $entry in
            /opt | /root | /home) continue ;;
            esac
            if [ -L "$entry" ]; then
                cp -P "$entry" "$root"
            elif [ -d "$entry" ] && [ -x "$entry" ]; then
                mkdir "$root$entry"
                mount -n --rbind "$entry" "$root$entry"
            fi
        done
        for hidden in nodes build; do
            mount -n -t tmpfs tmpfs "$root$TCCL_MINICLUSTER/$hidden"
        done
        while read -r source target type options; do
            case $options in
            *x-create=file*) mkdir -p "$(dirname "$root$target")"; : >"$root$target" ;;
            *) mkdir -p "$root$target" ;;
            esac
            mount -n --bind "$source" "$root$target"
        done <"$top/mounts"
        echo $$ >"$top/made"
        mv "$top/made" "$top/holder"
        exec chroot "$root" sleep 1000
    ' bash "$top" &
fi
for round in {1..3000}; do
    [ ! -e "$top/holder" ] || [ "$(cat "/proc/$(cat "$top/holder")/comm")" != sleep ] || break # before, its root is the host's
    sleep 0.1
done
status=0
nsenter --target "$(cat "$top/holder")" --user --mount --root --preserve-credentials \
    env --chdir="$PWD" LD_PRELOAD="$preload" "$@" || status=$?
[ "$SLURM_LOCALID" != 0 ] || kill "$(cat "$top/holder")"
exit $status
CONTAINER
cat >"$home/train" <<'TRAIN'
#!/bin/sh
[ "$SLURM_PROCID" != 0 ] || { env | grep -E "^TCCL_(STATE|REASON|RING|PLAN|SHIM)="; echo "uid $(id -u)"; }
[ ! -e "$TCCL_MINICLUSTER/build/runtime" ] || echo "the host's shim is seen"
exec "$RIG/ring-probe" --edges --go-on
TRAIN
chmod 755 "$home/container" "$home/train" "$home/50-tccl.sh"

run_step() { # FILE NAMESPACE-OPTION HOOK
    local out=$work/$1
    RIG=$TCCL_MINICLUSTER/rig TCCL_MINICLUSTER=$TCCL_MINICLUSTER TCCL_CONF=$TCCL_MINICLUSTER/tccl.conf \
        as_user timeout 600 srun -K -N2 --gpus-per-node=4 --ntasks-per-node=4 --tccl=on "$home/container" "$2" "$3" "$home/train" \
        >"$out" 2>&1 </dev/null || fail "$1: $(cat "$out")"
    grep -q '^ring-probe: comm 0, 8 ranks: ring 0 ' "$out" || fail "$1: no ring: $(cat "$out")"
    grep -q '^TCCL_STATE=planned' "$out" || fail "$1: not planned: $(cat "$out")"
    ! grep -q "the host's shim is seen" "$out" || fail "$1: this is no container"
}
built() { # what NCCL built in the last step
    local round
    for round in {1..500}; do
        as_user tcclacct -nP -o built >"$work/built"
        [ -z "$(tail -n 1 "$work/built")" ] || break
        sleep 0.2
    done
    tail -n 1 "$work/built"
}
as_planned() { # FILE
    "$here/ring-compare" "$work/$1" || fail "$1: NCCL built another ring: $(cat "$work/$1")"
    [ "$(built)" = yes ] || fail "$1: on record: $(cat "$work/built")"
}
uid_is() { # FILE UID
    grep -qx "uid $2" "$work/$1" || fail "$1: $(grep '^uid' "$work/$1"), not $2"
}

# pyxis: known by its option; Slurm's environment has it.
export _SLURM_SPANK_OPTION_pyxis_container_image=image
run_step user --map-current-user "$home/50-tccl.sh"
uid_is user "$(id -u nobody)"
grep -qx "TCCL_SHIM=$inside" "$work/user" || fail "the shim: $(cat "$work/user")"
as_planned user
run_step root --map-root-user "$home/50-tccl.sh"
uid_is root 0
as_planned root
run_step bare --map-current-user true
! "$here/ring-compare" "$work/bare" || fail "without the mounts NCCL builds the ring: this test shows nothing"

# Apptainer: started by the task itself, which nobody can know; its variable goes before LD_PRELOAD.
unset _SLURM_SPANK_OPTION_pyxis_container_image
export APPTAINER=1
run_step apptainer --map-current-user "$home/50-tccl.sh"
! grep -qx "TCCL_SHIM=$inside" "$work/apptainer" || fail "the plugin took it for pyxis"
as_planned apptainer
! grep -h 'cannot be preloaded' "$work/apptainer" || fail "ld.so complains in Apptainer's container"
