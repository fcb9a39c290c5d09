# hosts.sh: several machines on this one, each with processes, a network address, a name and mounts of its own. A
# machine's files are a tree that others share, with what it writes over it, in memory: what that is, is in
# $hosts/NAME/written. For a shell that has a mount, a process and a network namespace of its own.
declare -A host_pids=()
hosts=

need_hosts() {
    unshare --mount --net --fork true 2>/dev/null || skip "no namespaces of its own can be had here (unshare)"
    unshare --mount --net /bin/sh -c 'ip link add walk type bridge && ip link add a0 type veth peer name a1 &&
        mkdir "$0/try" && mount -t tmpfs tmpfs "$0/try" && mkdir "$0/try/a" "$0/try/b" "$0/try/c" "$0/try/d" &&
        mount -t overlay overlay -o "lowerdir=$0/try/a,upperdir=$0/try/b,workdir=$0/try/c" "$0/try/d"' "$work" >/dev/null 2>&1 ||
        skip "no bridge, veth or overlay can be had here"
}

# The network that they are on: 192.0.2.0/24, with nothing outside.
make_network() {
    mount -t proc proc /proc
    ip link set lo up
    ip link add walk type bridge
    ip link set walk up
}

start_host() { # NAME NUMBER TREE [NAME=FOLDER]...
    local name=$1 number=$2 below=$3 folder=$hosts/$1 unshared
    shift 3
    mkdir -p "$folder/written" "$folder/work" "$folder/root"
    mount -t overlay overlay -o "lowerdir=$below,upperdir=$folder/written,workdir=$folder/work" "$folder/root"
    unshare --mount --pid --net --uts --ipc --fork --kill-child "$here/enter" "$folder/root" "$name" "$@" -- \
        /bin/bash -c 'while :; do sleep 1000 & wait; done' </dev/null &
    unshared=$!
    until host_pids[$name]=$(cat "/proc/$unshared/task/$unshared/children") && [ "$(readlink "/proc/$((host_pids[$name]))/root")" = "$folder/root" ]; do
        [ -e "/proc/$unshared" ] || fail "host $name does not start"
        sleep 0.05
    done
    host_pids[$name]=$((host_pids[$name]))
    ip link add "veth$number" type veth peer name eth0 netns "${host_pids[$name]}"
    ip link set "veth$number" master walk up
    nsenter --target "${host_pids[$name]}" --net ip link set eth0 up
    nsenter --target "${host_pids[$name]}" --net ip address add "192.0.2.$number/24" dev eth0
}

# Runs a command on a host, as root, with the output of this shell's.
on() { # NAME COMMAND...
    local name=$1
    shift
    nsenter --target "${host_pids[$name]}" --mount --uts --ipc --net --pid --root -- \
        env -i --chdir=/ PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
