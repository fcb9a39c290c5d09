#!/usr/bin/env bash
# A hook of enroot (also under pyxis): puts into each container of a Slurm job what the NCCL shim of
# slurm-tccl needs there. Copy to /etc/enroot/hooks.d/50-tccl.sh, mode 755, on the compute nodes.
# It reads tccl.conf, does nothing unless ContainerShim= says where the shim is to be inside, and never
# keeps a container from starting.
set -u

conf=${TCCL_CONF:-/etc/slurm/tccl.conf}
[ -n "${SLURM_JOB_ID-}" ] && [ -n "${ENROOT_MOUNTS-}" ] && [ -r "$conf" ] || exit 0

# The value of a key of [tccl]: the last one, without comment; %n and %h as tccld replaces them.
value() { # KEY DEFAULT
    local found
    found=$(sed -nE "/^[[:space:]]*\[/h; G; /\n[[:space:]]*\[tccl\]/I!d
        s/^[[:space:]]*$1[[:space:]]*[=:][[:space:]]*([^\n]*).*/\1/Ip" "$conf" |
        sed -E 's/(^|[[:space:]])[#;].*//; s/[[:space:]]+$//' | tail -n 1)
    found=${found:-$2}
    found=${found//%%/$'\1'}
    found=${found//%n/${SLURMD_NODENAME-}}
    found=${found//%h/$(uname -n | cut -d . -f 1)}
    printf '%s\n' "${found//$'\1'/%}"
}

# ld.so's $LIB, as far as it can be found by looking.
shim_outside() {
    local path folder
    path=$(value Shim '/usr/$LIB/tccl/libtccl-nccl.so')
    path=${path//\$\{LIB\}/\$LIB}
    for folder in "lib/$(uname -m)-linux-gnu" lib64 lib; do
        if [ -r "${path//\$LIB/$folder}" ]; then
            printf '%s\n' "${path//\$LIB/$folder}"
            return
        fi
    done
}

bind() { # SOURCE TARGET dir|file [OPTION]...
    local source=$1 target=$2 kind=$3
    shift 3
    case $source$target in *[[:space:]]*) return ;; esac
    [ -e "$source" ] || return 0
    printf '%s %s none x-create=%s,bind,ro,nosuid,nodev%s,private,nofail\n' \
        "$source" "$target" "$kind" "$(printf ',%s' "$@" | sed 's/^,$//')" >>"$ENROOT_MOUNTS"
}

inside=$(value ContainerShim '')
outside=$(shim_outside)
case $inside in /*) ;; *) exit 0 ;; esac
case $inside in *'$'*) exit 0 ;; esac
[ -n "$outside" ] || exit 0

run_dir=$(value RunDir /run/tccl)
socket=$(value Socket /run/tccl/tccld.sock)
bind "$outside" "$inside" file # no noexec: it is loaded
bind "$run_dir" "$run_dir" dir noexec
case $socket in
"$run_dir"/*) ;;
*) bind "$socket" "$socket" file noexec ;;
esac
exit 0
