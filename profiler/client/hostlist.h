/* hostlist.h: node names in Slurm's bracket form, "n[1-4,07]-ib,login". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { TCCL_HOST_NAME = 255 }; /* bytes of one name */

struct tccl_hosts {
    char **names;
    size_t count;
};

/* Expands a list; one or more brackets in a name are multiplied out; leading zeros are kept. An
 * empty text is an empty list. Nothing is allocated for a list of more than max names. Returns 0,
 * or -1 with err, which names the place. tccl_hosts_clear frees. */
int tccl_hosts_expand(const char *text, size_t max, struct tccl_hosts *hosts,
                      struct tccl_error *err);
void tccl_hosts_clear(struct tccl_hosts *hosts);
/* How many names a list of at most max has. Allocates nothing. Returns 0, or -1 with err. */
int tccl_hosts_count(const char *text, size_t max, size_t *total, struct tccl_error *err);

/* The bracket form of names in their order: runs of names that differ only in their last number are
 * drawn together. Allocated (caller frees); NULL only if out of memory. */
char *tccl_hosts_fold(const char *const *names, size_t count);

/* The name at that place of a list, "n5"; "node 5 (the first is 0)" where the list has none. */
void tccl_hosts_name(const char *list, int index, char name[static TCCL_HOST_NAME + 1]);

/* Is name in the list? Nothing stands behind a part that can't be
 * expanded. Allocates nothing. */
bool tccl_hosts_contain(const char *text, const char *name);

/* May this be the name of a node: 1 to TCCL_HOST_NAME letters, digits, '.', '_' and '-', the first
 * a letter or digit? (So it can't leave a folder when it becomes part of a path.) */
bool tccl_host_valid(const char *name);
