/* report.h: what a profile says, put together for people: how it was measured, bandwidth matrices,
 * congested loads, and the rings found. */
#pragma once

#include "doctor/doctor.h"
#include "machine/machine.h"
#include "profile/cache.h"
#include "profile/measured.h"
#include "ring/node-class.h"
#include "search/limit.h"
#include "search/oddity.h"

/* bandwidths.c: bandwidth matrices, as one expects them from a bandwidth test: between host and
 * devices, between devices, to and from the network; one way, and both ways at once. */

enum tccl_cell_state {
    TCCL_CELL_IMPOSSIBLE, /* these two can't meet on this machine */
    TCCL_CELL_UNKNOWN,    /* not measured */
    TCCL_CELL_FAILED,     /* could not be measured */
    TCCL_CELL_MEASURED,
    TCCL_CELL_MODEL /* asked from the model */
};

struct tccl_matrix_cell {
    enum tccl_cell_state state;
    bool noisy;
    double gbps, spread; /* where measured, or from the model */
};

enum { TCCL_MATRICES = 13, TCCL_SIDE = 16, TCCL_LABEL = TCCL_NAME };

struct tccl_matrix {
    const char *name;  /* "host_to_gpu" */
    const char *title; /* for people */
    uint8_t row_kind, column_kind;
    int rows, columns;
    struct tccl_matrix_cell cells[TCCL_SIDE][TCCL_SIDE];
    int known; /* cells with a bandwidth */
    int from_model;
    double min, median, max; /* of those, GB/s */
};

/* Fills in the i-th matrix, 0 <= i < TCCL_MATRICES. Where no cell is possible (no NIC, no P2P), it
 * has 0 rows. */
void tccl_matrix_fill(int i, const struct tccl_machine *machine,
                      const struct tccl_measured *measured, struct tccl_matrix *matrix);

/* The set of transfers of a cell of the i-th matrix. */
void tccl_matrix_set(int i, int row, int column, struct tccl_set *set);
/* The same in words: "GPU 5 writes to memory 1". */
void tccl_matrix_say(int i, const struct tccl_machine *machine, int row, int column,
                     char text[static 2 * TCCL_NAME + 64]);

/* "GPU 0", "memory 1", "mlx5_0". */
void tccl_device_label(const struct tccl_machine *machine, struct tccl_device device,
                       char label[static TCCL_LABEL]);

/* What stands in a cell: "12.30", "12.30~" noisy, "12.30*" from the model, "-" impossible, "?" not
 * measured, "!" failed. */
enum { TCCL_CELL_TEXT = 32 };
void tccl_cell_format(const struct tccl_matrix_cell *cell, char text[static TCCL_CELL_TEXT]);
/* The bandwidth against the fastest of all matrices that are shown (GB/s), 0 to 1; -1 where there
 * is none. */
double tccl_cell_heat(const struct tccl_matrix_cell *cell, double fastest);

/* Prints it aligned; in colours against the fastest of all matrices, unless that is 0. */
void tccl_matrix_print(const struct tccl_matrix *matrix, const struct tccl_machine *machine,
                       double fastest, FILE *out);
/* A new reference; NULL only without memory. */
json_t *tccl_matrix_to_json(const struct tccl_matrix *matrix, const struct tccl_machine *machine);

/* congestion.c: transfer sets that stay far below what their parts reach alone. */

struct tccl_congested {
    struct tccl_set set;
    double gbps;   /* of the slowest member while all run, GB/s */
    double alone;  /* what the slowest of the members reaches alone */
    double ratio;  /* gbps / alone */
    bool at_least; /* some member was not measured alone: it reaches at least that */
    bool noisy;
    enum tccl_answer from; /* measured, or asked from the model */
    unsigned marks;        /* of enum tccl_mark */
    bool repeats; /* one before it in the list is alike: members of the same kinds, as slow */
    long alike;   /* how many behind it are like this one */
    long hides;   /* measured sets that hold this one and are about as slow */
};

enum { TCCL_MAX_CONGESTED = 4096 };

