/* stamp.h: is a file still the one that was read? */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* All zero: there is no such file. */
struct tccl_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

/* One stat call. Take it before reading the file: a change while reading is then seen later. */
struct tccl_stamp tccl_stamp_take(const char *path);
bool tccl_stamp_exists(const struct tccl_stamp *stamp);
bool tccl_stamp_equal(const struct tccl_stamp *a, const struct tccl_stamp *b);
