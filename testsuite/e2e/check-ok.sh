#!/bin/bash
# tccl-check where all is well: each item ok, as root and as a user, of each node; --quiet says nothing;
# --json says the same. Without a node's name, one is chosen and said.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

all="config slurm node plugstack plugin loaded configless munge daemon accounting policy profile gpus machine shim nccl isolation peers"
for node in n1 n3; do
    check $node
    equal "exit status" "$status" 0
    equal "items" "$(awk '{ print $2 }' "$work/check" | xargs)" "$all"
    others_ok
done
item plugin ok '*spank_tccl.so; tccl-check is built for Slurm *'
item loaded ok '*srun --help shows --tccl; slurmd (pid *'
item daemon ok '*as n3*TCP*'
item profile ok "*$(basename "$(dirname "$(find "$cluster/nodes/n3/cache" -name profile.json)")")*all 15 GPU sets*"
item peers ok '4 of 4 answer'

user tccl-check --node n2 --timeout 60 >"$work/check" || fail "tccl-check as a user: $?"
others_ok
item loaded ok '*only root can see'
equal "lines with --quiet" "$(admin tccl-check --node n1 --timeout 60 --quiet --only config,daemon,peers)" ""
equal "lines without peers" "$(admin tccl-check --node n1 --timeout 60 --no-peers | grep -c peers)" 0
equal "one peer" "$(admin tccl-check --node n1 --timeout 60 --peers 'n[2-3]' --only peers | awk '{ $1 = $1; print }')" "ok peers 2 of 2 answer"
admin tccl-check --node n1 --timeout 60 --json | python3 -c '
import json, sys
found = json.load(sys.stdin)
assert found["level"] in ("ok", "warn"), found
assert " ".join(item["item"] for item in found["items"]) == sys.argv[1], found
assert all(item["level"] == "ok" or item["item"] in ("profile", "nccl") for item in found["items"]), found
assert all(item["text"] for item in found["items"]), found' "$all"
equal "tccld --check" "$(admin tccld --check 2>&1)" "tccl: tccld has no --check: run tccl-check, or tccld --check-config"

# All that a support request needs, for its owner alone; written whole, or not at all.
cp -p "$cluster/plugstack.conf" "$work/plugstack.conf" # with its time: slurmd is to look no older
printf 'optional /none/other.so password=hunter2\n#x\n' >>"$cluster/plugstack.conf"
matches "bundle" "$(admin tccl-check --node n1 --bundle "$work/bundle.tgz")" "tccl: $work/bundle.tgz: 18 files; *"
cp -p "$work/plugstack.conf" "$cluster/plugstack.conf"
equal "mode of the bundle" "$(stat -c %a "$work/bundle.tgz")" 600
equal "files in it" "$(tar -tzf "$work/bundle.tgz" | grep -vc '/$')" 18
tar -C "$work" -xzf "$work/bundle.tgz"
python3 - "$work/tccl-bundle" "$all" "$cluster/tccl.conf" <<'PYTHON'
import json, sys
folder, items, conf = sys.argv[1:]
found = json.load(open(f"{folder}/check.json"))
assert " ".join(item["item"] for item in found["items"]) == items, found
assert open(f"{folder}/tccl.conf").read() == open(conf).read()
plugstack = open(f"{folder}/plugstack.conf").read()
assert "spank_tccl.so" in plugstack and plugstack.endswith("optional /none/other.so *\n#x\n") and "hunter2" not in plugstack, plugstack
assert json.load(open(f"{folder}/profiles.json"))["profiles"]
assert json.load(open(f"{folder}/machine.json"))["gpus"]
assert json.load(open(f"{folder}/summary.json"))
assert open(f"{folder}/version-slurm.txt").read().startswith("slurm")
assert "not found" in open(f"{folder}/gpus.txt").read() or "NVIDIA" in open(f"{folder}/gpus.txt").read()
PYTHON
status=0
admin tccl-check --node n1 --bundle "$work/none/bundle.tgz" 2>"$work/err" || status=$?
equal "exit status without a folder" "$status" 1
matches "the reason" "$(cat "$work/err")" "tccl: --bundle: $work/none/bundle.tgz*"
user sh -c 'made=$(mktemp -d) && tccl-check --node n1 --bundle "$made/b.tgz" && rm -r "$made"' >/dev/null || fail "a user's bundle: $?"
equal "what is left in TMPDIR" "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'tccl-bundle.*' | wc -l)" 0

admin tccl-check --only node >"$work/check"
item node warn '4 nodes of slurm.conf are on host *n1*--node'
check n9 --only node
equal "exit status" "$status" 1
item node fail '*n9 is not in *'
for wrong in "--node ../x" "--peers n[1-" "--timeout 0" "--nonsense" "word"; do
    status=0
    admin tccl-check $wrong 2>"$work/err" || status=$?
    equal "exit status of $wrong" "$status" 2
done
status=0
admin tccl-check --only nonsense 2>"$work/err" || status=$?
equal "exit status of wrong usage" "$status" 2
matches "the reason" "$(cat "$work/err")" 'tccl: --only: no item "nonsense"*plugstack*'

# In a step the node is the step's.
user srun -w n4 -N1 tccl-check --only node >"$work/check"
item node ok 'n4 in Slurm*'
