#!/bin/bash
# On machines that people posted the rig's NCCL builds what pathfind/nccl foretells: a third voice.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$here/check-posted" "$work" --rig || no_ring $? "NCCL chooses otherwise"
