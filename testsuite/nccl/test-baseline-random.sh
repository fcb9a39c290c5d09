#!/bin/bash
# NCCL's own rings on random machines, on one node and on two, with all GPUs and with some, are those that we take for
# the baseline. More: check-baseline FOLDER --random 100.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$here/check-baseline" "$work" --random 3 --most-gpus 4 --subsets 1 || no_ring $? "NCCL chooses otherwise"
