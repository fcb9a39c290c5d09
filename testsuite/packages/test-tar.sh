#!/bin/bash
# contrib/package tar: one folder that runs on Debian from 11 on, by a user without rights or name, where nothing of ours and none of our libraries
# is installed: the doctor, a profile by a model, and tccl-run, whose command is of the tree and has the shim preloaded by the tree's own libc.
# level: all
. "$(dirname "$0")/lib.sh"
need_namespaces
for program in meson ninja; do command -v $program >/dev/null || skip "no $program"; done
readonly build=${TCCL_BUILD:-$root/build} model=$root/testsuite/machines/amd-4gpu.json

quietly "the tar is not made" "$root/contrib/package" tar --out "$work/out"
mkdir "$work/mnt"
tar -C "$work/mnt" -xzf "$work"/out/tccl-*.tar.gz
mv "$work"/mnt/tccl-* "$work/mnt/tccl"
du -sh "$work/mnt/tccl" | cut -f 1
# RHEL 8 has glibc 2.28 and Linux 4.18. Only the shim uses the machine's libc; the libc of the tar says which Linux it needs.
newest() { grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1; }
of_shim=$(objdump -T "$work/mnt/tccl/lib/tccl/libtccl-nccl.so" | newest)
[ "$(printf '%s\nGLIBC_2.17\n' "$of_shim" | newest)" = GLIBC_2.17 ] || fail "the shim needs $of_shim"
linux=$(readelf -n "$work/mnt/tccl/lib/libc.so.6" | sed -n 's/.*OS: Linux, ABI: \([0-9.]*\)/\1/p')
[ -n "$linux" ] && [ "$(printf '%s\n4.18\n' "$linux" | sort -V | tail -n 1)" = 4.18 ] || fail "the tar's libc needs Linux ${linux:-?}"
echo "the shim needs $of_shim, the tar's libc Linux $linux"
for file in "$work"/mnt/tccl/libexec/*; do # nothing is taken from the machine
    "$work"/mnt/tccl/lib/ld-* --library-path "$work/mnt/tccl/lib" --list "$file" | grep -vE "vdso|=> $work/mnt/tccl/lib/|^[[:space:]]$work/mnt/tccl/lib/" &&
        fail "${file##*/} has libraries of the machine"
done
if [ -e "$build/testsuite/nccl/libnvidia-ml.so.1" ]; then # GPUs, by a stand-in for the driver's library
    mkdir "$work/mnt/driver"
    cp "$build/testsuite/nccl/libnvidia-ml.so.1" "$work/mnt/driver/"
    "$root/testsuite/nccl/describe-machine" "$model" "$work/machine"
    cp "$work/machine/devices" "$work/mnt/"
fi
cp "$model" "$work/mnt/"
chmod -R a+rX "$work/mnt"
chmod 755 "$work"

cat >"$work/mnt/job" <<'JOB'
set -e
export HOME=/tmp/home
mkdir $HOME
bin=/mnt/tccl/bin
fail() { echo "FAILED: $*"; exit 1; }
for program in tccl-run tccl-profile tccl-check tcclacct; do $bin/$program --version >/dev/null || fail $program; done
$bin/tccl-check machine | head -n 1
$bin/tccl-profile run -q --model /mnt/amd-4gpu.json >/dev/null || fail "a profile"
$bin/tccl-run sh -c 'exit 5' 2>/tmp/said && fail "a status of 5 is 0" || [ $? = 5 ] || fail "the command's status"
grep -q "^tccl: no ring: no libnvidia-ml.so.1" /tmp/said || fail "no GPU: $(cat /tmp/said)"
[ -d /mnt/driver ] || { echo "left out: no stand-in for a driver"; exit 0; }
export LD_LIBRARY_PATH=/mnt/driver TCCL_RIG_DEVICES=/mnt/devices
$bin/tccl-run sh -c 'test "$TCCL_STATE" = planned && grep -q libtccl-nccl.so /proc/self/maps' 2>/tmp/said || fail "no ring: $(cat /tmp/said)"
cat /tmp/said
for try in 1 2 3 4 5 6 7 8 9 10; do
    records=$($bin/tcclacct -f $HOME/.local/state/tccl/records.db -nP -o JobName,State) || fail "the records can't be read"
    [ -z "$records" ] || break
    sleep 1
done
[ "$records" = "sh|planned" ] || fail "the record: $records"
for try in 1 2 3 4 5 6 7 8 9 10; do ls /tmp | grep tccl-run >/dev/null || break; sleep 1; done
! ls -d /tmp/tccl-run.* /dev/shm/tccl-* 2>/dev/null || fail "something is left"
JOB

tree_of() { # SUITE: a clean tree, kept for the next time
    local suite=$1 from
    [ ! -e "$store/root-$suite" ] || { echo "$store/root-$suite"; return; }
    command -v debootstrap >/dev/null || return
    from=$(mirror)
    mkdir -p "$store" && exec 9>"$store/root.lock" && flock 9
    if [ ! -e "$store/root-$suite" ]; then
        in_time debootstrap --variant=minbase "$suite" "$work/$suite" "$from" >"$work/log" 2>&1 || return 0
        mv -T "$work/$suite" "$store/root-$suite"
    fi
    exec 9>&-
    echo "$store/root-$suite"
}

tried=
for suite in bullseye bookworm trixie; do
    tree=$(tree_of $suite)
    [ -n "$tree" ] || { echo "left out: no tree of $suite"; continue; }
    echo "== $suite: $(chroot "$tree" ldd --version | head -n 1)"
    unshare --mount --propagation private --pid --fork --kill-child bash -e -c '
        mount -t tmpfs tmpfs "$1/mnt"; mount --bind "$2" "$1/mnt"; mount -t proc proc "$1/proc"; mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
        mount -t tmpfs -o mode=755 tmpfs "$1/dev"; mknod -m 666 "$1/dev/null" c 1 3; mkdir -m 1777 "$1/dev/shm"
        exec chroot --userspec=12345:12345 "$1" /bin/sh /mnt/job' bash "$tree" "$work/mnt" || fail "$suite: status $?"
    tried+=" $suite"
done
[ -n "$tried" ] || skip "no tree of Debian can be had"
