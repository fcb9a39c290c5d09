# base.sh: what all tests of this folder share. A test ends with 0, 77 (skipped, the reason is the
# last line), or anything else (failed).
set -Eeuo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export TCCL_BUILD=${TCCL_BUILD:-$root/build}

. "$here/probe-parts.sh"

work=$(mktemp -d /tmp/tccl-nccl.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM HUP INT

fail() {
    echo "FAILED: $*"
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}
