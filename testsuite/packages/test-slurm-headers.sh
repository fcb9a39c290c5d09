#!/bin/bash
# The plugin compiles without a warning against the headers of each Slurm release from 22.05 to 25.11, and the unit tests of
# what it reads of a step pass with them. They are upstream's, by commit, kept in the test store.
# level: all
set -Eeuo pipefail

readonly root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly store=${TCCL_TEST_STORE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tccl-test}
readonly repository=${TCCL_SLURM_GIT:-https://github.com/SchedMD/slurm}
readonly build=${TCCL_BUILD:-$root/build}
readonly releases="
22-05-11-1 608e2f502ffe0decc5564cb51525ddfd4cc59efd
23-02-8-1 5680c77737ce9784b3a4cc3d159b6421274470a4
23-11-11-1 8a22252e33d444bbb918a476985e0ff746a19fde
24-05-8-1 46879dc2d172fd362745d21730a6846888d10157
24-11-7-1 defaf214db2e55326f45ab08f1bde5b2036d9f5d
25-05-8-1 90ff1dd4058b3ec2df25306a3917650efa59537f
25-11-7-1 f56e676bbd3e7cccbdd7c505c030c62bb983ebee"
work=$(mktemp -d /tmp/tccl-headers.XXXXXX)
trap 'rm -rf "$work"' EXIT

# Prints the folder that has slurm/*.h. slurm_version.h is configure's: its number is put in.
get_headers() { # TAG COMMIT
    local folder=$store/slurm-headers/$1 git=$work/git major minor micro
    if [ ! -e "$folder/slurm/spank.h" ]; then
        [ -d "$git" ] || { git init -q "$git" && git -C "$git" remote add origin "$repository"; }
        timeout 300 git -C "$git" fetch -q --depth 1 --filter=blob:none origin "refs/tags/slurm-$1" >&2 </dev/null || return 77
        [ "$(git -C "$git" rev-parse 'FETCH_HEAD^{commit}')" = "$2" ] || { echo "slurm-$1 is not commit $2" >&2; return 1; }
        mkdir -p "$work/$1"
        git -C "$git" archive "$2" slurm | tar -x -C "$work/$1"
        IFS=- read -r major minor micro _ <<<"$1"
        sed "s/^#undef SLURM_VERSION_NUMBER/#define SLURM_VERSION_NUMBER SLURM_VERSION_NUM($((10#$major)), $((10#$minor)), $((10#$micro)))/" \
            "$work/$1/slurm/slurm_version.h.in" >"$work/$1/slurm/slurm_version.h"
        mkdir -p "$store/slurm-headers"
        rm -rf "$folder"
        mv "$work/$1" "$folder"
    fi
    echo "$folder"
}

tried=0
while read -r tag commit; do
    [ -n "$tag" ] || continue
    folder=$(get_headers "$tag" "$commit") || {
        [ $? = 77 ] || exit 1
        echo "Slurm $tag can't be had from $repository (TCCL_SLURM_GIT)"
        continue
    }
    includes=(-std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -I "$folder" -I "$build")
    for room in spank profiler pathfind testsuite/unit; do includes+=(-I "$root/$room"); done
    for source in "$root"/spank/plugin/*.c; do
        gcc "${includes[@]}" -fsyntax-only "$source" || { echo "FAILED: ${source##*/} with Slurm $tag"; exit 1; }
    done
    gcc "${includes[@]}" "$root"/testsuite/unit/test-step-info.c "$root"/spank/plugin/{step-info,job-env}.c \
        "$build"/profiler/libtccl-client.a "$build"/pathfind/libtccl-base.a -ljansson -lxxhash -lmunge -linih \
        -o "$work/step-info-$tag"
    "$work/step-info-$tag" || { echo "FAILED: unit test step-info with Slurm $tag"; exit 1; }
    echo "Slurm $tag: ok"
    tried=$((tried + 1))
done <<<"$releases"
[ $tried -gt 0 ] || { echo "skipped: no headers of Slurm can be had"; exit 77; }
