/* cache-together.c: what a profile knows of steps that were measured beside each other. */
#include "profile/cache-internal.h"

long tccl_profile_joints(const struct tccl_profile *profile,
                         int (*each)(void *context, const struct tccl_joint *joint), void *context,
                         int *dropped, struct tccl_error *err)
{
    char path[PATH_MAX];

    tccl_profile_path(profile->folder, TOGETHER, path);
    return tccl_setlog_read_joints(path, each, context, dropped, err);
}

const struct tccl_together *tccl_profile_together(struct tccl_profile *profile,
                                                  struct tccl_error *err)
{
    char path[PATH_MAX];

    tccl_profile_path(profile->folder, TOGETHER, path);
    struct tccl_stamp stamp = tccl_stamp_take(path);
    if (tccl_stamp_equal(&stamp, &profile->together_stamp))
        return profile->together;
    tccl_together_free(profile->together);
    profile->together_stamp = stamp;
    profile->together = tccl_stamp_exists(&stamp) ? tccl_setlog_read_together(path, err) : NULL;
    return profile->together;
}

const struct tccl_together *tccl_profile_together_read(struct tccl_profile *profile, bool *stale)
{
    char path[PATH_MAX];

    tccl_profile_path(profile->folder, TOGETHER, path);
    struct tccl_stamp stamp = tccl_stamp_take(path);
    *stale = !tccl_stamp_equal(&stamp, &profile->together_stamp);
    return tccl_stamp_exists(&stamp) ? profile->together : NULL;
}
