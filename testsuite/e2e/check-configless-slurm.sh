#!/bin/bash
# A real configless Slurm, in a /run of its own: programs that are sent the configuration, and a slurmd that
# was. A plugstack.conf with the line in it works; one that includes the line does not arrive whole, which
# tccl-check names.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

unshare -m mount -t tmpfs none /run 2>/dev/null || skip "needs a mount namespace"
[ ! -e /etc/slurm/slurm.conf ] || skip "needs a machine without /etc/slurm/slurm.conf"
own_cluster --nodes 1 --slurm-conf SlurmctldParameters=enable_configless
sed -i -e '/^PlugStackConfig=/d' -e "s|^SlurmdSpoolDir=.*|SlurmdSpoolDir=$work/spool-%n|" "$cluster/slurm.conf" # a folder of root's
admin scontrol reconfigure
kill "$(cat "$cluster/pid/slurmd@n1")"
eventually "slurmd's end" test ! -e "/proc/$(cat "$cluster/pid/slurmd@n1")"

# Runs a command where munge is at its usual place, nothing else is in /run, and no process of another
# cluster is seen.
cat >"$work/alone" <<'ALONE'
#!/bin/bash
mount --make-rprivate /
mount -t tmpfs -o mode=755 none /run
mkdir /run/munge
ln -s "$1/munge/socket" /run/munge/munge.socket.2
export TCCL_CONF=$1/tccl.conf PATH=$1/bin:$PATH
unset SLURM_CONF SLURM_CONF_SERVER
shift
exec "$@"
ALONE
server=127.0.0.1:$(sed -n 's/^SlurmctldPort=//p' "$cluster/slurm.conf")
alone() {
    unshare -m -p --fork --mount-proc bash "$work/alone" "$cluster" "$@"
}
look() { # COMMAND...
    status=0
    "$@" >"$work/check" || status=$?
    cat "$work/check"
}
# With a slurmd that asks slurmctld.
cat >"$work/with-slurmd" <<'WITH'
#!/bin/bash
setsid slurmd -D -N n1 --conf-server "$1" >"$2" 2>&1 &
slurmd=$!
trap 'kill $slurmd $tccld; wait $tccld' EXIT
for ((i = 0; i < 1200; i++)); do
    ! [ -e /run/slurm/conf/slurm.conf ] || ! grep -q "slurmd started" "$2" || break
    sleep 0.1
done
tccld --foreground --config "$TCCL_CONF" --node n1 2>>"$2" & # one that sees this slurmd
tccld=$!
for ((i = 0; i < 1200; i++)); do
    ! grep -q "slurmd lists" "$2" || break
    sleep 0.1
done
tccl-check --node n1 --timeout 60
WITH

look alone env SLURM_CONF_SERVER="$server" tccl-check --timeout 60 --no-peers
equal "exit status" "$status" 0
others_ok
item slurm ok '*slurmctld is asked'
item configless ok '*not what it includes: the line must be in it'
item loaded ok '*shows --tccl*'
mini stop-tccld n1
look alone bash "$work/with-slurmd" "$server" "$work/slurmd.log"
equal "exit status" "$status" 0
others_ok
item slurm ok '*/run/slurm/conf/slurm.conf (what slurmd got from slurmctld)'
item configless ok 'slurmctld hands out /run/slurm/conf/plugstack.conf with the line in it'

mkdir "$cluster/plugstack.conf.d"
mv "$cluster/plugstack.conf" "$cluster/plugstack.conf.d/tccl.conf"
echo "include plugstack.conf.d/*.conf" >"$cluster/plugstack.conf"
admin scontrol reconfigure
look alone env SLURM_CONF_SERVER="$server" tccl-check --timeout 60 --only loaded,configless
equal "exit status" "$status" 1
item loaded fail '*does not show --tccl*'
look alone bash "$work/with-slurmd" "$server" "$work/slurmd.log"
equal "exit status" "$status" 1
item configless fail '*not what it includes (/run/slurm/conf/plugstack.conf.d/\*.conf): write the line*scontrol reconfigure'
item plugstack fail '*no line for spank_tccl.so*'
item loaded fail '*does not show --tccl*'
item peers warn 'n1: Slurm has no plugin there*does not name spank_tccl.so'
others_ok configless plugstack plugin loaded peers

# As it was on the node itself, the includes are there.
check n1 --only plugstack,configless
item plugstack ok '*plugstack.conf.d/tccl.conf:1: optional*'
