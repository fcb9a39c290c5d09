#!/bin/bash
# Whatever succeeds without the shim succeeds with it, and what it leaves alone has the same settings, transports, memory and
# table: communicators at random, in cuMem mode and the older one (check-room). And 52 communicators of an NCCL that the shim
# does not know fill no /dev/shm.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$(id -u)" = 0 ] || skip "only root can have a /dev/shm of its own size"
[ -z "${TCCL_NCCL:-}" ] || skip "with the rig's own NCCL"
"$here/check-room" --unknown
"$here/check-room" --rounds "${TCCL_ROUNDS:-4}"
