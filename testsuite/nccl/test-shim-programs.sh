#!/bin/bash
# Programs that bring NCCL along in unusual ways: an extension that Python loads for itself alone,
# NCCL linked statically into a library or a program, bound deeply, two NCCLs in one process; and
# programs that fork while they make communicators. Planned where the shim is reached, else as alone.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

nccl=$("$here/get-nccl" --built)
toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")")")")
build() { # OUTPUT OPTION...: ring-probe with these options
    local output=$1
    shift
    "${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -isystem "$nccl/include" -isystem "$toolkit/include" -o "$work/$output" \
        "${probe_parts[@]}" "$@" "$rig/lib/libcudart.so.13" -lpthread -lm || fail "$output can't be built"
}
program() { # NAME COMMAND...: a program that runs a command with its own arguments
    printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$work/$1"
    chmod 755 "$work/$1"
}
"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -o "$work/odd-loader" "$here/odd-loader.c" -ldl -lpthread
build extension.so -shared -fPIC -Dmain=probe_main "$rig/lib/libnccl.so.2"

small=(dual-8gpu --gpus 0,1)
# Each program has a job step of its own: once NCCL has passed the shim by, its buffers are left alone for the whole step.
own_step() { # WHAT
    step "$1"
    make_plans "dual-8gpu:0,1=0 -m0> 1 -m1> 0"
}
planned() { # WHAT PROGRAM
    own_step "$1"
    run_planned "${small[@]}" --program "$work/$2"
    as_planned
    no_warning
}
alone() { # WHAT PROGRAM
    own_step "$1"
    as_alone "${small[@]}" --program "$work/$2"
}
# Two NCCLs in one process. The log is that of the first: on the second one's communicator there is no verdict.
planned_both() { # WHAT PROGRAM
    local late=${late%|log does not tell of}
    planned "$@"
    as_planned "subset 0"
    said "not known: NCCL's log does not tell of this communicator" 1
    said "built as planned" 1
}

program local "$work/odd-loader" "$work/extension.so"
planned "a library that is loaded for itself alone" local

cat >"$work/extension.py" <<PYTHON
import ctypes, sys
arguments = [argument.encode() for argument in sys.argv]
extension = ctypes.CDLL("$work/extension.so")
sys.exit(extension.probe_main(len(arguments), (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)))
PYTHON
program python "$(command -v python3)" "$work/extension.py"
planned "an extension of Python's" python

program deep "$work/odd-loader" --deep "$work/extension.so"
alone "a library that is bound deeply" deep

program forks "$work/odd-loader" --forks "$work/extension.so"
own_step "children while communicators are made"
run_planned "${small[@]}" --program "$work/forks"
as_planned
# A child that asks before its parent has called NCCL may be taken for an NCCL that passes the shim by.
said 'TCCL WARN ([^bn]|b[^u]|n[^o])' 0

sed 's/libnccl\.so\.2\x0/libnccl.so.3\x0/g' "$rig/lib/libnccl.so.2" >"$work/libnccl.so.3"
build extension3.so -shared -fPIC -Dmain=probe_main "$work/libnccl.so.3" "-Wl,-rpath,$work"
program two "$work/odd-loader" "$work/extension.so,$work/extension3.so"
program other "$work/odd-loader" "$work/extension3.so"
planned "an NCCL under another name" other
planned_both "two NCCLs in one process" two

# By a handle of NCCL's own.
cat >"$work/past.h" <<'C'
#include <dlfcn.h>
#include <nccl.h>
#define PAST(name) ((__typeof__(&name))dlsym(dlopen("libnccl.so.2", RTLD_NOW), #name))
#define ncclGetUniqueId PAST(ncclGetUniqueId)
#define ncclCommInitRank PAST(ncclCommInitRank)
#define ncclCommDestroy PAST(ncclCommDestroy)
C
build past "$rig/lib/libnccl.so.2" -include "$work/past.h" -ldl
planned "calls by dlsym" past

# The twins are NCCL's own: the shim is passed by, and says so.
sed 's/, #name/, "p" #name/' "$work/past.h" >"$work/unseen.h"
build unseen "$rig/lib/libnccl.so.2" -include "$work/unseen.h" -ldl
alone "calls by dlsym of pncclX" unseen
said "TCCL WARN no ring for this process: its calls to NCCL" 2

archive=$nccl/lib/libnccl_static.a
if [ ! -e "$archive" ]; then
    echo "no libnccl_static.a: NCCL linked statically is not looked at"
    exit 0
fi
build static "$archive" -lstdc++ -lm -ldl -lrt
alone "NCCL linked statically into the program" static
build static.so -shared -fPIC -Dmain=probe_main "$archive" -lstdc++ -lm -ldl -lrt
program in-library "$work/odd-loader" "$work/static.so"
planned "NCCL linked statically into a library" in-library
build symbolic.so -shared -fPIC -Dmain=probe_main -Wl,-Bsymbolic "$archive" -lstdc++ -lm -ldl -lrt
program hidden "$work/odd-loader" "$work/symbolic.so"
alone "the same, where its own calls don't leave it" hidden
program both "$work/odd-loader" "$work/static.so,$work/extension.so"
planned_both "one in a library, one by itself" both

# Another library's getenv is nearer than the shim's: NCCL's plugin for its environment answers.
cat >"$work/getenv.c" <<'C'
#include <stddef.h>
#include <string.h>
extern char **environ;
char *getenv(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}
C
"${CC:-cc}" -O1 -shared -fPIC -o "$work/getenv.so" "$work/getenv.c"
readonly shim=$TCCL_BUILD/runtime/libtccl-nccl.so
own_step "another getenv, and the shim as NCCL's plugin"
run_planned "${small[@]}" --set "LD_PRELOAD=$work/getenv.so:$shim" --set "NCCL_ENV_PLUGIN=$shim"
as_planned
no_warning
own_step "another getenv alone"
as_alone "${small[@]}" --set "LD_PRELOAD=$work/getenv.so:$shim"
