/* check-item-nccl.c: which NCCL, and what puts itself in front of it. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check/check-elf.h"
#include "check/check-items.h"
#include "check/check-nccl.h"
#include "check/check-open.h"
#include "plugin/preload.h"

static void say_nccl(const struct check_nccl *nccl, struct check_result *result)
{
    if (!*nccl->version)
        check_say(result, CHECK_WARN, "%s (%s) does not say its version: 2.18 to 2.30 are known",
                  nccl->path, nccl->from);
    else if (check_nccl_supported(nccl->version))
        check_say(result, CHECK_OK, "%s %s (%s)", nccl->version, nccl->path, nccl->from);
    else
        check_say(result, CHECK_WARN,
                  "%s is NCCL %s (%s): rings are built by 2.18 to 2.30 only: use one of these",
                  nccl->path, nccl->version, nccl->from);
}

void check_item_nccl(const struct check_site *site, struct check_result *result)
{
    cleanup_free struct check_nccls *found = calloc(1, sizeof(*found));
    if (!found)
        return;
    check_nccls_find(site->deadline, found);
    for (int i = 0; i < found->count; i++)
        say_nccl(&found->all[i], result);
    if (*found->torch)
        check_say(result, CHECK_WARN,
                  "%s has no libnccl.so.2 beside it: with NCCL linked into it, look for \"passes "
                  "the shim by\" with TCCL_DEBUG=INFO in a job",
                  found->torch);
    if (!found->count && !*found->torch)
        check_say(result, CHECK_OK,
                  "none in LD_LIBRARY_PATH, ldconfig%s: jobs bring their own (2.18 to 2.30 are "
                  "known)",
                  found->python ? " and python3's packages" : "; there is no python3");
}

/* ---- the shim ---- */

static void check_libc(const struct check_elf *elf, const char *path, struct check_result *result)
{
    int major, minor, own_major = 0, own_minor = 0;
    const char *own = gnu_get_libc_version();
    check_elf_glibc(elf, &major, &minor);
    sscanf(own, "%d.%d", &own_major, &own_minor);
    if (major > own_major || (major == own_major && minor > own_minor))
        check_say(result, CHECK_FAIL,
                  "%s needs GLIBC_%d.%d, and %s is here: programs would not start: install the one "
                  "built for this system",
                  path, major, minor, own);
    else
        check_say(result, CHECK_OK, "LD_PRELOAD=%s, needs GLIBC_%d.%d of %s", path, major, minor,
                  own);
}

void check_item_shim(const struct check_site *site, struct check_result *result)
{
    cleanup_free char *path = preload_native(site->conf.shim);
    char closed[PATH_MAX];
    struct tccl_error err = {0};
    struct check_elf elf;
    const char *preload = getenv("LD_PRELOAD");
    if (!path)
        return;
    if (!site->compute && access(path, F_OK) != 0) {
        check_say(result, CHECK_OK, "none is needed here: this is no compute node");
        return;
    }
    if (check_elf_open(path, &elf, &err) != 0) {
        check_say(result, CHECK_FAIL,
                  "Shim=%s: %s: NCCL would not build the ring: install it, readable for all, or "
                  "correct Shim=",
                  site->conf.shim, err.text);
        return;
    }
    if (!check_elf_native(&elf))
        check_say(result, CHECK_FAIL, "%s is for another kind of machine: install this one's",
                  path);
    else if (!check_elf_defines(&elf, "ncclCommInitRank"))
        check_say(result, CHECK_FAIL,
                  "%s is not the shim: install it again, or correct Shim=", path);
    else if (!check_open_to_all(path, closed))
        check_say(result, CHECK_FAIL,
                  "%s is closed to other users, and so the shim to their jobs: let all read it "
                  "(chmod a+rX)",
                  closed);
    else
        check_libc(&elf, path, result);
    if (preload && strstr(preload, "libnccl"))
        check_say(result, CHECK_WARN,
                  "LD_PRELOAD=%s here puts an NCCL of its own in front: see in a job's TCCL_DEBUG "
                  "whether the ring is built",
                  preload);
    check_elf_close(&elf);
}
