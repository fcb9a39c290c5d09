#!/bin/bash
# What can be wrong with a node's profile and configuration: damaged chains, chains that are missing, none at
# all, another machine's, one of CPU cores; GPUs that Slurm counts otherwise; a mistake in tccl.conf. Each is
# named, with the way out, and all else stays ok.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

folder=$(dirname "$(find "$cluster/nodes/n2/cache" -name profile.json)")
machine=$cluster/nodes/n2/machine.json
conf=$cluster/tccl.conf
cp -a "$folder" "$work/profile"
cp -a "$machine" "$work/machine.json"
cp -a "$conf" "$work/tccl.conf"
restore() {
    rm -rf "$cluster/nodes/n2/cache"
    install -d -o "$tccld_user" "$cluster/nodes/n2/cache"
    cp -a "$work/profile" "$folder"
    cp -a "$work/machine.json" "$machine"
    cp -a "$work/tccl.conf" "$conf"
}
at_end+=(restore)
judged() { # STATUS ITEM...: that may not be ok
    check n2
    equal "exit status" "$status" "$1"
    shift
    others_ok "$@"
    restore
}

truncate -s -7 "$folder/chains/0000000f.chains"
judged 1 profile
item profile fail '*0000000f*: remove the file and run tccl-profile run*'

rm "$folder"/chains/0000000[3-7].chains
judged 0 profile
item profile warn 'chains for 10 of 15 GPU sets*tccl-profile run again'

rm "$folder"/chains/*
judged 1 profile
item profile fail '*no chains for any GPU set: run tccl-profile run'

mkdir "$work/turin" # a line of its file says that copies of two jobs collapse
"$build/profiler/tccl-profile" run -q --backend noisy --noise 0 --model "$models/turin-pex890.json" --cache "$work/turin" \
    --neighbours --splits 0-1/2-3
grep -m1 '"sides":."g0>g4","g1>g6"' "$work"/turin/*/together.jsonl >"$folder/together.jsonl"
judged 0
item profile ok '*1 pair of copies of two jobs collapse beside each other, such as g0>g4 g1>g6: *'

truncate -s -3 "$folder/profile.json"
judged 1 profile
item profile fail '*profile.json*'

rm "$folder/profile.json"
judged 1 profile
item profile fail "$folder/profile.json: can't be read: No such file*: run tccl-profile verify*"

# Copied by root, who can read it.
chown -R root "$folder"
chmod 700 "$folder"
judged 1 profile
item profile fail "tccld can't use it: $folder/*: *Permission denied*: make it readable*TccldUser="

chmod 700 "$cluster/nodes/n2/cache"
user tccl-check --node n2 --timeout 60 --only profile >"$work/check" || fail "what a user can't see is no failure"
item profile warn "*only another user can see this: look as root"
restore

rm -r "$folder"
judged 1 profile
item profile fail "no profile in $cluster/nodes/n2/cache: run tccl-profile run*"

# The description is another node's; the folder with the right name holds another's.
cp "$cluster/nodes/n3/machine.json" "$machine"
judged 1 profile
item profile fail "*has only profiles of others ($(basename "$folder"))*"

rm -r "$folder"
cp -a "$(dirname "$(find "$cluster/nodes/n3/cache" -name profile.json)")" "$folder"
judged 1 profile
item profile fail '*another machine*'

rm "$machine"
judged 1 profile gpus
item profile fail '*machine.json*tccl-profile init*'

