#!/bin/bash
# MetricsFile: written whole, read by node_exporter and by a strict OpenMetrics parser; its numbers are those
# of the steps that ran; it follows tccl.conf on a reload, and goes with tccld. Every name in the Grafana
# dashboard is in it.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

# Debian's package is for Debian's python3, which need not be the first in PATH.
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import prometheus_client' 2>/dev/null; then python=$candidate; fi
done
[ -n "$python" ] || skip "python3-prometheus-client is not installed"
command -v prometheus-node-exporter >/dev/null || skip "prometheus-node-exporter is not installed"

reload() {
    local lock
    for lock in "$cluster"/nodes/n[1-4]/tccld.sock.lock; do kill -HUP "$(cat "$lock")"; done
}
cp "$cluster/tccl.conf" "$cluster/tccl.conf.before"
at_end+=("mv $cluster/tccl.conf.before $cluster/tccl.conf; reload")
configure() { # FOLDER: becomes tccld's
    mkdir -p "$1"
    chown "$tccld_user" "$1"
    { cat "$cluster/tccl.conf.before"; printf '[tccl]\nMetricsFile=%s/%%n.prom\n' "$1"; } >"$cluster/tccl.conf.new"
    mv "$cluster/tccl.conf.new" "$cluster/tccl.conf"
    reload
}

