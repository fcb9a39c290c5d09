# lib.sh: what the tests of packages share: clean trees of Debian, the packages built in them. A test ends
# with 0, 77 (skipped, the reason is the last line), or anything else (failed).
set -Eeuo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly root=$(cd "$here/../.." && pwd)
readonly store=${TCCL_TEST_STORE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tccl-test}
readonly node_packages="slurmctld slurmd slurm-client munge"
readonly fetch_until=1200 # seconds after the start: trees that are not there by then are not waited for

work=$(mktemp -d /tmp/tccl-packages.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 143' TERM HUP INT

fail() {
    echo "FAILED: $*"
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

# Ends as a part that ran in a subshell did.
give_up() { # STATUS OUTPUT
    echo "$2"
    exit "$1"
}

# Runs a command with its output in a log, which is shown if it fails.
quietly() { # WHAT COMMAND...
    local what=$1
    shift
    "$@" >"$work/log" 2>&1 </dev/null || { tail -n 25 "$work/log"; fail "$what"; }
}

# ---- trees -------------------------------------------------------------------------------------

# The mirror that apt takes Debian's packages from. Some refuse a second / in front of what is appended.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | sort -u | sed -n '1s,/*$,,p'
}

need_namespaces() {
    [ "$UID" = 0 ] || skip "only root can go into another root tree"
    unshare --mount --pid --net --uts --ipc --fork true 2>/dev/null || skip "no namespaces of its own can be had here (unshare)"
    command -v ip >/dev/null || skip "no ip (iproute2)"
}

build_packages() { # the Build-Depends, and what every build needs
    sed -n '/^Build-Depends:/,/^[A-Z].*:/{/^Build-Depends:/b name; /^[A-Z]/b; :name; s/^Build-Depends://; s/([^)]*)//g
        s/|.*//; s/,//g; s/debhelper-compat/debhelper/; p}' "$root/contrib/packaging/debian/control" | xargs
    echo build-essential
}

# Runs a command in a tree, as a machine of its own: processes, network, host name n1. Folders of this
# machine appear below /mnt in it, read-only: NAME=FOLDER. All of it is gone when the command ends.
inside() { # TREE [NAME=FOLDER]... -- COMMAND...
    unshare --mount --propagation private --pid --net --uts --ipc --fork --kill-child /bin/sh -c \
        'tree=$1 && shift && ip address add 192.0.2.1/32 dev lo && # Slurm resolves no wildcard where there is loopback only
            exec "$0" "$tree" n1 "$@"' "$here/enter" "$@"
}

in_time() { # COMMAND...: ended when there is no more time to fetch something
    local left=$((fetch_until - SECONDS))
    timeout --kill-after=5 $((left > 0 ? left : 1)) "$@"
}

apt_in() { # TREE COMMAND...: with this machine's network
    local tree=$1
    shift
    in_time unshare --mount --propagation private --pid --fork --kill-child /bin/sh -c \
        'mount -t proc proc "$0/proc" && tree=$0 && exec chroot "$tree" env -u TMPDIR DEBIAN_FRONTEND=noninteractive "$@"' "$tree" \
        apt-get -q -y --no-install-recommends -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 "$@"
}

# A node with Slurm and nothing of ours, and a copy of it in which packages are built.
make_trees() { # SUITE FOLDER
    local suite=$1 node=$2/node build=$2/build from
    command -v debootstrap >/dev/null || skip "no debootstrap"
    from=$(mirror)
    [ -n "$from" ] || skip "apt knows no mirror of Debian"
    # debootstrap waits a quarter of an hour for a mirror that does not answer.
    timeout 100 /usr/lib/apt/apt-helper -o Acquire::Retries=1 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
        download-file "$from/dists/$suite/Release" "$work/Release" >"$work/log" 2>&1 || {
        tail -n 3 "$work/log"
        skip "no tree of $suite: its mirror can't be reached"
    }
    in_time debootstrap --variant=minbase "$suite" "$node" "$from" >"$work/log" 2>&1 || {
        tail -n 3 "$work/log"
        skip "no tree of $suite: its mirror has none, or can't be reached, or is slow"
    }
    printf '#!/bin/sh\nexit 101\n' >"$node/usr/sbin/policy-rc.d"
    chmod 755 "$node/usr/sbin/policy-rc.d"
    echo force-unsafe-io >"$node/etc/dpkg/dpkg.cfg.d/test"
    apt_in "$node" install $node_packages >"$work/log" 2>&1 </dev/null || { tail -n 5 "$work/log"; skip "Slurm of $suite can't be installed"; }
    cp -a "$node" "$build" || skip "there is no room for a tree of $suite"
    apt_in "$build" install $(build_packages) >"$work/log" 2>&1 </dev/null || { tail -n 5 "$work/log"; skip "the Build-Depends can't be installed on $suite"; }
    apt_in "$node" clean
    chmod 755 "$node" "$build"
}

# The folder with both trees of a suite, kept for the next time.
trees_of() { # SUITE
    local suite=$1 wanted folder made status
    wanted=$(echo "$node_packages $(build_packages)" | sha256sum | cut -c 1-12)
    folder=$store/packages-$suite-$wanted
    mkdir -p "$store" 2>/dev/null || skip "there can be no $store"
    exec 9>"$store/packages.lock"
    in_time flock 9 || skip "another one still fetches trees"
    if [ ! -e "$folder" ]; then
        rm -rf --one-file-system "$store/packages-$suite"-* "$store"/packages-work.*
        made=$(mktemp -d "$store/packages-work.XXXXXX")
        (make_trees "$suite" "$made") || { status=$?; rm -rf --one-file-system "$made"; exit $status; }
        mv -T "$made" "$folder"
    fi
    flock -u 9
    echo "$folder"
}

# ---- packages ----------------------------------------------------------------------------------

# Builds in the suite's tree what is checked out here. A source that was built before is not built again.
packages_of() { # SUITE -> the folder with the .deb files
    local suite=$1 trees tarball sum out
    trees=$(trees_of "$suite") || give_up $? "$trees"
    "$root/contrib/package" tarball --out "$work" >/dev/null
    tarball=$(echo "$work"/slurm-tccl-*.tar.gz)
    sum=$(sha256sum <"$tarball" | cut -c 1-16)
    out=$trees/built-$sum
    if [ ! -e "$out" ]; then
        # Younger ones may be of a run that goes on.
        find "$trees" -maxdepth 1 -name 'built-*' -mmin +240 -exec rm -rf {} +
        rm -rf "$work/source" && mkdir "$work/source" && tar -C "$work/source" --strip-components=1 -xzf "$tarball"
        mkdir -p "$work/out"
        quietly "the packages can't be built on $suite" build_in "$trees/build" "$work/source" "$work/out"
        mv "$work/log" "$work/out/build.log"
        mv -T "$work/out" "$out.$$"
        mv -T "$out.$$" "$out" 2>/dev/null || rm -rf "$out.$$" # another run was faster
    fi
    touch "$out"
    echo "$out"
}

build_in() { # TREE SOURCE OUT
    unshare --mount --propagation private --net /bin/sh -c \
        'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && mount --bind "$1" "$0/srv" && mount --bind "$2" "$0/mnt" &&
            exec chroot "$0" env -u TMPDIR DEB_BUILD_OPTIONS=parallel=2 /srv/contrib/package deb --out /mnt' "$@"
}

# The same packages as a later version, in which a sample and a conffile changed.
later_packages() { # FROM TO
    local deb file tree
    mkdir -p "$2"
    for deb in "$1"/tccl*.deb; do
        case $deb in *-dbgsym_*) continue ;; esac
        tree=$work/unpacked
        rm -rf "$tree" && dpkg-deb -R "$deb" "$tree"
        sed -i 's/-1$/-2/; s/\((= [^)]*\)-1)/\1-2)/g' "$tree/DEBIAN/control"
        for file in usr/share/doc/tccl/examples/tccl.conf.sample etc/logrotate.d/tccld; do
            [ ! -e "$tree/$file" ] || echo "# later" >>"$tree/$file"
        done
        dpkg-deb --root-owner-group -b "$tree" "$2" >/dev/null
    done
}
