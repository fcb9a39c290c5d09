#!/bin/bash
# SUMMARY over both sockets: all steps for root, their own for users, whatever they ask for; and a filter
# that makes no sense is refused.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
nobody=$(id -u nobody)
python3 "$here/tell.py" "$cluster" n1 records 100 7 1 >/dev/null
python3 "$here/tell.py" "$cluster" n1 records 200 3 1 "$nobody" >/dev/null
python3 "$here/tell.py" "$cluster" n1 records 300 2 9 "$nobody" >/dev/null

steps() { # OPTION... [FILTER]
    python3 "$here/tell.py" "$cluster" n1 summary "$@" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["summary"]["steps"])'
}
for over in unix tcp; do
    equal "steps, $over" "$(steps --over "$over")" 12
    equal "nobody's steps, $over" "$(steps --over "$over" --as nobody)" 5
    equal "steps that root asks for, $over" "$(steps --over "$over" "{\"filter\": {\"users\": [$nobody]}}")" 5
    equal "root's steps for nobody, $over" "$(steps --over "$over" --as nobody '{"filter": {"users": [0]}}')" 0
    since=$(($(date +%s) - 3 * 86400))
    equal "nobody's since then, $over" "$(steps --over "$over" --as nobody "{\"filter\": {\"start\": $since}}")" 3
    answer=$(python3 "$here/tell.py" "$cluster" n1 summary --over "$over" '{"filter": {"users": "all"}}')
    matches "the answer to nonsense, $over" "$answer" '*"type": "error"*users must be a list*'
done
answer=$(python3 "$here/tell.py" "$cluster" n1 summary)
matches "gain and nodes" "$answer" '*"gain_median": 2.0*"node": "n1", "steps": 12, "share": 1.0*'
