#!/bin/bash
# Several rings at once are built by all nodes of a step or by none, as real tccld agree: else NCCL's table of algorithms and
# protocols would have ring and tree slower than alone, on all nodes (it takes the least of channels and of speeds, each by itself).
# A node that stands aside by a setting of its user's, one whose tccld is killed or stopped: the table of each rank is NCCL's own, the
# rings are the first ones, the init goes on at once, or after a second, once in a step. In cuMem mode.
# level: all
# memory: much
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"
export TCCL_NCCL=${TCCL_NCCL:-2.27.7} # reads a graph file in no time
"$here/get-nccl" --built "$TCCL_NCCL" >/dev/null || export -n TCCL_NCCL=
