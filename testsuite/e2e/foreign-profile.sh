#!/bin/bash
# A folder with the right name that holds another machine's profile is not served.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

folder=$(dirname "$(find "$cluster/nodes/n2/cache" -name profile.json)")
other=$(dirname "$(find "$cluster/nodes/n3/cache" -name profile.json)")
cp -a "$folder" "$work/profile"
at_end+=("rm -rf $folder; cp -a $work/profile $folder")
rm -rf "$folder"
cp -a "$other" "$folder"
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
no_ring 2 '*another machine*'
