/* acct-summary-parts.c: the parts of a summary that both the text and the page show. */
#include "acct/acct-summary-parts.h"

#include <math.h>
#include <stdio.h>

#include "base/fields.h"

enum { DAY = 86400 };

double acct_real_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

json_int_t acct_count_of(const json_t *object, const char *name)
{
    const json_int_t most = 1000000000000;
    json_int_t count = tccl_number_of(object, name);
    return count < 0 ? 0 : count > most ? most : count;
}

int acct_summary_words(const json_t *words, struct acct_word list[static ACCT_WORDS])
{
    int count = 0;
    const char *word;
    json_t *value;
    json_object_foreach((json_t *)words, word, value)
    {
        int at = count < ACCT_WORDS ? count++ : ACCT_WORDS;
        for (; at > 0 && list[at - 1].steps < json_integer_value(value); at--)
            if (at < ACCT_WORDS)
                list[at] = list[at - 1];
        if (at < ACCT_WORDS)
            list[at] = (struct acct_word){word, json_integer_value(value)};
    }
    return count;
}

static const char *ending(json_int_t count)
{
    return count == 1 ? "" : "s";
}

/* The gain of rings that NCCL built; where none is known to be, that which is predicted. */
static int put_gain(const json_t *summary, char *text, size_t size)
{
    const json_t *built = json_object_get(summary, "gain_built");
    long long steps = (long long)acct_count_of(built, "steps");
    double median = acct_real_of(built, "median"), predicted = acct_real_of(summary, "gain_median");
    if (steps > 0 && median > 0)
        return snprintf(text, size,
                        "; NCCL built %lld of them, %.2f times as fast as its own at the "
                        "median",
                        steps, median);
    return predicted > 0 ? snprintf(text, size,
                                    "; predicted to be %.2f times as fast as NCCL's own "
                                    "at the median",
                                    predicted)
                         : 0;
}

void acct_summary_lead(const json_t *summary, char text[static ACCT_LEAD])
{
    const json_t *states = json_object_get(summary, "states");
    const json_t *reason = json_array_get(json_object_get(summary, "reasons"), 0);
    json_int_t steps = acct_count_of(summary, "steps"),
               fallbacks = acct_count_of(states, "fallback");
    json_int_t rings = acct_count_of(states, "applied") + acct_count_of(states, "partial") +
                       acct_count_of(states, "differs");
    int length = snprintf(text, ACCT_LEAD, "%lld step%s, %lld with a ring", (long long)steps,
                          ending(steps), (long long)rings);
    if (rings > 0)
        length += put_gain(summary, text + length, ACCT_LEAD - (size_t)length);
    if (fallbacks > 0)
        length += snprintf(text + length, ACCT_LEAD - (size_t)length, "; %lld fell back",
                           (long long)fallbacks);
    if (fallbacks > 0 && acct_count_of(reason, "fallbacks") > 0)
        snprintf(text + length, ACCT_LEAD - (size_t)length, ", most often: %.60s",
                 tccl_text_of(reason, "class"));
}

bool acct_summary_gains(const json_t *summary, size_t *first, size_t *last)
{
    const json_t *gains = json_object_get(summary, "gains");
    *first = json_array_size(gains);
    *last = 0;
    for (size_t i = 0; i < json_array_size(gains); i++) {
        if (acct_real_of(json_array_get(gains, i), "steps") <= 0)
            continue;
        if (*first > i)
            *first = i;
        *last = i;
    }
    return *first < json_array_size(gains);
}

void acct_gain_range(const json_t *part, char *text, size_t size)
{
    const json_t *to = json_object_get(part, "to");
    double from = acct_real_of(part, "from");
    if (json_is_number(to))
        snprintf(text, size, "%.2f - %.2f", from, json_number_value(to));
    else
        snprintf(text, size, "%.2f -", from);
}

bool acct_node_stands_out(const json_t *node)
{
    const double slow = 0.95; /* of the best */
    return acct_real_of(node, "share") < slow || tccl_number_of(node, "fallbacks");
}

