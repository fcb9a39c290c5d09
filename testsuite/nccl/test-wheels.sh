#!/bin/bash
# Released NCCLs, as Python's packages carry them: the functions and their twins, the questions and
# the plugins are those that the shim takes the version to have, and the shim finds each one's
# functions in all the ways in which programs have it, Python's packages among them. (No GPU and no rig: no communicator
# comes into being; it fails as without the shim.)
# Usage: test-wheels.sh [--all]   all versions known here, downloaded as needed; else those that are
# kept, and of a few of them as many as can be had in some time.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/wheels.sh"

readonly few="nvidia-nccl-cu12=2.32.3 nvidia-nccl-cu12=2.30.7 nvidia-nccl-cu12=2.28.9 nvidia-nccl-cu12=2.22.3"
readonly all="$few nvidia-nccl-cu11=2.21.5
    nvidia-nccl-cu12=2.21.5 nvidia-nccl-cu12=2.23.4 nvidia-nccl-cu12=2.24.3 nvidia-nccl-cu12=2.25.1 nvidia-nccl-cu12=2.26.2
    nvidia-nccl-cu12=2.26.5 nvidia-nccl-cu12=2.27.3 nvidia-nccl-cu12=2.27.7 nvidia-nccl-cu13=2.27.7 nvidia-nccl-cu12=2.28.3
    nvidia-nccl-cu12=2.28.7 nvidia-nccl-cu13=2.28.9 nvidia-nccl-cu12=2.29.2 nvidia-nccl-cu12=2.29.3 nvidia-nccl-cu12=2.29.7
    nvidia-nccl-cu12=2.30.3 nvidia-nccl-cu12=2.30.4 nvidia-nccl-cu13=2.30.7 nvidia-nccl-cu12=2.31.2"

for program in nm readelf python3; do
    command -v $program >/dev/null || skip "no $program"
done
compiler=$(command -v gcc || command -v clang) || skip "no C compiler"

# ---- which ones --------------------------------------------------------------------------------

