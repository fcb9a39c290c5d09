/* cache.h: profiles on disk: <CacheDir>/<machine id>/{profile.json, machine.json, model.json,
 * sets.jsonl, together.jsonl, chains/XXXXXXXX.chains}. Formats: pathfind/profile/README.md. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <jansson.h>

#include "machine/model.h"
#include "machine/sides.h"
#include "ring/table.h"
#include "search/alike.h"

/* ---- system.c: what a machine runs that its bandwidths may depend on. */

enum { TCCL_SYSTEM_WORD = 96 };

/* Each "" where it is not known. */
struct tccl_system {
    char kernel[TCCL_SYSTEM_WORD];   /* its release */
    char driver[TCCL_SYSTEM_WORD];   /* NVIDIA's kernel module */
    char firmware[TCCL_SYSTEM_WORD]; /* version and date of the BIOS */
};

/* This machine's. root: in front of /sys, for tests; NULL: none. */
void tccl_system_read(const char *root, struct tccl_system *system);

/* {"kernel":…, "driver":…, "firmware":…}, what is not known left out; NULL without memory. */
json_t *tccl_system_to_json(const struct tccl_system *system);
/* What is missing or no text becomes "". */
void tccl_system_from_json(const json_t *json, struct tccl_system *system);

/* ---- trained-links.c: how the links of a machine were trained while it was measured. */

enum { TCCL_TRAINED_LINKS = 128 };

/* The link above a GPU, a NIC or a bridge. */
struct tccl_trained_link {
    char busid[TCCL_BUSID];
    int lanes;  /* 1 to 32 */
    double gts; /* GT/s, 2.5 to 256 */
};

/* Zero-initialise: nothing is known. */
struct tccl_trained_links {
    int n;
    struct tccl_trained_link list[TCCL_TRAINED_LINKS];
};

/* One more, where there is room. */
void tccl_trained_add(struct tccl_trained_links *links, const char *busid, int lanes, double gts);
/* NULL: nothing is known of it. */
const struct tccl_trained_link *tccl_trained_find(const struct tccl_trained_links *links,
                                                  const char *busid);

/* {"0000:15:00.0": [16, 32.0], …}: lanes, GT/s; NULL without memory. */
json_t *tccl_trained_to_json(const struct tccl_trained_links *links);
/* What is missing, or can't be, is left out. */
void tccl_trained_from_json(const json_t *json, struct tccl_trained_links *links);

/* ---- profiles */

struct tccl_profile;

/* Opens the profile of a machine. Reads the description only, no chains. The id is checked against
 * the machine that the folder describes, which must also be the one that was profiled: else err
 * says "… is of another machine". Returns 0 with *profile, which the caller closes; -1 with err,
 * errno ENOENT where there is no such profile. */
int tccl_profile_open(const char *cache_dir, const char *id, struct tccl_profile **profile,
                      struct tccl_error *err);
/* The same by folder, whatever its name. */
int tccl_profile_open_folder(const char *folder, struct tccl_profile **profile,
                             struct tccl_error *err);
void tccl_profile_close(struct tccl_profile *profile); /* NULL is fine */

/* All owned by the profile. */
const char *tccl_profile_folder(const struct tccl_profile *profile);
const char *tccl_profile_id(const struct tccl_profile *profile);     /* machine id */
const char *tccl_profile_source(const struct tccl_profile *profile); /* "model", "host", "cuda" */
const struct tccl_machine *tccl_profile_machine(const struct tccl_profile *profile);
/* How it was measured, see tccl_backend; "" for a model. */
const char *tccl_profile_conditions(const struct tccl_profile *profile);

/* What the machine ran when measuring was last begun; all "" for a model, or where it isn't known.
 */
const struct tccl_system *tccl_profile_system(const struct tccl_profile *profile);

/* How its links were trained while it was measured, each at its best; none for a model, or where it
 * isn't known.
 */
const struct tccl_trained_links *tccl_profile_links(const struct tccl_profile *profile);

/* When a set was last measured; 0: never. */
time_t tccl_profile_time(const struct tccl_profile *profile);

/* The model it was made from, read at the first call; NULL without err: measured on hardware. NULL
 * with err: model.json is missing, altered or not readable. Owned by the profile. */
const struct tccl_model *tccl_profile_model(struct tccl_profile *profile, struct tccl_error *err);

/* That model's file as JSON, a new reference; NULL without err or with, as tccl_profile_model. */
json_t *tccl_profile_model_json(const struct tccl_profile *profile, struct tccl_error *err);

/* The chains of a GPU set, read from disk at first use and again when the file has changed. At most
 * about 4 MiB of tables are kept (the latest in any case), so the table is borrowed only until the
 * next call with this profile. Where
 * the set has no file and the profile isn't open for writing, it is made of that of the set's first
 * one (tccl_profile_first). NULL with err: "no chains for GPUs 0-2: run tccl-profile …" (errno
 * ENOENT), or which file is bad and how; other GPU sets go on working. */
