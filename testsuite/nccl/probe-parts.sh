# probe-parts.sh: what ring-probe is built of, for rig, and for tests that build it in another way.
probe_parts=(-DTCCL_RELEASE='""' -I"$root/pathfind" "$here"/ring-{probe,collective,data,log}.c "$root"/pathfind/base/{options,error,utf8}.c)
