#!/bin/bash
# Units, folders, the user and log rotation, as they are installed, in the eyes of the programs that read them.
# level: all
. "$(dirname "$0")/lib.sh"

readonly build=${TCCL_BUILD:-$root/build}
readonly tree=$work/tree
readonly usr=$tree$(meson introspect --buildoptions "$build" |
    python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
readonly samples=$usr/share/doc/tccl/examples
install_root() {
    DESTDIR=$tree meson install -C "$build" --no-rebuild >/dev/null
    mkdir -p "$tree/etc/systemd/system"
    # A sample, where its first lines say that it goes.
    install -D -m 755 "$samples/admin-comment/admin-comment" "$tree/usr/local/sbin/tccl-admin-comment"
    cp "$samples"/admin-comment/tccl-admin-comment.{service,timer} "$usr/lib/systemd/system"
    # What systemd-analyze asks for: the programs that the units start, and units that ours name.
    mkdir -p "$tree/bin" && cp /bin/sh /bin/kill "$tree/bin/"
    for unit in network-online.target multi-user.target timers.target slurmd.service slurmctld.service slurmdbd.service munge.service; do
        [ -e "$usr/lib/systemd/system/$unit" ] || printf '[Unit]\nDescription=%s\n' "$unit" >"$usr/lib/systemd/system/$unit"
        case $unit in *.service) printf '[Service]\nExecStart=/bin/sh\n' >>"$usr/lib/systemd/system/$unit" ;; esac
    done
}

part_units() {
    local unit units slack=0
    command -v systemd-analyze >/dev/null || { echo "no systemd-analyze here: units not looked at"; return; }
    units=$(cd "$usr/lib/systemd/system" && echo tccl*)
    for unit in $units; do
        ! grep -q '@[a-z]*@' "$usr/lib/systemd/system/$unit" || fail "$unit: a name was not filled in"
        # The tree holds no more of systemd's own units than ours name: only what is said of ours counts.
        systemd-analyze verify --root="$tree" --man=no --recursive-errors=no "$unit" >"$work/verify" 2>&1 || true
        ! grep "$unit" "$work/verify" | grep -v 'sysinit.target\|basic.target\|shutdown.target\|system.slice\|-\.mount\|systemd-' ||
            fail "systemd-analyze verify: $unit"
    done
    # How exposed each unit is, in tenths, says systemd 252: it may fall, not rise. Other versions count some things differently.
    # Of tccld's, 0.1 is setpriority, which its threads of questions need: it is counted as all of @resources, of which hostile/confined
    # tries the others.
    local -A exposed=([tccld.service]=29 [tccl-profile-check.service]=27 [tccl-admin-comment.service]=18)
    systemd-analyze --version | grep '^systemd 252 ' >/dev/null || slack=5
    for unit in $units; do
        case $unit in *.timer) continue ;; esac
        systemd-analyze security --offline=yes --root="$tree" --threshold=$((${exposed[$unit]} + slack)) --no-pager "$unit" >"$work/security" 2>&1 ||
            fail "$unit is exposed, more than ${exposed[$unit]} tenths: $(tail -n 1 "$work/security")"
        tail -n 1 "$work/security"
    done
    systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' "$usr/lib/systemd/system/tccl-profile-check.timer")" >/dev/null
}

# What keeps the profile from being checked is a slurmstepd of root's; a user's process may have this name, too.
part_condition() {
    local condition fake
    condition=$(sed -n "s/^ExecCondition=.* -c '\(.*\)'$/\1/p" "$usr/lib/systemd/system/tccl-profile-check.service" | sed 's/\$\$/$/g')
    sh -c "$condition" || { echo "a step runs here: not tried when the profile is checked"; return; }
    cp "$(command -v sleep)" "$work/slurmstepd"
    chmod 755 "$work"
    for user in nobody root; do
        setpriv --reuid "$user" --clear-groups "$work/slurmstepd" 60 &
        fake=$!
        until grep -qx slurmstepd "/proc/$fake/comm"; do sleep 0.05; done
        if sh -c "$condition"; then
            [ "$user" = nobody ] || fail "the profile is checked while a slurmstepd runs"
        else
            [ "$user" = root ] || fail "a user's process called slurmstepd keeps the profile from being checked"
        fi
        kill "$fake"
        wait "$fake" || true
    done
}

# The folders are made as the daemon's unit makes them, and left alone where they are somebody's.
part_tmpfiles() {
    command -v systemd-tmpfiles >/dev/null || { echo "no systemd-tmpfiles here"; return; }
    mkdir -p "$tree/run"
    systemd-tmpfiles --root="$tree" --create "$usr/lib/tmpfiles.d/tccl.conf"
    [ "$(cd "$tree" && stat -c '%n %a %u' run/tccl var/lib/tccl var/lib/tccl/metrics var/cache/tccl | xargs)" = "run/tccl 711 0 var/lib/tccl 711 0 var/lib/tccl/metrics 711 0 var/cache/tccl 755 0" ] ||
        fail "folders: $(cd "$tree" && stat -c '%n %a %u' run/tccl var/lib/tccl var/cache/tccl)"
    chown 4711 "$tree/var/lib/tccl"
    systemd-tmpfiles --root="$tree" --create "$usr/lib/tmpfiles.d/tccl.conf"
    [ "$(stat -c %u "$tree/var/lib/tccl")" = 4711 ] || fail "a folder of TccldUser was taken away"
}

part_sysusers() {
    command -v systemd-sysusers >/dev/null || { echo "no systemd-sysusers here"; return; }
    systemd-sysusers --root="$tree" "$usr/lib/sysusers.d/tccl.conf" >/dev/null 2>&1
    grep -q '^tccl:x:[0-9]*:[0-9]*:TCCL:/var/lib/tccl:' "$tree/etc/passwd" || fail "no user tccl is made: $(cat "$tree/etc/passwd")"
}

part_logrotate() {
    local program
    program=$(command -v logrotate) || { echo "no logrotate here: its file not tried"; return; }
    sed "s,/var/log/,$work/log/,; s/weekly/daily/" "$tree/etc/logrotate.d/tccld" >"$work/logrotate"
    mkdir "$work/log"
    chmod 644 "$work/logrotate"
    "$program" -f -s "$work/state" "$work/logrotate" # no log: nothing to do
    [ -z "$(ls "$work/log")" ] || fail "logrotate made a file"
    echo line >"$work/log/tccld.log"
    exec 8>>"$work/log/tccld.log" # as tccld has it
    "$program" -f -s "$work/state" "$work/logrotate"
    echo later >&8
    [ "$(cat "$work/log/tccld.log" "$work/log/tccld.log.1" | xargs)" = "later line" ] || fail "rotated: $(head "$work"/log/*)"
}

[ "$UID" = 0 ] || skip "folders of other users: only root can make them"
install_root
for part in units condition tmpfiles sysusers logrotate; do part_$part; done