const struct tccl_table *tccl_profile_table(struct tccl_profile *profile, uint32_t gpus,
                                            struct tccl_error *err);

/* The same as the caller's own, to free; nothing is kept. NULL with err, and errno. */
struct tccl_table *tccl_profile_read_table(const struct tccl_profile *profile, uint32_t gpus,
                                           struct tccl_error *err);

/* The set whose chains this one has where it has none of its own: one that is alike
 * (search/alike.h), or the set itself. */
uint32_t tccl_profile_first(const struct tccl_profile *profile, uint32_t gpus);

/* Bytes of the tables in memory now. */
size_t tccl_profile_memory(const struct tccl_profile *profile);

/* Has anything on disk changed since the profile was opened: description replaced, folder gone, a
 * table added or replaced? Three stat calls, however many tables there are. What to do then: close,
 * open, and forget all that was derived from its tables. */
bool tccl_profile_changed(const struct tccl_profile *profile);
/* Was the table of a GPU set, if it is in memory, written over in place? One stat call or two. */
bool tccl_profile_table_changed(const struct tccl_profile *profile, uint32_t gpus);

/* The GPU sets with a file of chains, ascending; *masks is the caller's. Returns how many, or -1.
 */
int tccl_profile_tables(const struct tccl_profile *profile, uint32_t **masks,
                        struct tccl_error *err);

/* Calls each for every measured set, see tccl_setlog_read. Returns their number, or -1 with err. */
long tccl_profile_sets(const struct tccl_profile *profile,
                       int (*each)(void *context, const struct tccl_set *set,
                                   const struct tccl_measurement *measurement),
                       void *context, int *dropped, struct tccl_error *err);

/* What was measured together on this machine, without marks (tccl-profile run --neighbours); read
 * at first use and again when the file has changed. NULL without err: nothing was; with err: the
 * file can't be read (said once for each change of it). Owned by the profile, valid until the next
 * call. */
const struct tccl_together *tccl_profile_together(struct tccl_profile *profile,
                                                  struct tccl_error *err);
/* What the last such question has read, without reading now; NULL if the file is gone. *stale: it
 * has changed since, or was not read yet. One stat call. */
const struct tccl_together *tccl_profile_together_read(struct tccl_profile *profile, bool *stale);
/* Calls each for every such measurement, with marks or without. Returns as tccl_profile_sets. */
long tccl_profile_joints(const struct tccl_profile *profile,
                         int (*each)(void *context, const struct tccl_joint *joint), void *context,
                         int *dropped, struct tccl_error *err);

/* Makes a profile, or opens the one that is there: then its source and model must be these, or err
 * says which differs. model is the model's JSON, or NULL. The profile is open for writing: only one
 * process at a time. Returns 0 with *profile, or -1 with err. */
int tccl_profile_create(const char *cache_dir, const struct tccl_machine *machine,
                        const char *source, const json_t *model, struct tccl_profile **profile,
                        struct tccl_error *err);

/* The profile (opened with create) is measured under these conditions from now on, and on what the
 * machine runs now (tccl_profile_system). Words behind a
 * comma may be added later (", RDMA": NICs had not been measured), and a run may lack them. Returns
 * 0; -1 with err that names both, if what is measured already was measured under others. */
enum { TCCL_CONDITIONS = 160 };
bool tccl_conditions_agree(const char *a, const char *b);
int tccl_profile_claim(struct tccl_profile *profile, const char *conditions,
                       struct tccl_error *err);

/* Sets that are alike (profile opened with create) are known from now on; none: each stands for
 * itself. Returns 0, or -1 with err. */
int tccl_profile_set_alike(struct tccl_profile *profile, const struct tccl_alike *alike,
                           struct tccl_error *err);

/* Links as they were while the profile (opened with create) was measured. Returns 0, or -1 with
 * err.
 */
int tccl_profile_set_links(struct tccl_profile *profile, const struct tccl_trained_links *links,
                           struct tccl_error *err);

/* Appends a measured set (profile opened with create). Returns 0, or -1 with err. */
int tccl_profile_append(struct tccl_profile *profile, const struct tccl_set *set,
                        const struct tccl_measurement *measurement, struct tccl_error *err);
/* The same of sides that were measured together. */
int tccl_profile_append_joint(struct tccl_profile *profile, const struct tccl_joint *joint,
                              struct tccl_error *err);
/* What was appended is on the disk when this returns. Returns 0, or -1 with err. */
int tccl_profile_sync(struct tccl_profile *profile, struct tccl_error *err);

/* Writes the chains of a GPU set, whole. Machine id, source and GPU set are the table's own and are
 * checked against the profile's. Returns 0, or -1 with err. */
int tccl_profile_put(struct tccl_profile *profile, const struct tccl_table *table,
                     struct tccl_error *err);

/* Calls each with the name of every folder in the cache that looks like a machine id, in order.
 * each returns non-zero to stop. Returns how many (0: no cache folder), or -1 with err. */
int tccl_cache_list(const char *cache_dir, int (*each)(void *context, const char *id),
                    void *context, struct tccl_error *err);
