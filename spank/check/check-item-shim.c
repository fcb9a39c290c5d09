/* check-item-shim.c: the item shim: its file, which the jobs of all users must be able to load.
 * Which NCCL a job uses, and whether the shim supports it, is known only in the job: it is logged
 * there with TCCL_DEBUG=INFO. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
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
