/* fill.h: fills a profile: searches the chains of one GPU set after the other. */
#pragma once

#include <stdio.h>

#include "measure/backends/backend.h"
#include "profile/cache.h"
#include "search/symmetry.h"

/* ---- which GPU sets, and which of them side by side (gpusets.c) ---- */

/* All sets of a machine's GPUs that get chains: first the whole node, then its aligned halves and
 * quarters (what Slurm mostly allocates), then all the others, small ones first. Machines with more
 * than TCCL_COMPLETE_GPUS: aligned blocks only. Returns how many and *sets (the caller's), or -1
 * with err. */
enum { TCCL_COMPLETE_GPUS = 10, TCCL_MAX_GPUSETS = 1 << TCCL_COMPLETE_GPUS };
int tccl_gpusets_all(int n_gpus, uint32_t **sets, struct tccl_error *err);
/* Adds those of a larger machine that stand for others (search/alike.h), in sizes that jobs mostly
 * ask for first (2, 4, 8, then the others), until there are TCCL_MAX_GPUSETS. *sets is the
 * caller's. Returns how many there are, or -1 with err. */
int tccl_gpusets_first(int n_gpus, const struct tccl_alike *alike, const uint32_t *before, int n,
                       uint32_t **sets, struct tccl_error *err);

/* Reads "0-3 4-7" (sets separated by spaces or ';'), or "all". Returns how many and *sets, or -1
 * with err that names the set. */
int tccl_gpusets_parse(const char *text, int n_gpus, uint32_t **sets, struct tccl_error *err);

/* Sets of GPUs, as masks, that have none in common. */
struct tccl_split {
    int n; /* 2 to TCCL_MAX_SIDES */
    uint32_t parts[TCCL_MAX_SIDES];
};

/* Reads "0-1/2-3,0-3/4-7" (splits separated by ',', ';' or spaces, their sets by '/'; a set with
 * several ranges has '+' between them: "0+3/1-2"). NULL: the aligned halves and quarters of the
 * machine, as they come: two halves, a half and the quarters of the other, all quarters, and each
 * two of these. Returns how many and *splits (the caller's), or -1 with err that names the split.
 */
int tccl_splits_parse(const char *text, int n_gpus, struct tccl_split **splits,
                      struct tccl_error *err);

/* The sets that occur, each once, in *sets (the caller's). Returns how many, or -1 without memory.
 */
int tccl_splits_sets(const struct tccl_split *splits, int n_splits, uint32_t **sets);

/* ---- a run ---- */

/* What a run does now: measured hardware first gets its matrix (firstsets.c), then the transfers
 * that show which parts of it are alike, --neighbours: what pairs of transfers do to each other
 * (pairs.c), then its chains; --neighbours: then what steps do to each other (fill-together.c). */
enum tccl_fill_phase {
    TCCL_FILL_MATRIX,
    TCCL_FILL_SYMMETRY,
    TCCL_FILL_PAIRS,
    TCCL_FILL_CHAINS,
    TCCL_FILL_TOGETHER
};

struct tccl_fill_progress {
    enum tccl_fill_phase phase;
    int step, steps; /* sets of the matrix */
    uint32_t gpus;   /* the set at work */
    long known;      /* sets measured by earlier runs */
    long measured;   /* sets measured now; failed ones count */
    long failed;     /* of them: could not be measured */
    long noisy;      /* of them: the spread stayed too large */
    long sets;       /* of those measured now: for ring sets */
    long shared;     /* answered by a known or symmetric set */
    long pruned;     /* ways that need no measuring, since a part of them is too slow */
    int done, total; /* tables */
    int kept;        /* of those done: were there already */
    int proven;      /* tables proven as far as asked; right at the end only, as the next ones */
    int partial;     /* tables with chains that may not be the best */
    int together;    /* rings of several steps measured together that the profile has, */
    int together_before, together_total; /* of them: by earlier runs; of so many */
    int foretold;    /* of the rest: are foretold by what was measured; right at the end only */
    double fraction; /* of all the work, roughly; 0 to 1 */
    double left;     /* seconds of the budget; negative: it is no time */
    struct tccl_error why;  /* which set failed last, and why */
    int faster;             /* sets that are slower than a larger one, at the end; */
    struct tccl_error most; /* and the one that is most (tccl_oddity_format) */
};

