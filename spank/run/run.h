/* run.h: the parts of tccl-run. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "client/step-fields.h"
#include "machine/machine.h"

/* ---- run-gpus: which GPUs a command will see. */

struct run_gpus {
    int n;
    char busids[TCCL_MAX_GPUS][TCCL_BUSID];
    char models[TCCL_MAX_GPUS][TCCL_NAME];
    char why[320]; /* not "": they can have no ring */
};
_Static_assert(sizeof(struct run_gpus) <= PIPE_BUF, "it is a child's word");

/* By NVML, and by CUDA_VISIBLE_DEVICES (visible; NULL: not set), as CUDA reads it: numbers or
 * UUIDs, up to the first that means nothing. by_bus: CUDA_DEVICE_ORDER=PCI_BUS_ID; else numbers of
 * GPUs of several kinds say nothing here. Asks the driver, which may hang. */
void run_gpus_read(const char *visible, bool by_bus, struct run_gpus *gpus);

/* ---- run-profile: what was measured on this machine. */

struct run_profile {
    char cache[PATH_MAX], machine[PATH_MAX]; /* the cache's folder; the description in it */
    int numbers[TCCL_MAX_GPUS];              /* of these GPUs, in that description */
    long long time;                          /* when it was last measured, unix time */
};

/* The profile of a machine that has these GPUs, next to the NUMA nodes that they are next to now:
 * in the first of these folders (NULL ends them) that has any the newest one. Neither its name nor
 * the host's counts, as homes are shared, and containers show a part of the machine. Returns 0, or
 * -1: there is none. */
int run_profile_find(const char *const *caches, const struct run_gpus *gpus,
                     struct run_profile *profile);

/* ---- run-findings: what tccl-check machine would say. */

struct run_findings {
    int count;       /* of what costs bandwidth, or worse */
    char worst[320]; /* the first one; "" */
};

/* Looks at /sys and the driver, which may hang. */
void run_findings_read(struct run_findings *said);

/* The ring, or how many and the first, that this NCCL (0: the newest known) builds of these GPUs by
 * itself where there is no NVLink: foretold from what is found on the machine, GPUs by the numbers
 * of tccl-profile show. "": not known. Asks the driver, too. */
enum { RUN_OWN = 512 };
void run_own_read(const struct run_gpus *gpus, int64_t version, char text[static RUN_OWN]);

/* ---- run-place: is this the start of a program on one machine? */

/* Says in text why a ring of this machine alone is not for the command, or *silent: that need not
 * be said. Returns whether there is such a reason. */
bool run_place_refuse(char *const *env, char *const *command, char *text, size_t size,
                      bool *silent);

/* ---- run-keeper: a process beside the command, which keeps a tccld for it. */

struct run_keeping {
    const char *tccld;   /* the program */
    const char *conf;    /* lines of tccl.conf that it gets besides its folders */
    const char *node;    /* the name of this machine */
    const char *records; /* the file that the record goes to; NULL: none is kept */
    struct tccl_step_key key;
};

/* Starts it. It holds none of our descriptors, is no child of ours, and lives until this process
 * has ended, whatever program it is by then; then it ends the step, keeps the record, ends tccld,
 * and removes all files (but a record that could not be kept, which a later one takes up). Waits
 * until tccld answers, ms at most. Returns 0 with the folder of its files (tccld's socket is
 * FOLDER/socket), or -1 with err: nothing is left then. */
enum { RUN_FOLDER = 64 };
int run_keeper_start(const struct run_keeping *keeping, int ms, char folder[static RUN_FOLDER],
                     struct tccl_error *err);
