/* acct-summary.h: the days of a summary (profiler/client/README.md, SUMMARY); the rest of it is in
 * acct.h. */
#pragma once

#include <jansson.h>

enum { ACCT_SPANS = 31 };
/* Consecutive days, folded. */
struct acct_span {
    int place;       /* its index from the first span on; spans without steps are left out */
    json_int_t noon; /* about noon of its first day, unix time: an hour more or less (daylight
                      * saving) is still the same day */
    json_int_t steps, planned, built, failed; /* built: of those planned, by NCCL */
    double gain; /* mean over days, weighted by planned rings; 0: unknown */
};
/* Folds the days into at most ACCT_SPANS spans of *each days. Returns how many spans have
 * steps. */
int acct_summary_spans(const json_t *summary, struct acct_span spans[static ACCT_SPANS],
                       json_int_t *each);
