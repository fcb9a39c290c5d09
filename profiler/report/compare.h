/* compare.h: two profiles side by side: their machines, the sets that both measured, what was found
 * for each GPU set. */
#ifndef TCCL_COMPARE_H
#define TCCL_COMPARE_H

#include "report/report.h"

/* A set that both measured, and whose bandwidths differ by more than noise. */
struct tccl_changed_set {
    struct tccl_set set;
    struct tccl_measurement a, b;
    double ratio; /* b / a; 0 or infinite where one of them failed */
};

/* The best ring, or the best chain over all ports, of a GPU set in both. */
struct tccl_changed_ring {
    uint32_t gpus;
    struct tccl_result a, b;
    bool faster_or_slower; /* beyond noise; else it is only another one */
};

enum { TCCL_NOTES = 64, TCCL_NOTE = 320 };

struct tccl_comparison {
    const struct tccl_report *a, *b; /* borrowed */
    bool same_machine;
    double noise; /* values closer than this ratio, or than the spreads, count as equal */
    char notes[TCCL_NOTES][TCCL_NOTE]; /* what else differs: devices, sources, conditions */
    int n_notes;
    long common, only_a, only_b;   /* measured sets */
    double least, median, most;    /* b / a, over the common ones that did not fail */
    struct tccl_changed_set *sets; /* beyond noise, largest difference first */
    long n_sets;
    struct tccl_changed_ring *rings;
    int n_rings, n_common_rings;
    uint32_t *gpus_only_a, *gpus_only_b; /* GPU sets with chains in one only, ascending */
    int n_only_a, n_only_b;
};

/* Compares; tccl_compare_free in both cases. Returns 0, or -1 with err. */
int tccl_compare(const struct tccl_report *a, const struct tccl_report *b,
                 struct tccl_comparison *comparison, struct tccl_error *err);
void tccl_compare_free(struct tccl_comparison *comparison);

/* Is anything different beyond noise? Sets that only one of them measured are no difference. */
bool tccl_compare_differs(const struct tccl_comparison *comparison);

/* A new reference; NULL only without memory. */
json_t *tccl_compare_to_json(const struct tccl_comparison *comparison);
/* For people. limit: sets to be shown. */
void tccl_compare_print(const struct tccl_comparison *comparison, long limit, FILE *out);

#endif