value() { # NODE SAMPLE
    awk -v sample="$2" '$1 == sample { print $2 }' "$folder/$1.prom"
}
# Sums over the numbers that a strict reader finds: NAME LABEL=VALUE...
parsed() { # NODE NAME [LABEL=VALUE]...
    "$python" - "$folder/$1.prom" "${@:2}" <<'PYTHON'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
from prometheus_client.parser import text_string_to_metric_families as old
text = open(sys.argv[1]).read()
wanted = dict(word.split("=", 1) for word in sys.argv[3:])
def total(parser):
    return sum(sample.value for family in parser(text) for sample in family.samples
               if sample.name == sys.argv[2] and wanted.items() <= sample.labels.items())
assert total(strict) == total(old), "the two formats disagree"
print("%g" % total(strict))
PYTHON
}
changed() { # NODE NAME [LABEL=VALUE]... NOT-VALUE
    [ "$(parsed "${@:1:$#-1}")" != "${!#}" ]
}

folder=$work/first
configure "$folder"
for node in n1 n2 n3 n4; do eventually "$node writes its file" test -s "$folder/$node.prom"; done
equal "mode of the file" "$(stat -c %a "$folder/n1.prom")" 644
declare -A before
for sample in 'tccl_joins_total mode=on' 'tccl_joins_total mode=off' 'tccl_answers_total state=planned' \
    'tccl_answers_total state=failed' 'tccl_failures_total' 'tccl_wait_seconds_count' 'tccl_gain_ratio_count' \
    'tccl_rings_count' 'tccl_rings_sum'; do
    before[$sample]=$(parsed n2 $sample)
done
gains=$(parsed n2 tccl_gain_ratio_sum)
more() { # SAMPLE NUMBER
    equal "n2: $1" "$(($(parsed n2 $1) - ${before[$1]}))" "$2"
}

# One ring over two nodes, one that failed (n3 is away), one step that wants none.
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 2
rings=$(values TCCL_RING | sed 's/].*/]/' | tr -dc '|]' | wc -c) # a chain for each of them at the first node
gbps=$(values TCCL_GBPS) baseline=$(values TCCL_BASELINE_GBPS)
mini stop-tccld n3
at_end+=("mini start-tccld n3 || true")
eventually "the file of a tccld that has ended is gone" test ! -e "$folder/n3.prom"
srun_show -w n2,n3 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
no_ring 2 '*'
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=off
mini start-tccld n3
eventually "n2 counts the last step" changed n2 tccl_joins_total mode=off "${before["tccl_joins_total mode=off"]}"
cat "$folder/n2.prom"
more 'tccl_joins_total mode=on' 2
more 'tccl_joins_total mode=off' 1
more 'tccl_answers_total state=planned' 1
more 'tccl_answers_total state=failed' 1
more 'tccl_failures_total' 1
more 'tccl_wait_seconds_count' 2
more 'tccl_gain_ratio_count' 1
more 'tccl_rings_count' 1
more 'tccl_rings_sum' "$rings"
# Counted since its start, n3 has only seen what came after that.
eventually "n3 writes again" test -s "$folder/n3.prom"
equal "n3: joins" "$(parsed n3 tccl_joins_total)" 0
python3 - "$gbps" "$baseline" "$gains" "$(parsed n2 tccl_gain_ratio_sum)" <<'PYTHON'
import sys
gbps, baseline, before, after = map(float, sys.argv[1:])
assert abs(gbps / baseline - (after - before)) < 0.02, (gbps, baseline, before, after)
PYTHON

# The profile's numbers are those that tccl-profile shows.
equal "profile" "$(value n1 tccl_profile)" 1
tables=$(find "$(readlink -f "$cluster/nodes/n1/kind")"/cache/*/chains -name '*.chains' | wc -l)
equal "GPU sets" "$(parsed n1 tccl_profile_gpu_sets source=model)" "$tables"
equal "noisy loads" "$(parsed n1 tccl_profile_noisy_loads)" 0

# node_exporter takes it.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus-node-exporter --collector.disable-defaults --collector.textfile \
    --collector.textfile.directory="$folder" --web.listen-address="127.0.0.1:$port" >"$work/exporter" 2>&1 &
exporter=$!
at_end+=("kill $exporter 2>/dev/null || true")
scrape() {
    python3 -c 'import sys, urllib.request
open(sys.argv[2], "wb").write(urllib.request.urlopen("http://127.0.0.1:" + sys.argv[1] + "/metrics", timeout=10).read())' "$port" "$work/scraped"
}
# It shows one file of a folder with the same series in all: here that of n2.
rm "$folder"/n[134].prom
eventually "node_exporter answers" scrape
grep -m 5 -E 'node_textfile_scrape_error|tccl_' "$work/scraped"
equal "errors of node_exporter" "$(awk '$1 == "node_textfile_scrape_error" { print $2 }' "$work/scraped")" 0
matches "scraped" "$(grep -c '^tccl_' "$work/scraped")" '1[0-9][0-9]'

# Every name in the dashboard's questions is in the file.
python3 - "$root/contrib/grafana/tccl.json" "$folder/n2.prom" <<'PYTHON'
import json, re, sys
asked = set()
def walk(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "definition"):
                asked.update(re.findall(r"\btccl_\w+", value))
            walk(value)
    elif isinstance(node, list):
        for value in node:
            walk(value)
walk(json.load(open(sys.argv[1])))
there = {re.split(r"[{ ]", line)[0] for line in open(sys.argv[2]) if line[0] != "#"}
# A profile from a model was never measured, and has no age.
missing = asked - there - {"tccl_profile_age_seconds"}
assert len(asked) > 8, asked
assert not missing, f"the dashboard asks for {missing}"
PYTHON

# As with the unit: a folder that nobody may list, and a link in node_exporter's own.
configure "$work/state/metrics"
chmod 711 "$work/state" "$work/state/metrics"
eventually "n2 writes there" test -s "$work/state/metrics/n2.prom"
rm -f "$folder"/*.prom
ln -s "$work/state/metrics/n2.prom" "$folder/tccl.prom"
eventually "node_exporter answers" scrape
equal "errors of node_exporter by link" "$(awk '$1 == "node_textfile_scrape_error" { print $2 }' "$work/scraped")" 0
matches "scraped by link" "$(grep -c '^tccl_' "$work/scraped")" '1[0-9][0-9]'
rm "$folder/tccl.prom"

# Where it can't be written: one line, however long, and a fail in tccl-check; one line when it is written again.
check n2 --only daemon
item daemon ok '*'
log=$cluster/log/tccld@n2.out
lines() { grep -c "MetricsFile: .*$1" "$log" || true; }
mv "$work/state/metrics" "$work/state/away"
eventually "n2 says that it can't write" grep -q 'MetricsFile: .*without another line' "$log"
sleep 12
equal "lines about it" "$(lines 'without another line')" 1
check n2 --only daemon
item daemon fail '*MetricsFile=*state/metrics/n2.prom*: see tccld*log*'
mv "$work/state/away" "$work/state/metrics"
eventually "n2 says that it can" grep -q 'MetricsFile: .*is written again' "$log"
check n2 --only daemon
item daemon ok '*'

# A reload takes it to another place; without it nothing is written.
configure "$work/second"
eventually "the file follows tccl.conf" test -s "$work/second/n2.prom"
eventually "the old one is gone" test ! -e "$folder/n2.prom"
cp "$cluster/tccl.conf.before" "$cluster/tccl.conf.new"
mv "$cluster/tccl.conf.new" "$cluster/tccl.conf"
reload
eventually "no file is wanted" test ! -e "$work/second/n2.prom"

# A folder that is not there: said in the log, steps go on.
{ cat "$cluster/tccl.conf.before"; printf '[tccl]\nMetricsFile=%s/none/x.prom\n' "$work"; } >"$cluster/tccl.conf.new"
mv "$cluster/tccl.conf.new" "$cluster/tccl.conf"
reload
complained() { grep -q "MetricsFile: .*none/x.prom" "$cluster"/log/tccld@n1*; }
eventually "tccld says that it can't be written" complained
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 2
