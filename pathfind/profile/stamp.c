/* stamp.c: times, size and inode of a file, by which a change is seen. */
#include "profile/stamp.h"

#include <sys/stat.h>

struct tccl_stamp tccl_stamp_take(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return (struct tccl_stamp){0};
    return (struct tccl_stamp){.device = st.st_dev,
                               .inode = st.st_ino,
                               .size = st.st_size,
                               .modified = st.st_mtim,
                               .changed = st.st_ctim};
}

bool tccl_stamp_exists(const struct tccl_stamp *stamp)
{
    return stamp->inode != 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool tccl_stamp_equal(const struct tccl_stamp *a, const struct tccl_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           same_time(&a->modified, &b->modified) && same_time(&a->changed, &b->changed);
}