struct tccl_fill_options {
    const uint32_t *sets; /* of GPUs */
    int n_sets;
    bool all; /* of a machine with more than TCCL_COMPLETE_GPUS also those that stand for others */
    const struct tccl_split *splits; /* for tccl_fill_together, and pairs; NULL: none */
    int n_splits;
    double gap;     /* stop each search when proven within this ratio */
    long budget;    /* transfer sets to measure for one GPU set at most; 0: no limit */
    double seconds; /* for each of the two calls; 0: no limit */
    int pairs;      /* port pairs to search to the end; 0: all */
    /* Called often, may be NULL; non-zero stops: what was measured is kept. */
    int (*progress)(void *context, const struct tccl_fill_progress *progress);
    void *context;
};

enum { TCCL_FILL_DONE, TCCL_FILL_STOPPED, TCCL_FILL_TIME };

/* Measures and writes what is missing in the profile (opened with tccl_profile_create for this back
 * end, and claimed for its conditions). Each measured set is in the log before the next is
 * measured; a table that is there, good, and as far proven as asked is kept; one that is replaced
 * loses nothing of what it had. Where time is limited, no table gets more than its part of it, and
 * what is left in the end goes to those that needed more. Transfers that the back end can't measure
 * (tccl_backend_can) are left out: pairs of ports that need them stay unknown. Under marks
 * (backend->marks) all is measured and no table written. Returns TCCL_FILL_DONE;
 * TCCL_FILL_STOPPED if progress stopped it, TCCL_FILL_TIME if the time was over (the table at work
 * is written if it has a chain); -1 with err. *end is how far it came, in any case. */
int tccl_fill(struct tccl_backend *backend, struct tccl_profile *profile,
              const struct tccl_fill_options *options, struct tccl_fill_progress *end,
              struct tccl_error *err);

/* Rings and chains of several sets of GPUs, measured while all of them run: what steps do to each
 * other (machine/sides.h).
 *
 * Of each set of a split its chain table gives candidates: the best ring, NCCL's own, the best
 * chain between NICs, NCCL's chains, then others, the fastest first; 20 of each set of two, fewer
 * of more. They are run together, one of each set: all combinations in which at most one set has
 * another than the first two of them, which a step runs that started alone. The
 * transfers of one side are rated while those of the others run, then those of the next one, so
 * nobody is judged by the neighbour's slowest transfer. What the profile has is not measured again;
 * each result is in its log before the next one is measured. Sets without a table, and candidates
 * that the back end can't measure, are left out. *end (as tccl_fill left it) counts on. Returns as
 * tccl_fill. */
int tccl_fill_together(struct tccl_backend *backend, struct tccl_profile *profile,
                       const struct tccl_fill_options *options, struct tccl_fill_progress *end,
                       struct tccl_error *err);

/* firstsets.c. */
enum { TCCL_FIRST_SETS = 600 };

/* Lists the sets that a person wants to know of any machine, what says most first: GPUs and NICs
 * with their own memory, two ways out of a switch, GPUs among each other; a GPU writing and reading
 * at once, two GPUs on one memory, both ways between two GPUs and at a NIC; then the memories
 * farther away. Of large machines the first TCCL_FIRST_SETS. Returns how many and *sets (the
 * caller's), or -1 with err. */
int tccl_first_sets(const struct tccl_machine *machine, struct tccl_set **sets,
                    struct tccl_error *err);

/* drift.c: does a profile still hold? A sample of its sets, measured again. */

enum { TCCL_DRIFT_SETS = 1000, TCCL_DRIFT_WHAT = 48 };

enum tccl_drift_verdict {
    TCCL_DRIFT_HOLDS,
    TCCL_DRIFT_DRIFTED,
    TCCL_DRIFT_UNCLEAR, /* half of the sample or more can't be told: noisy, or can't be measured */
};

