/* report.h: what a profile says, put together for people: how it was measured, bandwidth matrices,
 * congested loads, and the rings found. */
#pragma once

#include "report/bandwidths.h"
#include "report/congestion.h"
#include "report/odd.h"
#include "ring/node-class.h"
#include "search/limit.h"
#include "search/oddity.h"

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