static double gained(double is, double might)
{
    return is > 0 ? 100 * (might / is - 1) : 0;
}

static bool sharing_text(const json_t *sharing, char text[static ACCT_LOSS])
{
    double gbps = acct_real_of(sharing, "gbps"), alone = acct_real_of(sharing, "alone_gbps");
    long long steps = (long long)acct_count_of(sharing, "steps");
    if (steps > 0)
        snprintf(text, ACCT_LOSS,
                 "Sharing: %lld step%s began beside others: mean %.2f GB/s, %.2f alone (%.0f "
                 "%% lost)",
                 steps, steps == 1 ? "" : "s", gbps, alone,
                 alone > 0 ? fmax(0, 100 * (1 - gbps / alone)) : 0);
    return steps > 0;
}

static bool placement_text(const json_t *placement, char text[static ACCT_LOSS])
{
    double alone = acct_real_of(placement, "alone_gbps"),
           placed = acct_real_of(placement, "placed_gbps");
    long long steps = (long long)acct_count_of(placement, "steps"),
              unknown = (long long)acct_count_of(placement, "unknown");
    char rest[64] = "";
    if (steps > 0 && unknown > 0)
        snprintf(rest, sizeof(rest), "; unknown of %lld more", unknown);
    if (steps > 0)
        snprintf(text, ACCT_LOSS,
                 "Placement: %lld step%s alone: mean %.2f GB/s, %.2f on their machines' best GPUs "
                 "(+%.0f %%)%s",
                 steps, steps == 1 ? "" : "s", alone, placed, gained(alone, placed), rest);
    else if (unknown > 0)
        snprintf(text, ACCT_LOSS,
                 "Placement: unknown what the best GPUs would have given (%lld step%s)", unknown,
                 unknown == 1 ? "" : "s");
    return steps > 0 || unknown > 0;
}

bool acct_summary_loss(const json_t *summary, int which, char text[static ACCT_LOSS])
{
    return which ? placement_text(json_object_get(summary, "placement"), text)
                 : sharing_text(json_object_get(summary, "sharing"), text);
}

/* Days since the first one. */
static json_int_t days_after(const json_t *days, size_t i)
{
    json_int_t first = acct_count_of(json_array_get(days, 0), "start");
    json_int_t start = acct_count_of(json_array_get(days, i), "start");
    return start < first ? 0 : (start - first + DAY / 2) / DAY;
}

/* Folds the days from index first on that belong to its span. Returns the index past them. */
static size_t add_days(const json_t *days, size_t first, json_int_t each, struct acct_span *span)
{
    size_t i = first;
    double gains = 0;
    json_int_t n_gains = 0, place = days_after(days, first) / each;
    *span = (struct acct_span){.place = (int)place,
                               .noon = acct_count_of(json_array_get(days, 0), "start") +
                                       place * each * DAY + DAY / 2};
    for (; i < json_array_size(days) && days_after(days, i) / each == place; i++) {
        const json_t *day = json_array_get(days, i);
        json_int_t applied = acct_count_of(day, "applied"), times = applied ? applied : 1;
        span->steps += acct_count_of(day, "steps");
        span->applied += applied;
        span->built += acct_count_of(day, "built");
        span->fallback += acct_count_of(day, "fallback");
        if (json_is_number(json_object_get(day, "gain_mean"))) {
            gains += acct_real_of(day, "gain_mean") * (double)times;
            n_gains += times;
        }
    }
    span->gain = n_gains ? gains / (double)n_gains : 0;
    return i;
}

int acct_summary_spans(const json_t *summary, struct acct_span spans[static ACCT_SPANS],
                       json_int_t *each)
{
    const json_t *days = json_object_get(summary, "days");
    size_t count = json_array_size(days);
    int n = 0;
    *each = count > 0 ? days_after(days, count - 1) / ACCT_SPANS + 1 : 1;
    for (size_t i = 0; i < count && n < ACCT_SPANS; n++)
        i = add_days(days, i, *each, &spans[n]);
    return n;
}
