#!/bin/bash
# Where trees are fetched from: apt's mirror, without a / at its end whether apt has one there or not.
# level: quick
. "$(dirname "$0")/lib.sh"

# apt-get, as far as it is asked: prints the URIs, one a line.
apt_knows() { # URI...
    printf '#!/bin/sh\n[ "$1" = indextargets ] || exit 1\n' >"$work/apt-get"
    [ $# = 0 ] || printf 'echo %s\n' "$@" >>"$work/apt-get"
    chmod 755 "$work/apt-get"
}

expect() { # URI
    local found
    found=$(PATH=$work:$PATH mirror)
    [ "$found" = "$1" ] || fail "the mirror is '$found', expected '$1'"
}

apt_knows http://mirror.example/debian/
expect http://mirror.example/debian
apt_knows http://mirror.example/debian
expect http://mirror.example/debian
apt_knows https://user:word@mirror.example/a/b// http://z.example/debian/
expect http://z.example/debian
apt_knows http://z.example/debian/ http://a.example/debian/ http://a.example/debian/
expect http://a.example/debian
apt_knows
expect ""
