/* serve-kinds.h: the kinds of machines whose profiles are in CacheDir, for tcclacct's page. */
#ifndef TCCL_SERVE_KINDS_H
#define TCCL_SERVE_KINDS_H

#include <jansson.h>

#include "base/error.h"
#include "client/conf.h"
#include "profile/cache.h"

enum { SERVE_KINDS = 256 };

/* The profiles that can be read, in the order of their ids. */
struct serve_kinds {
    int count;
    struct tccl_profile *profiles[SERVE_KINDS];
    int own;                  /* index of this node's, -1: none of them is */
    int bad;                  /* others, that can't be read */
    struct tccl_error reason; /* why, of the first */
};

/* Opens them; serve_kinds_close in any case. Returns 0, or -1 with err. */
int serve_kinds_open(const struct tccl_conf *conf, struct serve_kinds *kinds,
                     struct tccl_error *err);
void serve_kinds_close(struct serve_kinds *kinds);

/* {"cache_dir","kinds":[{"id","name","source","gpus","own"}],"bad","bad_reason"}. A new reference,
 * or NULL with err. */
json_t *serve_kinds_list(const struct tccl_conf *conf, struct tccl_error *err);

/* All of one kind: what tccl_report_to_json has, its congested sets with "repeats" and "alike", and
 * "pictures", a list of {"title","chain","svg"}. A new reference, or NULL with err; *missing is
 * then true if there is no such kind. */
json_t *serve_kind(const struct tccl_conf *conf, const char *id, bool *missing,
                   struct tccl_error *err);

/* A machine with a chain on it as one SVG element, with all that it needs inside; chain may be
 * NULL. A new JSON text; NULL without memory. */
json_t *serve_picture(const struct tccl_machine *machine, uint32_t gpus,
                      const struct tccl_chain *chain);

#endif
