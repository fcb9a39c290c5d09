/* path-source.h: a source of bandwidths: a machine model, or a profile directory. */
#pragma once

#include <limits.h>

#include "machine/model.h"
#include "machine/sides.h"
#include "profile/cache.h"
#include "search/search.h"
#include "search/setmap.h"

struct source {
    char *path;
    struct tccl_profile *profile; /* NULL: a model alone */
    char name[TCCL_NAME];         /* "model", "host", "cuda" */
    struct tccl_machine machine;
    const struct tccl_model *model; /* NULL: only what was measured is known */
    struct tccl_model *own_model;   /* without a profile */
    struct tccl_symmetry *symmetry; /* NULL without a model */
    struct tccl_search *search;
    struct tccl_setmap sets; /* measured, or asked of the model */
    bool knows;              /* sets.jsonl was passed to the search */
};

/* Is the path what the option says: a folder for --profile, none for --model? Returns 0 (also if
 * there is no such file), or -1 with err. */
int source_check(const char *path, bool profile, struct tccl_error *err);

/* The profile folder of this machine, of those in the usual place: by machine.json, which
 * tccl-profile init has written. What tccl.conf says of other places is not known here. Returns 0
 * with path, or -1 with err. */
int source_of_machine(char path[static PATH_MAX], struct tccl_error *err);

/* Opens a model file, or a profile folder. Returns NULL with err. */
struct source *source_open(const char *path, struct tccl_error *err);
void source_free(struct source *source); /* NULL is fine */

/* Passes the measurements of the profile to the search, once. Must be called before the search is
 * used; separate from source_open, because chain tables answer most questions and sets.jsonl may be
 * long. Returns 0, or -1 with err. */
int source_know(struct source *source, struct tccl_error *err);

/* Bandwidth of a set, GB/s: as measured, or from the model. Returns 0, or -1 with err that names
 * the source. */
int source_measure(struct source *source, const struct tccl_set *set, double *gbps,
                   struct tccl_error *err);

/* The chain table of a GPU set, if the source is a profile that has one, or one of GPUs that are
 * alike, which is moved. Returns 0 with *table
 * (NULL: none there; else the caller's), or -1 with err: it is there, but damaged. */
int source_table(const struct source *source, uint32_t gpus, struct tccl_table **table,
                 struct tccl_error *err);

/* What was measured together in a profile, without marks: *together is the source's; NULL: nothing
 * was. Returns 0, or -1 with err. */
int source_together(const struct source *source, const struct tccl_together **together,
                    struct tccl_error *err);
