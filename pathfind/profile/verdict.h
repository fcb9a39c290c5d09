/* verdict.h: does a profile hold on this node, which may have it from another one? What was found
 * last is in <CacheDir>/checked/NODE.json, and not in the profile, which names no node. */
#pragma once

#include "profile/cache.h"

struct tccl_verdict {
    char profile[TCCL_HASH_HEX]; /* of which machine */
    char found[16];              /* "measured" here; "holds", "drifted", "unclear" when checked */
    double worst;   /* what its best rings and chains reached of what they had, the worst; 1: all */
    long long when; /* seconds since 1970 */
};

/* Below that a profile that has drifted is not served: its rings may be worse than NCCL's own. */
#define TCCL_VERDICT_LEAST 0.8
bool tccl_verdict_refuses(const struct tccl_verdict *verdict);

enum { TCCL_VERDICT_PATH = 4096 };
void tccl_verdict_path(const char *cache_dir, const char *node,
                       char path[static TCCL_VERDICT_PATH]);

/* Writes it whole, with the folder. node: its name in Slurm. Returns 0, or -1 with err. */
int tccl_verdict_write(const char *cache_dir, const char *node, const struct tccl_verdict *verdict,
                       struct tccl_error *err);
/* Returns 0 with *verdict; 1: there is none (or one that can't be read) of that profile. */
int tccl_verdict_read(const char *cache_dir, const char *node, const char *profile,
                      struct tccl_verdict *verdict);
