/* check-item-nccl.c: the item nccl: which NCCL the Python of this environment will load, and
 * whether it is known. */
#include <unistd.h>

#include "chain/nccl-version.h"
#include "check/check-items.h"
#include "plugin/plugin.h"

static void say_found(const struct nccl_found *found, struct check_result *result)
{
    char text[TCCL_NCCL_TEXT];
    if (!found->version) {
        check_say(result, CHECK_OK, "%.400s: its version can't be told before it runs",
                  found->path);
    } else if (tccl_nccl_known(found->version)) {
        tccl_nccl_format(found->version, text);
        check_say(result, CHECK_OK, "%s in %.400s: known", text, found->path);
    } else {
        tccl_nccl_not_known(found->version, text);
        check_say(result, CHECK_WARN, "%s, and left alone: %.400s: update slurm-tccl", text,
                  found->path);
    }
}

void check_item_nccl(const struct check_site *site, struct check_result *result)
{
    struct nccl_look look;
    (void)site;
    nccl_look(NULL, environ, &look);
    for (int i = 0; i < look.n; i++)
        say_found(&look.found[i], result);
    if (look.n == 0)
        check_say(
            result, CHECK_OK,
            "none in this environment's Python, LD_LIBRARY_PATH or LD_PRELOAD: to see a job's, "
            "run tccl-check --only nccl in it");
}
