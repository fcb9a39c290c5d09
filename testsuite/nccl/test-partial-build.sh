#!/bin/bash
# The rig from a build folder in which only some programs were built, as contrib/demo leaves it: what is missing is built.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/base.sh"

meson setup "$work/build" "$root" >"$work/setup" 2>&1 || { tail -n 20 "$work/setup"; fail "meson setup"; }
rig=$(TCCL_BUILD=$work/build "$here/rig" 2>"$work/said") || { tail -n 20 "$work/said"; fail "no rig"; }
[ -x "$rig/ring-probe" ] || fail "$rig has no ring-probe"
[ -z "$(find "$rig" -xtype l)" ] || fail "missing: $(find "$rig" -xtype l | xargs)"
! ldd "$rig/ring-probe" | grep 'not found' || fail "ring-probe lacks a library"