/* The sets whose bandwidth is below threshold (0 to 1) times what the slowest member reaches alone,
 * by more than both spreads; worst first. A set is left out if a smaller one in the list is about
 * as slow and part of it: the list holds causes. With a model, sets are reduced to the smallest
 * part that is as slow. At most TCCL_MAX_CONGESTED. *list is the caller's. Returns how many, or -1
 * with err. */
long tccl_congestion_find(const struct tccl_measured *measured, double threshold,
                          struct tccl_congested **list, struct tccl_error *err);

/* A new reference; NULL only without memory. */
json_t *tccl_congestion_to_json(const struct tccl_congested *congested);

/* odd.c: figures that are off among equals. Transfers that the machine's description can't tell
 * apart should be as fast as each other; one that is far slower than its likes has a reason that no
 * description has: a slot, a cable, a setting. */

enum { TCCL_ODDS = 8, TCCL_ODD_TEXT = 2 * TCCL_NAME + 240 };

struct tccl_odd {
    int matrix, row, column; /* its worst figure */
    double gbps, likes;      /* that, and the median of its likes, GB/s */
    int n_likes;
    bool of_one;               /* one device is off: the one below */
    struct tccl_device device; /* else that beside a memory, or a memory: nobody knows which */
    int off, known;            /* so many of the device's figures with likes are off */
};

/* Finds them in the matrices of a machine (TCCL_MATRICES, tccl_matrix_fill): slower than the median
 * of at least two likes by a fifth, and by five times the spreads, while the likes that are not
 * are within a sixth of each other. Noisy figures say nothing. Figures of one device, half of which
 * are off in one matrix, count as one, and so do those between two devices. Returns how many, at
 * most TCCL_ODDS, the worst devices first; -1 with err (no memory). */
int tccl_odd_find(const struct tccl_machine *machine,
                  const struct tccl_matrix matrices[static TCCL_MATRICES],
                  struct tccl_odd odds[static TCCL_ODDS], struct tccl_error *err);

/* "GPU 5 writes to memory 1 at 6.2 GB/s, its 3 likes at 12.4; 9 of 12 figures of GPU 5 are off". */
void tccl_odd_format(const struct tccl_machine *machine, const struct tccl_odd *odd,
                     char text[static TCCL_ODD_TEXT]);

/* What to do about it, with what the doctor sees at the device or above it, if it is here. */
void tccl_odd_advise(const struct tccl_machine *machine, const struct tccl_odd *odd,
                     const struct tccl_doctor_facts *facts,
                     const struct tccl_doctor_findings *findings, char text[static TCCL_ODD_TEXT]);

/* Fills in all matrices of a profile, finds what is off, and says what to do about each (a model's
 * machine isn't here). Returns how many; -1 with err. */
int tccl_odd_advised(const struct tccl_profile *profile, const struct tccl_measured *measured,
                     struct tccl_matrix matrices[static TCCL_MATRICES],
                     struct tccl_odd odds[static TCCL_ODDS],
                     char advice[static TCCL_ODDS][TCCL_ODD_TEXT], struct tccl_error *err);

/* Bus id of the device, "" of a memory or where nobody knows which it is. */
const char *tccl_odd_busid(const struct tccl_machine *machine, const struct tccl_odd *odd);

/* How well it was measured. */
struct tccl_quality {
    long sets; /* different ones */
    long noisy, failed, marked;
    unsigned marks;       /* of enum tccl_mark, that any set has */
    double median_spread; /* over the good sets */
    double worst_spread;
    double median_skew, worst_skew; /* microseconds, over the sets that know it */
    double least_overlap;
    long timed; /* sets that know skew and overlap */
};

/* The best that was found, and NCCL's own. */
struct tccl_best {
    struct tccl_result one;   /* without GPUs: nothing */
    struct tccl_seen several; /* at once, as jobs get them (tccl_job_sets) */
    struct tccl_baseline baseline;
};

/* What was found for a GPU set. */
struct tccl_report_rings {
    uint32_t gpus;
    double noise;                 /* of its table */
    struct tccl_best alone, open; /* open: on one node of several, over all ports */
};

