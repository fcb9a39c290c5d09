/* spank-dispatch.c: the SPANK callbacks. Calls the part for the context: srun, sbatch and salloc,
 * or slurmstepd. */
#include <slurm/spank.h>

#include "plugin/spank-parts.h"

/* Exported (spank_tccl.map). spank.h declares the callbacks, but not these symbols. */
#pragma GCC visibility push(default)
SPANK_PLUGIN(tccl, 1)
#pragma GCC visibility pop

#define CALLBACK __attribute__((visibility("default"))) int

CALLBACK slurm_spank_init(spank_t spank, int argc UNUSED, char *argv[] UNUSED)
{
    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
        return option_register(spank) == ESPANK_SUCCESS ? 0 : -1;
    case S_CTX_REMOTE:
        remote_init(spank);
        return option_register(spank) == ESPANK_SUCCESS ? 0 : -1;
    default:
        return 0;
    }
}

CALLBACK slurm_spank_init_post_opt(spank_t spank, int argc, char *argv[])
{
    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
        return local_init_post_opt();
    case S_CTX_REMOTE:
        return remote_init_post_opt(spank, argc, argv);
    default:
        return 0;
    }
}

CALLBACK slurm_spank_local_user_init(spank_t spank, int argc UNUSED, char *argv[] UNUSED)
{
    return local_user_init(spank);
}

CALLBACK slurm_spank_user_init(spank_t spank, int argc UNUSED, char *argv[] UNUSED)
{
    return remote_user_init(spank);
}

CALLBACK slurm_spank_task_post_fork(spank_t spank UNUSED, int argc UNUSED, char *argv[] UNUSED)
{
    return remote_task_post_fork();
}

CALLBACK slurm_spank_task_init(spank_t spank, int argc UNUSED, char *argv[] UNUSED)
{
    return remote_task_init(spank);
}

CALLBACK slurm_spank_exit(spank_t spank UNUSED, int argc, char *argv[])
{
    switch (spank_context()) {
    case S_CTX_LOCAL:
        return local_exit(argc, argv);
    case S_CTX_REMOTE:
        return remote_exit();
    default:
        return 0;
    }
}
