#!/bin/bash
# ring-probe in a real Slurm, as a user would start it: four nodes, a task for each GPU, nothing set
# but the id that tells the nodes of one machine apart.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$UID" = 0 ] || { echo "skipped: not root"; exit 77; }
"$here/describe-machine" "$machines/intel-4gpu.json" "$work/machine"
cp -rL "$rig" "$work/rig"
chmod -R a+rX "$work"
mkdir -m 777 "$work/shared"

cat >"$work/cluster" <<CLUSTER
set -e
export TCCL_MINICLUSTER="$work/cluster-files" PATH="$here/../../contrib:\$PATH"
trap 'minicluster stop' EXIT
minicluster start --bare --nodes 4 --model intel-4gpu
cd "$work/shared"
minicluster run --as nobody -- \\
    env LD_LIBRARY_PATH="$work/rig/lib" TCCL_RIG_DEVICES="$work/machine/devices" NCCL_SOCKET_IFNAME=lo \\
    srun -N4 --ntasks-per-node=4 --gres=gpu:4 --overcommit \\
    sh -c 'NCCL_HOSTID=\$SLURMD_NODENAME exec "\$0" --edges' "$work/rig/ring-probe"
CLUSTER
# Slurm's programs, and so their tasks, find the model's machine.
"$here/on-machine" "$work/machine" -- bash "$work/cluster" >"$work/out" 2>&1 || fail "$(tail -n 20 "$work/out")"
grep -q '^ring-probe: comm 0, 16 ranks: ring 0 ' "$work/out" || fail "no ring: $(cat "$work/out")"
[ "$(grep -c '^ring-probe: comm 0, rank .* by SHM' "$work/out")" = 12 ] || fail "edges: $(cat "$work/out")"
[ "$(grep -c '^ring-probe: comm 0, rank .* by NET/IB' "$work/out")" = 4 ] || fail "hops: $(cat "$work/out")"
for node in n1 n2 n3 n4; do
    [ "$(grep -c "0000:.* on $node)" "$work/out")" = 4 ] || fail "ranks on $node: $(cat "$work/out")"
done
[ -z "$(ls "$work/shared")" ] || fail "files left: $(ls "$work/shared")"