struct tccl_report {
    const struct tccl_profile *profile; /* borrowed, as the machine is */
    const struct tccl_machine *machine;
    char created_by[TCCL_NAME];
    long long created, last; /* seconds since 1970; 0 unknown */
    struct tccl_measured measured;
    struct tccl_quality quality;
    struct tccl_matrix matrices[TCCL_MATRICES];
    double fastest; /* the largest bandwidth of all matrices, GB/s: colours are against it */
    struct tccl_odd odds[TCCL_ODDS]; /* figures that are off among equals */
    char advice[TCCL_ODDS][TCCL_ODD_TEXT];
    int n_odds;
    struct tccl_oddity faster[TCCL_MAX_ODDITIES]; /* sets that a larger one is faster than */
    int n_faster;
    int together, foretold; /* results of jobs side by side: measured, and foretold by these */
    struct tccl_congested *congested;
    long n_congested;
    double threshold;
    struct tccl_report_rings *rings; /* more GPUs first */
    int n_rings, bad_rings;          /* bad: tables that could not be read */
    struct tccl_error bad;           /* why, of the first */
};

/* Reads all of the profile, which must outlive the report. threshold: see tccl_congestion_find.
 * Returns 0, or -1 with err; tccl_report_free in both cases. */
int tccl_report_make(struct tccl_profile *profile, double threshold, struct tccl_report *report,
                     struct tccl_error *err);
void tccl_report_free(struct tccl_report *report);

/* bound / bandwidth - 1; 0 where nothing is known. */
double tccl_report_gap(double gbps, double bound);

/* A new reference; NULL only without memory. */
json_t *tccl_report_to_json(const struct tccl_report *report);

/* As one page, with all that it needs inside, which is well-formed XML too. */
void tccl_report_page(const struct tccl_report *report, FILE *out);
/* What it says first: "11.45 in place of 7.86 GB/s: NCCL reads and writes memory 1 from three GPUs
 * at once", of several rings where a job gets these; "" without rings. And its section with the
 * drawings; of the machine alone where no ring was found. */
enum { TCCL_LEAD = 288 };
void tccl_report_lead(const struct tccl_report *report, char text[static TCCL_LEAD]);
void tccl_report_draw(const struct tccl_report *report, FILE *out);

/* For people, in at most 100 columns with 8 GPUs. limit: congested loads to be shown, 0: all. */
void tccl_report_print(const struct tccl_report *report, bool colours, long limit, FILE *out);

/* gres-links.c: a profile's bandwidths as numbers for Links= of gres.conf, by which Slurm chooses
 * GPUs. */

/* From 0 to TCCL_LINKS_MOST: pairs of GPUs that are as good as the best one have the most. Slurm
 * scales what is larger down to 4. */
enum { TCCL_LINKS_MOST = 4 };

/* Does this Slurm take the best linked GPUs, whatever the job asks with? Slurm up to 23.11 does;
 * from 24.05 on the least linked ones are taken for --gres and --gpus-per-node, and the best linked
 * ones for --gpus, so that no numbers serve both. */
bool tccl_links_serve(int year, int month);

/* How well each pair of GPUs goes together: the tier of the pair among all pairs of the empty node
 * (search/place.h), -1 of a GPU with itself. progress: as in search/place.h, with its context; may
 * be NULL. Returns 0; 1 with err: a pair was not measured, or all are equally good; -1 with err. */
int tccl_links_from_profile(struct tccl_profile *profile,
                            void (*progress)(void *context, int done, int total), void *context,
                            int links[static TCCL_MAX_GPUS][TCCL_MAX_GPUS], struct tccl_error *err);

/* Has one of these texts of Links= links, and not only zeros? */
bool tccl_links_said(const char *const *texts, int count);

/* Of count GPUs in the order of gres.conf (gpus: their positions in the machine), each with its
 * Links=: the first whose numbers are others than these, or missing while some have links; -1 if
 * there is none. Where no text has links (tccl_links_said), there is none. */
int tccl_links_differ(const int links[TCCL_MAX_GPUS][TCCL_MAX_GPUS], const int *gpus, int count,
                      const char *const *texts);
