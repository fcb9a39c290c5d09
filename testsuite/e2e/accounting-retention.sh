#!/bin/bash
# KeepRecords=: what is older is removed, from the moment that the configuration is read again, and what
# arrives when it is too old is not kept.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
deliver() { # FIRST COUNT DAYS
    equal "records taken" "$(python3 "$here/tell.py" "$cluster" n1 records "$@")" "$2"
}
kept() { python3 "$here/launches.py" "$cluster" records n1 | sort -t. -n; }
count() { kept | wc -l; }
keep() { # VALUE: in tccl.conf, read again
    sed -i '/^KeepRecords=/d; s/^\[tccl\]$/&\nKeepRecords='"$1"/ "$cluster/tccl.conf"
    kill -HUP "$(cat "$cluster/pid/tccld@n1")"
}
log=$cluster/log/tccld@n1.out

deliver 1000 30 40
deliver 2000 20 5
deliver 3000 10 0
equal "records" "$(count)" 60
keep 30d
removed() { [ "$(count)" = 30 ]; }
eventually "no record older than 30 days" removed
equal "the first of them" "$(kept | head -n 1)" "2000.0 planned"
said() { grep -q 'removed 30 records older than KeepRecords=30d' "$log"; }
eventually "a line about it" said

deliver 4000 5 40
equal "records, after some that were late" "$(count)" 30
grep -q 'older than KeepRecords=30d when it was delivered' "$log" || fail "nothing was said of late records"
deliver 5000 5 29
equal "records, after some that were not" "$(count)" 35

mini stop-tccld n1 # 31 days later, so to say
sed -i 's/^KeepRecords=.*/KeepRecords=3d/' "$cluster/tccl.conf"
mini start-tccld n1
removed() { [ "$(count)" = 10 ]; }
eventually "no record older than 3 days" removed
keep forever
deliver 6000 5 4000
equal "records, kept for ever" "$(count)" 15
