/* acct-summary-parts.h: what the text and the page show of a summary (profiler/client/README.md,
 * SUMMARY). */
#ifndef TCCL_ACCT_SUMMARY_PARTS_H
#define TCCL_ACCT_SUMMARY_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* A number of the object; 0 where there is none. */
double acct_real_of(const json_t *object, const char *name);
/* A count or a time of it, from 0 to 10^12: sums of them are numbers, whatever the answer holds. */
json_int_t acct_count_of(const json_t *object, const char *name);

enum { ACCT_WORDS = 33 };
struct acct_word {
    const char *word; /* borrowed */
    json_int_t steps;
};
/* Words and how many steps, most first. Returns how many words, at most ACCT_WORDS. */
int acct_summary_words(const json_t *words, struct acct_word list[static ACCT_WORDS]);

/* The parts of the histogram of gains from the first with steps to the last. Returns whether there
 * are any. */
bool acct_summary_gains(const json_t *summary, size_t *first, size_t *last);
/* Bounds of such a part: "1.50 - 2.00", or "6.00 -". */
void acct_gain_range(const json_t *part, char *text, size_t size);

/* Is a node slow, or did steps fall back because of it? */
bool acct_node_stands_out(const json_t *node);

enum { ACCT_SPANS = 31 };
/* Consecutive days as one. */
struct acct_span {
    int place;       /* which one it is from the first on; those without steps are left out */
    json_int_t noon; /* about that of its first day, unix time: an hour more or less, where clocks
                      * were changed, is still the same day */
    json_int_t steps, applied, fallback;
    double gain; /* the mean of the days', each as often as rings were applied; 0: not known */
};
/* The days in at most ACCT_SPANS parts. *each: how many days a part has. Returns how many parts
 * have steps. */
int acct_summary_spans(const json_t *summary, struct acct_span spans[static ACCT_SPANS],
                       json_int_t *each);

#endif
