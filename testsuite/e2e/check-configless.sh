#!/bin/bash
# The layout of a node that gets its files from slurmctld (without one of Slurm's services for it): the
# plugstack.conf in the folder of copies includes what was not sent along. With the line in it, all is well.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

copies=$work/conf-cache
plugin=$cluster/build/spank/spank_tccl.so
mkdir "$copies"
cp "$cluster/cgroup.conf" "$cluster/gres.conf" "$copies"
sed "s|^PlugStackConfig=.*||" "$cluster/slurm.conf" >"$copies/slurm.conf"
look() {
    status=0
    SLURM_CONF=$copies/slurm.conf TCCL_CONF=$cluster/tccl.conf PATH=$cluster/bin:$PATH \
        tccl-check --node n1 --timeout 60 >"$work/check" || status=$?
    cat "$work/check"
}

echo 'include /etc/nowhere/plugstack.conf.d/*.conf' >"$copies/plugstack.conf"
look
equal "exit status" "$status" 1
item configless fail '*not what it includes (/etc/nowhere/plugstack.conf.d/\*.conf): write the line*into plugstack.conf itself*scontrol reconfigure'
item plugstack fail '*no line for spank_tccl.so*'
others_ok configless plugstack plugin loaded gpus

rm "$copies/plugstack.conf"
look
item configless fail '*no plugstack.conf*scontrol reconfigure'

echo "optional $plugin config=$cluster/tccl.conf" >"$copies/plugstack.conf"
look
equal "exit status" "$status" 0
item configless ok '*with the line in it'
item gpus ok '4, as Slurm has them' # as tccld says, whose slurmd has the other file
others_ok loaded # the slurmd here has the other file
