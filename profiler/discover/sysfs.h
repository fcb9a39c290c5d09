/* sysfs.h: the small texts of /sys and /proc, and other texts from outside: bounded, and cleaned to
 * printable ASCII. */
#ifndef TCCL_SYSFS_H
#define TCCL_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/* Copies what fits; what is not printable ASCII becomes '?', spaces at both ends are dropped. NULL
 * is "". */
void tccl_clean(char *to, size_t size, const char *from);

/* The first line of the file root + path, cleaned ("" where there is none). root may be NULL.
 * Returns whether there is something. */
bool tccl_sys_text(const char *root, char *text, size_t size, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

/* The number that the file begins with. Returns whether there is one. */
bool tccl_sys_number(const char *root, long *value, const char *path, ...)
    __attribute__((format(printf, 3, 4)));

/* What stands behind "name:" in a file of such lines, as those of /proc/driver/nvidia. Returns
 * whether it is there. */
bool tccl_sys_member(const char *root, const char *name, char *text, size_t size, const char *path,
                     ...) __attribute__((format(printf, 5, 6)));

bool tccl_sys_exists(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));

#endif
