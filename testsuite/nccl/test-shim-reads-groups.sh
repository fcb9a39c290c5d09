#!/bin/bash
# A step whose plan reads, with a real tccld, on a machine whose memories, and writes between GPUs, are slow: its groups' chains read, too, and so do
# communicators that are left alone.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"

python3 - "$machines/intel-4gpu.json" >"$work/slow-writes.json" <<'PYTHON'
import json, sys
model = json.load(open(sys.argv[1]))
model.update(name="slow-writes", rules=[], groups={}, resources=[
    {"name": f"{device} {way}", "gbps": 12, "users": [users]} for device in ["g0", "g1", "g2", "g3", "n0"]
    for way, users in [("out", f"{device}->*"), ("in", f"*->{device}")]] + [
    {"name": "memories", "gbps": 20, "users": ["*->m*", "m*->*"]}, {"name": "writes", "gbps": 4, "users": ["g*>g*"]}])
model["machine"]["p2p"] = True
print(json.dumps(model))
PYTHON

step "groups of a step that reads"
TCCL_CONF_LINES=MaxRings=1 joined_in_time "$work/slow-writes.json" -- "$(realpath --relative-to="$machines" "$work")/slow-writes" -- --comms 1 --subset 0-1 --subset 2-3 --subset 0-2
as_planned "comm 0"
grep -q "^chain .* -r> " "${plans[0]}" || fail "the plan does not read: $(cat "${plans[0]}")"
said "TCCL INFO .* of 2 ranks, 2 here: ring .* -r> .*" 2
said "communicators have P2P that (reads|writes)" 0
python3 - "$work/rings" <<'PYTHON' || fail "a connection by P2P writes"
import json, sys
ways = [edge["send"]["via"] for comm in json.load(open(sys.argv[1]))["comms"] for ring in comm["channels"] for edge in ring["edges"]]
p2p = [way for way in ways if way.startswith("P2P")]
sys.exit(not p2p or any("/read" not in way for way in p2p))
PYTHON