struct tccl_drift_set {
    struct tccl_set set;
    char what[TCCL_DRIFT_WHAT]; /* "best ring of GPUs 0-3", "alone", "random" */
    double then, now;           /* GB/s */
    double limit;               /* now / then may differ from 1 by so much */
    double spread_then, spread;
    bool drifted, noisy, failed;
};

struct tccl_drift {
    struct tccl_drift_set *sets; /* those measured again, in order */
    int count, drifted, noisy, failed;
    double median; /* of now / then; 0: nothing can be told */
    double limit;  /* median of the limits: of one set smaller changes are not seen */
    int worst;     /* whose bandwidth changed most; -1 */
    enum tccl_drift_verdict verdict;
};

struct tccl_drift_options {
    int sets;       /* at most, up to TCCL_DRIFT_SETS */
    double seconds; /* 0: no limit; one set is measured in any case */
    unsigned seed;  /* of the sets that are drawn */
    /* Called before each set, may be NULL; non-zero stops. */
    int (*progress)(void *context, int done, int count);
    void *context;
};

/* Measures again: the best chains and NCCL's own, of the whole node first; transfers alone; and
 * sets that are drawn. A set that differs by more than four times the noise, or
 * one and a half times its spreads, is measured three times, and has drifted only if all say so;
 * so has the profile if the median of five sets or more differs by one and a half times these.
 * Nothing is written. Returns 0; 1 if progress stopped it; -1 with err (nothing measured yet, the
 * back end can't go on). clear is right after all. */
int tccl_drift_check(struct tccl_backend *backend, struct tccl_profile *profile,
                     const struct tccl_drift_options *options, struct tccl_drift *drift,
                     struct tccl_error *err);
void tccl_drift_clear(struct tccl_drift *drift);

/* pairs.c: what two GPUs of different jobs do to each other: two transfers at once, one of each. */

struct tccl_pairs {
    struct tccl_run_meter *meter;
    const struct tccl_symmetry *symmetry; /* NULL: none */
    bool (*stop)(void *context);          /* called before each measurement */
    void *context;
};

/* Measures each transfer alone that chains have between GPUs, and then pairs of them that have no
 * GPU in common: of those that are alike one, and a second one, of other GPUs, if it collapses
 * (search/oddity.h), each of them twice; all if that one does not. Pairs below one switch come
 * first; no more than TCCL_MAX_PAIRS that do not collapse. What is known is not measured again.
 * Returns 0, also if stop ended it; -1 with err, as tccl_run_meter_measure, or without memory. */
enum { TCCL_MAX_PAIRS = 500 };
int tccl_pairs_measure(const struct tccl_pairs *pairs, struct tccl_error *err);

/* progress.c: how far tccl-profile is, on one line: redrawn with a bar on a terminal; elsewhere a
 * line a second at first, later one in ten seconds. */

struct tccl_progress_line {
    FILE *out; /* NULL: says nothing */
    const char *machine;
    bool terminal;
    bool drawn;
    int percent;         /* never goes back */
    double begun, shown; /* seconds of a clock that never jumps */
    double prepared;     /* seconds before the chains, whose work is what is judged by */
};

void tccl_progress_begin(struct tccl_progress_line *line, FILE *out, const char *machine);
void tccl_progress_show(struct tccl_progress_line *line, const struct tccl_fill_progress *progress);

/* The summary, in place of the line. rc as tccl_fill returned it: after -1 the line only goes.
 * note: what else is to be said, or "". */
void tccl_progress_end(struct tccl_progress_line *line, const struct tccl_fill_progress *progress,
                       int rc, const char *note);

/* The line itself, of at most width columns on a terminal, without a newline. elapsed: seconds
 * since the begin. */
enum { TCCL_PROGRESS_TEXT = 512 };
void tccl_progress_format(struct tccl_progress_line *line,
                          const struct tccl_fill_progress *progress, double elapsed, int width,
                          char text[static TCCL_PROGRESS_TEXT]);
