/* acct-summary-parts.h: the parts of a summary (profiler/client/README.md, SUMMARY) that both the
 * text and the page show. */
#ifndef TCCL_ACCT_SUMMARY_PARTS_H
#define TCCL_ACCT_SUMMARY_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* A number of the object; 0 if absent. */
double acct_real_of(const json_t *object, const char *name);
/* A count or a time of the object, clamped to 0 … 10^12, so that sums can't overflow. */
json_int_t acct_count_of(const json_t *object, const char *name);

enum { ACCT_WORDS = 33 };
struct acct_word {
    const char *word; /* borrowed */
    json_int_t steps;
};
/* Words and their numbers of steps, most first. Returns how many words, at most ACCT_WORDS. */
int acct_summary_words(const json_t *words, struct acct_word list[static ACCT_WORDS]);

enum { ACCT_LEAD = 512 };
/* What is to be said first: how many steps have a ring, what is gained, and why others have none.
 */
void acct_summary_lead(const json_t *summary, char text[static ACCT_LEAD]);

/* The histogram of gains from the first part with steps to the last. Returns whether there are
 * any. */
bool acct_summary_gains(const json_t *summary, size_t *first, size_t *last);
/* Bounds of such a part: "1.50 - 2.00", or "6.00 -". */
void acct_gain_range(const json_t *part, char *text, size_t size);

/* Is the node slow, or did steps fall back because of it? */
bool acct_node_stands_out(const json_t *node);

enum { ACCT_LOSS = 192, ACCT_LOSSES = 2 };
/* A line: 0, what sharing nodes costs; 1, what placement would have given, or that it is unknown.
 * False: nothing is to be said, as no ring began beside others, or there was no ring. */
bool acct_summary_loss(const json_t *summary, int which, char text[static ACCT_LOSS]);

enum { ACCT_SPANS = 31 };
/* Consecutive days, folded. */
struct acct_span {
    int place;       /* its index from the first span on; spans without steps are left out */
    json_int_t noon; /* about noon of its first day, unix time: an hour more or less (daylight
                      * saving) is still the same day */
    json_int_t steps, applied, built, fallback; /* built: of those applied, by NCCL */
    double gain; /* mean over days, weighted by applied rings; 0: unknown */
};
/* Folds the days into at most ACCT_SPANS spans of *each days. Returns how many spans have
 * steps. */
int acct_summary_spans(const json_t *summary, struct acct_span spans[static ACCT_SPANS],
                       json_int_t *each);

#endif