libraries=() # folders
get() { # [OPTION] PACKAGE=VERSION
    local spec=${!#} folder
    folder=$("$here/get-wheel" "${@:1:$#-1}" "${spec%=*}" "${spec#*=}" 2>"$work/why") || return 1
    libraries+=("$folder")
}

choose() {
    local spec end=$((SECONDS + 100))
    for spec in $all; do
        if [ -n "$every" ]; then
            get "$spec" || fail "$spec: $(tail -n 1 "$work/why")"
        elif ! get --kept "$spec" && [[ " $few " == *" $spec "* ]] && [ $SECONDS -lt $end ]; then
            TCCL_WHEEL_SECONDS=$((end - SECONDS)) get "$spec" || { echo "left out: $(tail -n 1 "$work/why")"; end=0; }
        fi
    done
    [ ${#libraries[@]} -gt 0 ] || skip "no released NCCL can be had"
}

# ---- a program that is linked to it, and Python ------------------------------------------------

make_programs() {
    cat >"$work/linked.c" <<'CODE'
#include <stdio.h>
typedef struct { char bytes[128]; } unique_id;
int ncclGetVersion(int *);
int ncclGetUniqueId(unique_id *);
int ncclCommInitRank(void **, int, unique_id, int);
int ncclCommInitRankConfig(void **, int, unique_id, int, void *);
int ncclCommInitAll(void **, int, const int *);
int ncclGroupStart(void);
int ncclGroupEnd(void);
const char *ncclGetLastError(void *);
static int marks(const unique_id *id)
{
    int n = 0;
    for (unsigned i = 0; i < sizeof id->bytes; i++)
        n += id->bytes[i] != 0;
    return n >= 8;
}
int use_nccl(void)
{
    int version = 0, device = 0;
    unique_id id = {{0}};
    void *comm = 0;
    printf("version %d", ncclGetVersion(&version) ? -1 : version);
    printf(" id %d", ncclGetUniqueId(&id));
    printf("%d", marks(&id));
    printf(" rank %d", ncclCommInitRank(&comm, 1, id, 0));
    printf(" config %d", ncclCommInitRankConfig(&comm, 1, id, 0, 0));
    printf(" all %d", ncclCommInitAll(&comm, 1, &device));
    ncclGroupStart();
    int inside = ncclCommInitRank(&comm, 1, id, 0);
    printf(" group %d %d", inside, ncclGroupEnd());
    printf(" bad %d: %s\n", ncclCommInitRank(&comm, 0, id, 0), ncclGetLastError(0));
    fflush(stdout);
    return 0;
}
#ifdef PROGRAM
int main(void)
{
    return use_nccl();
}
#endif
CODE
    cat >"$work/python.py" <<'CODE'
import ctypes, sys
library, extension = sys.argv[1:]
nccl = ctypes.CDLL(library)
version, id = ctypes.c_int(), ctypes.create_string_buffer(128)
print(nccl.ncclGetVersion(ctypes.byref(version)), version.value)
print(nccl.ncclGetUniqueId(id), sum(c != b"\0" for c in id) >= 8)
print(ctypes.CDLL(extension).use_nccl())
CODE
    # Only with the shim: its own wrapper, from a caller that has no NCCL in its scope.
    cat >"$work/wrapper.py" <<'CODE'
import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
id, again = ctypes.create_string_buffer(128), ctypes.create_string_buffer(128)
wrapper = ctypes.CDLL(None).ncclGetUniqueId
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
assert address(wrapper) != address(nccl.ncclGetUniqueId), "the wrapper is not in front"
assert wrapper(id) == 0 and wrapper(again) == 0, "the wrapper fails"
assert sum(c != b"\0" for c in id) >= 8 and id.raw != again.raw, "that is no unique id"
def file_of(address):
    for words in (line.split() for line in open("/proc/self/maps")):
        start, end = (int(word, 16) for word in words[0].split("-"))
        if start <= address < end:
            return words[-1].rsplit("/", 1)[-1]
wrapped = [name for name in sys.argv[2:] if hasattr(nccl, "p" + name)]
for name in wrapped:
    assert file_of(address(getattr(nccl, name))) == "libtccl-nccl.so", name + " is not found in the shim"
    assert file_of(address(getattr(nccl, "p" + name))) == "libnccl.so.2", "p" + name + " is found elsewhere"
for name in wrapped:
    if name.endswith("Config") and not name.startswith("ncclComm"):
        none = [None] * 9
        assert getattr(nccl, name)(*none) == getattr(nccl, "p" + name)(*none) != 0, name + " returns something else"
print(*wrapped)
CODE
}

ran() { # NAME COMMAND...
    local name=$1 status=0
    shift
    timeout 120 "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null || status=$?
    echo "status $status" >>"$work/$name.out"
}

same() { # WHAT PATTERN COMMAND...: with and without; the pattern is in its output
    local what=$1 pattern=$2 way settings
    shift 2
    ran plain "$@"
    grep -qE "$pattern" "$work/plain.out" || fail "$what: without the shim: $(cat "$work"/plain.{out,err})"
    for way in none bad; do
        settings=(LD_PRELOAD="$shim")
        [ $way = none ] || settings+=(TCCL_PLAN="$work/bad-plan")
        ran $way env "${settings[@]}" "$@"
        diff "$work/plain.out" "$work/$way.out" && diff "$work/plain.err" "$work/$way.err" || fail "$what: differs ($way)"
    done
}

run_library() { # FOLDER NUMBER
    local link=("$1/libnccl.so.2" "-Wl,-rpath,$1")
    "$compiler" -o "$work/linked" -DPROGRAM "$work/linked.c" "${link[@]}" &&
        "$compiler" -shared -fPIC -o "$work/extension.so" "$work/linked.c" "${link[@]}" || fail "$1: can't be linked to"
    same "$1: linked" "^version $2 id 01 rank [1-9].* bad [1-9]: " "$work/linked"
    same "$1: Python" "^0 $2$" python3 "$work/python.py" "$1/libnccl.so.2" "$work/extension.so"
    ran wrapper env LD_PRELOAD="$shim" TCCL_PLAN="$work/bad-plan" python3 "$work/wrapper.py" "$1/libnccl.so.2" "${wrappers[@]}"
    grep -qx 'status 0' "$work/wrapper.out" || fail "$1: $(tail -n 1 "$work/wrapper.err")"
}

# ---- the configuration's layout ----------------------------------------------------------------

# nccl.h needs names of CUDA's headers, but nothing of their meaning.
stand_in_headers() {
    mkdir -p "$work/cuda"
    printf '%s\n' 'typedef struct CUstream_st *cudaStream_t; typedef struct CUevent_st *cudaEvent_t;' \
        'typedef int cudaError_t;' >"$work/cuda/cuda_runtime.h"
    : >"$work/cuda/cuda_fp16.h"
    : >"$work/cuda/cuda_bf16.h"
}

members() { # HEADER TYPE: names in its ncclConfig_t
    python3 - "$@" <<'PYTHON'
import re, sys
text = re.sub(r"/\*.*?\*/|//[^\n]*", "", open(sys.argv[1]).read(), flags=re.S)
name = sys.argv[2]
body = re.search(rf"typedef struct(?: \w+)? *\{{([^}}]*)\}} *{name};|struct {name[:-2]}_v\w+ *\{{([^}}]*)\}}", text)
if not body:
    sys.exit(0)
for line in (body.group(1) or body.group(2)).split(";"):
    for name in re.findall(r"(\w+)\s*(?:,|$)", line.strip()):
        print(name)
PYTHON
}

places() { # HEADER TYPE MEMBER...
    local header=$1 type=$2 member
    shift 2
    {
        printf '#include <stddef.h>\n#include <stdio.h>\n#include "%s"\nint main(void)\n{\n' "$header"
        for member in "$@"; do
            printf 'printf("%%zu %s\\n", offsetof(%s, %s));\n' "$member" "$type" "$member"
        done
        echo 'return 0; }'
    } >"$work/places.c"
    "$compiler" -I"$work/cuda" -o "$work/places" "$work/places.c" && "$work/places" || fail "$header: can't be compiled"
}

# What the shim knows of a type lies where this version has it; which is all of it, or its first
# members.
same_layout() { # FOLDER TYPE LEAST
    local known abi=$root/runtime/nccl/nccl-abi.h
    [ -e "$1/nccl.h" ] || return 0
    members "$abi" "$2" >"$work/ours"
    members "$1/nccl.h" "$2" >"$work/theirs"
    [ -s "$work/theirs" ] || [ "$2" = ncclConfig_t ] || return 0
    known=($(grep -xFf "$work/theirs" "$work/ours")) || fail "$1/nccl.h: its $2 is not understood"
    [ ${#known[@]} -ge "$3" ] || fail "$1/nccl.h: only ${known[*]}"
    [ "${known[*]}" = "$(head -n ${#known[@]} "$work/ours" | tr '\n' ' ' | sed 's/ $//')" ] ||
        fail "$1/nccl.h: $2 has other members: $(tr '\n' ' ' <"$work/theirs")"
    places "$abi" "$2" "${known[@]}" >"$work/ours"
    places "$1/nccl.h" "$2" "${known[@]}" >"$work/theirs"
    diff "$work/ours" "$work/theirs" || fail "$1/nccl.h: $2 lies otherwise"
}

# ---- packages of Python's that bring or look up NCCL -------------------------------------------

# nccl4py looks each function up, first in the program's scope; CuPy is linked to NCCL.
make_users() {
    cat >"$work/nccl4py.py" <<'CODE'
import ctypes
import sys
import nccl.bindings.nccl as nccl
from nccl.bindings._internal.nccl import _inspect_function_pointers as look_up
maps = [line.split() for line in open("/proc/self/maps") if "r-xp" in line]
def file_of(address):
    for words in maps:
        start, end = (int(word, 16) for word in words[0].split("-"))
        if start <= address < end:
            return words[-1].rsplit("/", 1)[-1]
one, other = nccl.get_unique_id(), nccl.get_unique_id()
def text(unique_id):
    return ctypes.string_at(unique_id.ptr, 128)
maps = [line.split() for line in open("/proc/self/maps") if "r-xp" in line]
found = {name.strip("_"): address for name, address in look_up().items()}
print("version", nccl.get_version(), "ids", text(one) != text(other), sorted(name for name in found if found[name]))
for name in ["ncclCommInitRank", "ncclAllReduce", "ncclSend"]:
    print(name, file_of(found[name]), file=open(sys.argv[1], "a"))
CODE
    cat >"$work/cupy.py" <<'CODE'
from cupy_backends.cuda.libs import nccl
print("version", nccl.get_version(), "ids", nccl.get_unique_id() != nccl.get_unique_id())
try:
    nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
except nccl.NcclError as error:
    print(error)
CODE
}

use_packages() { # NCCL's folder
    local folder left=$((200 - SECONDS))
    if ! folder=$(TCCL_WHEEL_SECONDS=$((left > 20 ? left : 20)) "$here/get-python" nccl4py-0.6.0 nccl4py==0.6.0 cuda-pathfinder==1.9.0 \
        packaging numpy 2>"$work/why"); then
        echo "left out: $(tail -n 1 "$work/why")"
    else
        export PYTHONPATH=$folder LD_LIBRARY_PATH=$1 PYTHONDONTWRITEBYTECODE=1
        rm -f "$work/files"
        same "nccl4py" "^version [0-9]+ ids True .*'ncclCommInitRank'" python3 "$work/nccl4py.py" "$work/files"
        [ "$(sort "$work/files" | uniq -c | tr -s ' ')" = "$(printf ' %s\n' "2 ncclAllReduce libtccl-nccl.so" \
            "1 ncclAllReduce libnccl.so.2" "2 ncclCommInitRank libtccl-nccl.so" "1 ncclCommInitRank libnccl.so.2" \
            "3 ncclSend libnccl.so.2" | sort -k 2)" ] || fail "nccl4py: not NCCL's functions: $(sort "$work/files" | uniq -c)"
        echo "nccl4py: the same"
    fi
    [ -n "$every" ] || return 0
    if ! folder=$("$here/get-python" cupy-14 cupy-cuda12x==14.2.0 numpy 2>"$work/why"); then
        echo "left out: $(tail -n 1 "$work/why")"
    else
        export PYTHONPATH=$folder LD_LIBRARY_PATH=$1
        same "CuPy" "^version [0-9]+ ids True" python3 "$work/cupy.py"
        echo "CuPy: the same"
    fi
    unset PYTHONPATH LD_LIBRARY_PATH
}

# ---- all of it ---------------------------------------------------------------------------------

every=
case ${1:-} in
--all) every=1 ;;
"") ;;
*) echo "Usage: test-wheels.sh [--all]" >&2; exit 2 ;;
esac
choose
make_programs
stand_in_headers
readonly wrappers=($(grep -o 'nccl[A-Z]\w*' "$root/runtime/hook/libtccl-nccl.map" | grep -v Plugin))
readonly machine=$(uname -m)
[ "$machine" = x86_64 ] || echo "on $machine"
echo "package           version   functions  same  net     tuner   env     questions  CUDA runtime"
seen=0
for folder in "${libraries[@]}"; do
    name=${folder##*/}
    if [ -z "$every" ] && [ $SECONDS -gt 120 ] && [ $seen -gt 0 ]; then
        echo "left out, as this takes long here: $name"
        continue
    fi
    version=${name##*-}
    printf '%-18s' "${name%-*}"
    "$here/wheel-facts" "$root/runtime" "$folder/libnccl.so.2" "$version" || fail "$name is not as the shim takes it to be"
    IFS=. read -r major minor patch <<<"$version"
    run_library "$folder" $((major * 10000 + minor * 100 + patch))
    same_layout "$folder" ncclConfig_t 7
    same_layout "$folder" ncclCollConfig_t 9
    seen=$((seen + 1))
done
make_users
use_packages "$(printf "%s\n" "${libraries[@]}" | grep -e -cu12- | sort -V | tail -n 1)"
