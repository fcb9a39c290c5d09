/* metrics.h: what this tccld has done since its start, in numbers, as OpenMetrics text
 * (https://openmetrics.io) that older readers of Prometheus' text format take as well. */
#pragma once

#include <time.h>

#include "client/client.h"
#include "doctor/doctor.h"
#include "profile/stamp.h"
#include "tccld/main/daemon.h"

enum { METRICS_NAME = 64 };

/* What is known of this node's profile. */
struct metrics_profile {
    bool there;
    char machine[METRICS_NAME]; /* id */
    char source[METRICS_NAME];  /* model, host, cuda */
    time_t measured;            /* when a set was last measured; 0: never */
    time_t searched;            /* when the oldest chain table was written; 0: there is none */
    long sets, noisy, failed;   /* measured sets; those that stayed noisy; those that failed */
    int tables;                 /* GPU sets with chains */
};

/* What tccl-check machine finds here, as far as this tccld sees: without NVML, and mostly without
 * root. */
struct metrics_machine {
    int findings[TCCL_DOCTOR_LEVELS];
};

struct metrics;

/* All zero; the same numbers again. NULL without memory; the caller frees. */
struct metrics *metrics_new(void);
struct metrics *metrics_copy(const struct metrics *metrics);
void metrics_free(struct metrics *metrics); /* NULL is fine */

/* A JOIN came from this node. */
void metrics_join(struct metrics *metrics, enum tccl_mode mode);

/* It was answered: reason counts where it failed, with a ring ratio (the ring's bandwidth over
 * NCCL's own choice; 0: not known) and rings (how many run at once). waited_us: since the JOIN,
 * microseconds; not counted where the state is off. */
void metrics_answer(struct metrics *metrics, enum tccl_state state, enum tccl_reason reason,
                    double ratio, int64_t rings, int64_t waited_us);

/* A step that began here has ended, and was measured: with the ring that NCCL built, with NCCL's
 * own choice, or with that since a trial, or what was measured before, left the ring out. share:
 * what it achieved of what was predicted (tccl_achieved_share); of rings, 0: not known. */
enum metrics_kind { METRICS_RING, METRICS_OWN, METRICS_TRIAL, METRICS_KINDS };
void metrics_measured(struct metrics *metrics, enum metrics_kind kind, double share);

/* What tccld can be without for a while: does it work? squeue is not shown before it was asked. */
enum metrics_part { METRICS_TCP, METRICS_STORE, METRICS_SQUEUE, METRICS_PARTS };
void metrics_works(struct metrics *metrics, enum metrics_part part, bool works);

/* Records of this node that are lost, by its ledger, and that are on no disk yet. */
void metrics_records(struct metrics *metrics, long long lost, long long pending);
/* What is worse now than when the profile was measured: links, and GPUs and NICs that are gone. */
void metrics_worse(struct metrics *metrics, int links, int gone);

/* The text, "# EOF" at its end; allocated, the caller frees. NULL without memory. started: unix
 * time. */
char *metrics_text(const struct metrics *metrics, const struct metrics_profile *profile,
                   const struct metrics_machine *machine, time_t started, time_t now);

/* metrics-file.c: MetricsFile=, written whole every METRICS_SECONDS and at the start, removed at
 * the end. */

enum { METRICS_SECONDS = 5 };

struct metrics_file;

/* For daemon->metrics. The file is that of the configuration of the moment; with none nothing is
 * written. What goes wrong is logged. Returns NULL with err without memory; the caller frees. */
struct metrics_file *metrics_file_new(struct daemon *daemon, struct tccl_error *err);
/* The configuration may name another file, or one at last. */
void metrics_file_hurry(struct metrics_file *file);
void metrics_file_free(struct metrics_file *file); /* NULL is fine */

/* metrics-profile.c: the profile of this node's machine, counted. */

/* What was counted last, and of which files: zero-initialise, and keep between calls. */
struct metrics_count {
    struct tccl_stamp described, sets, chains;
    struct metrics_profile profile;
    time_t looked;
    struct metrics_machine machine_found;
};

/* Looks at the machine again, once a minute. For the same thread. */
void metrics_look_at_machine(struct metrics_count *count, time_t now);

/* Counts again, if machine.json or the profile has changed. It reads the whole log of sets: not for
 * the event loop. Where there is no profile, or it can't be read, count->profile is all 0; it says
 * why in the place where it matters, to the steps that ask. */
void metrics_count_profile(struct metrics_count *count, const char *machine, const char *cache_dir);
