#!/bin/bash
# What NCCL printed on machines that people posted is what pathfind/nccl foretells there, but for what is explained.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/base.sh"

"$here/check-posted" "$work" || fail "a posted machine differs without a reason"
