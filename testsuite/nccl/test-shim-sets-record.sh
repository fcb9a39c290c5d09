#!/bin/bash
# A step with several rings at once of which one node stands aside, whose NCCL has a channel for one ring: the other node builds the
# first one, and record and tcclacct say so, and why.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"
[ -x "$TCCL_BUILD/spank/tcclacct" ] || { echo "skipped: the build has no tcclacct"; exit 77; }

step "one node of two stands aside"
TCCL_CONF_LINES=MaxRings=8 joined amd-4gpu amd-4gpu -- amd-4gpu --nodes 2 --at 4:NCCL_TOPO_FILE=/nowhere
"$here/compare-plan" "$work/rings" "comm 0" "${plans[0]}" - --first 1 || { show_log; fail "not the first ring"; }
said "TCCL WARN communicator .*: built in part: 1 of [2-8] rings: NCCL has no channels for more" 1
built fewer
reason="n2: the user has set [^|]* \(1 of 2 nodes left the plan alone\); n1: 1 of [2-8] rings: NCCL has no channels for more \(1 of 2 nodes\)"
grep -qE "^partial\|fewer\|$reason\$" "$step_folder/tcclacct" || fail "tcclacct says $(cat "$step_folder/tcclacct"), not $reason"
