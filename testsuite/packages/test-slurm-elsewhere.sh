#!/bin/bash
# Debian packages for another Slurm than Debian's: one in /usr/local that is no package, and SchedMD's own packages. What is
# missing is said at once, without Debian's Slurm where that is not wanted.
# level: all
. "$(dirname "$0")/lib.sh"

# What the plugin's package depends on, where dpkg knows such packages: NAME STATUS VERSION, one a line.
relation() { # LINES
    printf '%s\n' "$1" >"$work/known"
    printf '#!/bin/sh\nfor name; do :; done\nawk -v name="$name" '\''$1 == name { print $2, $3; found = 1 } END { exit !found }'\'' "%s"\n' "$work/known" >"$work/dpkg-query"
    chmod 755 "$work/dpkg-query"
    PATH=$work:$PATH "$root/contrib/packaging/debian/slurm-release" 2>&1
}

expect() { # LINES RELATION
    local said
    said=$(relation "$1") || true
    [ "$said" = "$2" ] || fail "with $1 the plugin depends on \"$said\", not on \"$2\""
}

expect "libslurm-dev installed 24.11.5" "slurm-wlm-basic-plugins (>= 24.11), slurm-wlm-basic-plugins (<< 24.12~)"
expect "slurm-smd-dev installed 25.05.0" "slurm-smd (>= 25.05), slurm-smd (<< 25.06~)"
expect $'libslurm-dev not-installed \nslurm-smd-dev installed 23.09.1' "slurm-smd (>= 23.09), slurm-smd (<< 23.10~)"
expect "libslurm-dev not-installed " "slurm-release: no version of libslurm-dev or slurm-smd-dev"

# A machine without some programs: what contrib/package says.
lacks() { # PROGRAM... -- OPTION...
    rm -rf "$work/bin"
    mkdir "$work/bin"
    ln -s /usr/bin/* "$work/bin"
    while [ "$1" != -- ]; do rm -f "$work/bin/$1"; shift; done
    shift
    said=$(PATH=$work/bin "$root/contrib/package" "$@" --out "$work/none" 2>&1) && fail "contrib/package $* works without them"
    said=${said#tccl: package: }
}

mkdir -p "$work/opt/include/slurm" "$work/opt/lib/slurm"
touch "$work/opt/include/slurm/spank.h"
all="debhelper meson pkgconf libevent-dev libhwloc-dev libibverbs-dev libinih-dev libjansson-dev libmunge-dev libnuma-dev"
lacks dpkg-buildpackage -- deb
[ "$said" = "packages are missing: apt-get install build-essential $all libslurm-dev libsqlite3-dev libxxhash-dev" ] || fail "without dpkg-buildpackage: $said"
lacks dpkg-buildpackage -- deb --slurm "$work/opt"
[ "$said" = "packages are missing: apt-get install build-essential $all libsqlite3-dev libxxhash-dev" ] || fail "without dpkg-buildpackage, for another Slurm: $said"
lacks rpmbuild -- rpm
[[ $said = "no rpmbuild: dnf install rpm-build, then dnf builddep contrib/"* ]] || fail "without rpmbuild: $said"
[ ! -e "$work/none" ] || [ -z "$(ls "$work/none")" ] || fail "something was made"

need_namespaces
trees=$(trees_of bookworm) || give_up $? "$trees"
mkdir "$work/source" "$work/out"
"$root/contrib/package" tarball --out "$work" >/dev/null
tar -C "$work/source" --strip-components=1 -xzf "$work"/slurm-tccl-*.tar.gz
quietly "the packages can't be built for a Slurm in /usr/local" unshare --mount --propagation private --net /bin/sh -c \
    'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && mount -t tmpfs tmpfs "$0/usr/local" && mount --bind "$1" "$0/srv" &&
        mount --bind "$2" "$0/mnt" && mkdir -p "$0/usr/local/include" "$0/usr/local/lib/slurm" && ln -s /usr/include/slurm "$0/usr/local/include/slurm" &&
        exec chroot "$0" env -u TMPDIR DEB_BUILD_OPTIONS="parallel=2 noopt" /srv/contrib/package deb --out /mnt --slurm /usr/local' \
    "$trees/build" "$work/source" "$work/out"
plugin=$(echo "$work"/out/tccl-slurm-plugin_*.deb)
dpkg-deb -c "$plugin" >"$work/files"
grep -q ' \./usr/local/lib/slurm/spank_tccl.so$' "$work/files" || fail "the plugin is not where this Slurm looks: $(cat "$work/files")"
! dpkg-deb -f "$plugin" Depends | grep slurm-wlm || fail "a package of Slurm is asked for"
echo "depends: $(dpkg-deb -f "$plugin" Depends)"
