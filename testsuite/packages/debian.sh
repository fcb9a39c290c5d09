# debian.sh: the tests of Debian packages.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

try_on() { # SUITE OTHER
    local packages other trees
    need_namespaces
    packages=$(packages_of "$1") || give_up $? "$packages"
    other=$(packages_of "$2") || give_up $? "$other"
    trees=$(trees_of "$1")
    check_packages "$packages"
    later_packages "$packages" "$work/later"
    cp -a "$trees/node" "$work/tree"
    inside "$work/tree" packages="$packages" later="$work/later" other="$other" tests="$here" machines="$root/testsuite/machines" \
        archives="$trees/build/var/cache/apt/archives" -- /mnt/tests/on-node
}

# Without warnings of the compiler, and nothing that lintian calls an error.
check_packages() { # FOLDER
    ! grep 'warning: .*\[-W' "$1/build.log" || fail "the compiler warns"
    dpkg-deb -f "$1"/tccl-runtime_*.deb Depends | grep -x 'libc6 (>= 2\.[0-9]*)' >/dev/null ||
        fail "the runtime depends on more than libc: $(dpkg-deb -f "$1"/tccl-runtime_*.deb Depends)"
    if command -v lintian >/dev/null; then
        # It leaves files in TMPDIR.
        mkdir -p "$work/lintian-tmp"
        TMPDIR=$work/lintian-tmp lintian --allow-root --fail-on error "$1"/*.changes >"$work/lintian" 2>&1 || { cat "$work/lintian"; fail "lintian"; }
    else
        echo "no lintian here: not looked at by it"
    fi
}