# Cores in place of GPUs: this machine, found out anew; and one that it is not.
admin tccl-profile init --backend host --devices 2 --machine "$machine"
rm -r "$folder"
measure() {
    admin tccl-profile run --backend host --devices 2 --cache "$cluster/nodes/n2/cache" --budget 1 --window 2 --repeats 1 >"$work/log" 2>&1 ||
        { cat "$work/log"; fail "tccl-profile run"; }
}
measure
kernel="the kernel was 2.6.32 when it was measured, and is $(uname -r)"
sed -i "s/$(uname -r)/2.6.32/" "$cluster/nodes/n2/cache"/*/profile.json
check n2 --only profile
grep -qF "$kernel" "$work/check" || fail "another kernel is not seen"
matches "the advice" "$(cat "$work/check")" '*tccl-profile run --check*'
measure
check n2 --only profile
! grep -F "the kernel was" "$work/check" || fail "measuring does not take note of the kernel"
cp -a "$machine" "$work/host.json"
cp -a "$cluster/nodes/n2/cache" "$work/host"
judged 1 gpus profile
item gpus fail 'Slurm has 4, the machine 2 *tccl-profile init; GPU 2 *'
[[ $(awk '$2 == "profile"' "$work/check") != *another* ]] || fail "this machine is not known again"

python3 - "$work/host.json" "$machine" <<'PYTHON'
import json, sys
with open(sys.argv[1]) as file:
    machine = json.load(file)
machine["gpus"][0]["model"] += " II"
with open(sys.argv[2], "w") as file:
    json.dump(machine, file)
PYTHON
check n2 --only profile
item profile fail '*is a machine *, and *has only profiles of others*'
id=$(sed -nE 's/.* is a machine ([0-9a-f]+),.*/\1/p' "$work/check")
rm -r "$cluster/nodes/n2/cache"
cp -a "$work/host" "$cluster/nodes/n2/cache"
mv "$cluster/nodes/n2/cache/"* "$cluster/nodes/n2/cache/$id"
cp "$machine" "$cluster/nodes/n2/cache/$id/machine.json"
sed -i -E "s/(\"machine\": *\")[0-9a-f]+/\1$id/" "$cluster/nodes/n2/cache/$id/profile.json"
judged 1 gpus profile
item profile fail "*is of another machine ($id, this is *): run tccl-profile init*"

sed -i '3i Sockets=5' "$conf"
judged 1 config
item config fail "$conf:3: unknown key 'Sockets'*: correct it*"

sed -i 's/^Timeout=.*/Timeout=soon/' "$conf"
check n2
item config fail "$conf:*: Timeout=soon: *"
restore

sed -i '/^AccountingHost=/d' "$conf"
judged 0 accounting
item accounting warn 'AccountingHost= is not set*'

sed -i "s|^Shim=.*|Shim=$work/none.so|" "$conf"
judged 1 shim
item shim fail "Shim=$work/none.so: *"

# The plugin reads it as root, whoever may read it; tcclacct does not.
chmod 600 "$conf"
user tccl-check --node n2 --timeout 60 >"$work/check" || fail "what a user can't see is no failure"
item config warn '*chmod 644*'
item daemon warn "can't be told without $conf: *"
judged 0 config
item config warn "$conf is closed to other users*"
check n2 --config "$work/nothing" --only config,daemon
equal "exit status" "$status" 1
item config fail "$work/nothing: *"
item daemon fail "can't be told without $work/nothing: *"

# Users that tccld does not know, and so refuses the file.
sed -i '/^\[peers\]/i Admins=root,nosuchuser' "$conf"
line=$(grep -n '^Admins=' "$conf" | cut -d : -f 1)
admin tccld --node n2 --check-config 2>"$work/err" && fail "tccld takes an unknown admin"
matches "what tccld says" "$(cat "$work/err")" "tccl: $conf:$line: Admins=nosuchuser: there is no such user here"
judged 1 config
item config fail "$conf:$line: Admins=nosuchuser: there is no such user here: tccld does not start*"
sed -i 's/^SlurmUser=.*/SlurmUser=nosuchuser/' "$conf"
judged 0 config
item config warn "$conf:*: SlurmUser=nosuchuser: there is no such user here*"

# The shim, as users have it.
cp "$(sed -n 's/^Shim=//p' "$conf")" "$cluster/shim-copy.so"
at_end+=("rm -f $cluster/shim-copy.so")
chmod 600 "$cluster/shim-copy.so"
sed -i "s|^Shim=.*|Shim=$cluster/shim-copy.so|" "$conf"
judged 1 shim
item shim fail "$cluster/shim-copy.so is closed to other users*"

# The plugin reads another file than the tools.
cp "$conf" "$work/other.conf"
chmod 644 "$work/other.conf"
check n2 --config "$work/other.conf"
equal "exit status" "$status" 0
item config warn "the plugin reads $conf (*), this and the tools $work/other.conf*"
others_ok config

check n2
equal "exit status" "$status" 0
others_ok
