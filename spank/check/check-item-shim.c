/* check-item-shim.c: the shim's file, which the jobs of all users must be able to load. Which NCCL
 * a job uses, and whether the shim suits it, is known in the job only: TCCL_DEBUG=INFO says it
 * there. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check/check-items.h"
#include "check/check-open.h"
#include "plugin/preload.h"

void check_item_shim(const struct check_site *site, struct check_result *result)
{
    cleanup_free char *path = preload_native(site->conf.shim);
    char closed[PATH_MAX];
    if (!path)
        return;
    if (!site->compute && access(path, F_OK) != 0)
        check_say(result, CHECK_OK, "none is needed here: this is no compute node");
    else if (access(path, R_OK) != 0)
        check_say(result, CHECK_FAIL,
                  "Shim=%s: %s: NCCL would not build the ring: install it, readable for all, or "
                  "correct Shim=",
                  site->conf.shim, strerror(errno));
    else if (!check_open_to_all(path, closed))
        check_say(result, CHECK_FAIL,
                  "%s is closed to other users, and so the shim to their jobs: let all read it "
                  "(chmod a+rX)",
                  closed);
    else
        check_say(result, CHECK_OK, "LD_PRELOAD=%s", path);
}
