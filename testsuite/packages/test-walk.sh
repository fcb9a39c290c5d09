#!/bin/bash
# An administrator's first day, by README.md alone: Slurm's head, a login node and two compute nodes of Debian 13, each a
# machine of its own; packages by role, jobs, an upgrade and the removal under a running job, a purge.
# level: all
. "$(dirname "$0")/lib.sh"
. "$here/hosts.sh"

need_namespaces
need_hosts
packages=$(packages_of trixie) || give_up $? "$packages"
trees=$(trees_of trixie)
later_packages "$packages" "$work/later"
mkdir "$work/hosts"
unshare --mount --propagation private --pid --net --uts --ipc --fork --kill-child "$here/walk" "$work/hosts" "$packages" "$work/later" \
    "$trees/node" "$trees/build/var/cache/apt/archives"
