#!/bin/bash
# What tccld plans on random machines, and chains by chance that the product takes for buildable, NCCL builds edge by edge
# and NIC by NIC. More: check-plans FOLDER --random 100.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"

"$here/check-plans" "$work" --random 2 --chains 2 --shim 5 --most-gpus 3 || no_ring $? "NCCL does not build what is planned"
