#!/bin/bash
# An altered and a truncated chain file, an altered description: no ring, and the reason names the
# file; other GPU sets go on working; the file put back, the ring is back.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

folder=$(dirname "$(find "$cluster/nodes/n2/cache" -name profile.json)")
table=$(find "$folder/chains" -name '0000000f*')
cp -a "$folder" "$work/profile"
at_end+=("rm -rf $folder; cp -a $work/profile $folder")
restore() {
    rm -rf "$folder"
    cp -a "$work/profile" "$folder"
}
falls_back() { # REASON-PATTERN
    srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    equal "exit status" "$status" 0
    no_ring 2 "$1"
    says "tccl: no ring: $1"
}
works() { # GPUS
    srun_show -w n1,n2 -N2 --gpus-per-node="$1" --ntasks-per-node=1 --tccl=on
    has_ring 2
}
works 4
python3 - "$table" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    data = bytearray(file.read())
    data[len(data) // 2] ^= 1
    file.seek(0)
    file.write(data)
PYTHON
falls_back '*0000000f*'
works 3
truncate -s -7 "$table"
falls_back '*0000000f*'
truncate -s 0 "$table"
falls_back '*0000000f*'
restore
works 4
truncate -s -3 "$folder/profile.json"
falls_back '*profile.json*'
restore
works 4
