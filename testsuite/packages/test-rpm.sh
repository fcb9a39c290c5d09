#!/bin/bash
# RPMs, as far as they can be had on Debian: the spec builds, what is in its packages is what meson installs,
# the plugin asks for the Slurm that it was built for, and their scripts lay and remove what they should, in a tree of Debian's.
# No Fedora or RHEL is tried here.
# level: all
. "$(dirname "$0")/lib.sh"
. "$here/hosts.sh"

command -v rpmbuild >/dev/null || skip "no rpmbuild (package rpm)"
release=$(dpkg-query -W -f '${Version}' libslurm-dev 2>/dev/null | sed -n 's/^\([0-9]*\.[0-9]*\).*/\1/p')
[ -n "$release" ] || skip "no libslurm-dev"

# Debian's rpm knows none of the packages: all that is missing is said at once, slurm-devel too.
said=$("$root/contrib/package" rpm --out "$work/none" 2>&1) && fail "RPMs are built without what they need"
for one in gcc "meson >= 1.0" "pkgconfig(sqlite3)" slurm-devel; do
    [[ $said = *"$one is needed by slurm-tccl-"* ]] || fail "$one is missing, and not named: $said"
done

# systemd's macros are those of Fedora 33 and RHEL 8, in short: Debian has none.
build() { # OUT OPTION... -- OPTION...
    local out=$1
    shift
    quietly "the RPMs can't be built" env TCCL_MESON_OPTIONS=-Dcuda=disabled "$root/contrib/package" rpm --out "$out" "$@" --nodeps --noclean \
        --define "_builddir $work/build" --define "systemd_post() [ \$1 != 1 ] || systemctl --no-reload preset %*" \
        --define "systemd_preun() [ \$1 != 0 ] || systemctl --no-reload disable --now %*" \
        --define "systemd_postun_with_restart() [ \$1 = 0 ] || systemctl try-restart %*"
}
mkdir "$work/build"
build "$work/rpm" -- --define "slurm_release $release"
! grep 'warning: .*\[-W' "$work/log" || fail "the compiler warns"

# With the paths of this machine's rpm in the place of meson's.
listed() {
    sed -e "s,^/usr/LIBDIR/slurm-wlm/,$(rpm --eval '%_libdir')/slurm/," -e "s,^/usr/LIBDIR/,$(rpm --eval '%_libdir')/," \
        -e '/i386-linux-gnu/d; s,^/usr/lib32/,/usr/lib/,; s,/tccl/libtccl-nccl,/tccl/package/libtccl-nccl,' "$root/testsuite/install.list"
}
for package in "$work"/rpm/tccl*.rpm; do
    rpm -qlp "$package" 2>/dev/null
done | grep -v '/licenses/\|/\.build-id\|^/usr/share/doc/tccl-\|(contains no files)' | sed '/\/man\//s/\.gz$//' | sort >"$work/files"
# Folders are listed too; a file is in one package only.
[ -z "$(uniq -d "$work/files")" ] || fail "in two packages: $(uniq -d "$work/files")"
listed | sort | comm -23 - "$work/files" >"$work/missing"
[ ! -s "$work/missing" ] || fail "in no package: $(cat "$work/missing")"
rpm -qp --requires "$work"/rpm/tccl-slurm-plugin-*.rpm 2>/dev/null | grep '^slurm(' | sort | xargs
[ "$(rpm -qp --requires "$work"/rpm/tccl-slurm-plugin-*.rpm 2>/dev/null | grep -c "^slurm.* $release")" = 2 ] || fail "the plugin asks for no Slurm"
! rpm -qp --requires "$work"/rpm/tccl-runtime-*.rpm 2>/dev/null | grep -v '^lib\(c\|dl\)\.so\|^rpmlib\|^rtld\|^/bin/sh$' || fail "the runtime needs more than libc"
[ "$(rpm -qp --configfiles "$work"/rpm/tccld-*.rpm 2>/dev/null)" = /etc/logrotate.d/tccld ] || fail "configuration of tccld"
! rpm -qp --requires "$work"/rpm/tccl-tools-*.rpm 2>/dev/null | grep python || fail "the tools need what a sample runs"

# The same as a later version, of what is compiled already, and for a Slurm that is no package.
build "$work/later" -- --noprep --define "slurm_release $release" --define "dist .2"
mkdir -p "$work/opt/include" "$work/opt/lib/slurm"
ln -s /usr/include/slurm "$work/opt/include/slurm"
rm -rf "$work/build"/*/build-rpm/meson-private/coredata.dat
CFLAGS=-O0 build "$work/foreign" --slurm "$work/opt" -- --noprep
rpm -qlp "$work"/foreign/tccl-slurm-plugin-*.rpm 2>/dev/null | grep -x "$work/opt/lib/slurm/spank_tccl.so" >/dev/null || fail "where a Slurm without packages looks there is no plugin"
! rpm -qp --requires "$work"/foreign/tccl-slurm-plugin-*.rpm 2>/dev/null | grep '^slurm' || fail "a package of Slurm is asked for"

need_namespaces
need_hosts
trees=$(trees_of bookworm) || give_up $? "$trees"
mkdir "$work/hosts"
unshare --mount --propagation private --pid --net --uts --ipc --fork --kill-child "$here/rpm-scripts" "$work/hosts" "$work/rpm" "$work/later" "$trees/node"
