/* check-item-shim.c: the items shim and nccl: the shim's file, which the jobs of all users must be
 * able to load; which NCCL the Python of this environment will load, and whether it is known. Which
 * NCCL a job uses is known only in the job: it is logged there with TCCL_DEBUG=INFO. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "chain/nccl-version.h"
#include "check/check-items.h"
#include "plugin/plugin.h"

void check_item_shim(const struct check_site *site, struct check_result *result)
{
    cleanup_free char *path = preload_native(site->conf.shim);
    char closed[PATH_MAX];
    if (!path)
        return;
    if (!site->compute && access(path, F_OK) != 0)
        check_say(result, CHECK_OK, "not needed here: this is no compute node");
    else if (preload_cut(site->conf.shim))
        check_say(result, CHECK_FAIL,
                  "Shim=%s has a space or a colon, which LD_PRELOAD can't have: move it",
                  site->conf.shim);
    else if (access(path, R_OK) != 0)
        check_say(result, CHECK_FAIL,
                  "Shim=%s: %s: install it, readable for all users, or "
                  "correct Shim=; without it NCCL does not build the ring",
                  site->conf.shim, strerror(errno));
    else if (!check_open_to_all(path, closed))
        check_say(
            result, CHECK_FAIL,
            "%s is closed to other users, whose jobs cannot load the shim: make it readable for "
            "all (chmod a+rX)",
            closed);
    else
        check_say(result, CHECK_OK, "LD_PRELOAD=%s", path);
}

void check_item_nccl(const struct check_site *site UNUSED, struct check_result *result)
{
    struct nccl_look look;
    nccl_look(NULL, environ, &look);
    for (int i = 0; i < look.n; i++) {
        char text[TCCL_NCCL_TEXT];
        if (!look.found[i].version) {
            check_say(result, CHECK_OK, "%.400s: its version can't be told before it runs",
                      look.found[i].path);
        } else if (tccl_nccl_known(look.found[i].version)) {
            tccl_nccl_format(look.found[i].version, text);
            check_say(result, CHECK_OK, "%s in %.400s: known", text, look.found[i].path);
        } else {
            tccl_nccl_not_known(look.found[i].version, text);
            check_say(result, CHECK_WARN, "%s, and left alone: %.400s: update slurm-tccl", text,
                      look.found[i].path);
        }
    }
    if (look.n == 0)
        check_say(
            result, CHECK_OK,
            "none in this environment's Python, LD_LIBRARY_PATH or LD_PRELOAD: to see a job's, "
            "run tccl-check --only nccl in it");
}
