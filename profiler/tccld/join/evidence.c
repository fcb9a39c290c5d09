/* evidence.c: means of two kinds of steps are compared by a one-sided test. Noise is not known, and
 * steps are few: so the deviation is that of all steps of both kinds and of PRIOR more, taken to
 * have PRIOR_NOISE. With so few steps as it takes it is far from being found too small by chance,
 * and with 12 of each kind and little noise, or 60 with a noise of 10 %, a tenth is seen. */
#include "tccld/join/evidence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "tccld/join/running.h"

enum { PRIOR = 8 };
#define PRIOR_NOISE 0.1
#define SURE                                                                                       \
    3.3 /* deviations: by chance once in 2,000; and more of few steps, as in Student's test */
#define FAR 4.0 /* deviations that one step moves a mean at most */
#define LEAST_RATIO (1.0 / 64)
#define MOST_RATIO 8.0

/* ---- means ---- */

static double deviation(const struct evidence_mean *a, const struct evidence_mean *b)
{
    double squares = a->squares + b->squares + PRIOR * PRIOR_NOISE * PRIOR_NOISE;
    return sqrt(squares / (fmax(a->n - 1, 0) + fmax(b->n - 1, 0) + PRIOR));
}

static void add(struct evidence_mean *mean, double x)
{
    static const struct evidence_mean none;
    double far = FAR * deviation(mean, &none), off = x - mean->mean;
    if (mean->n > 0)
        off = fmin(fmax(off, -far), far);
    if (mean->n >= EVIDENCE_MOST)
        mean->squares *= 1 - 1 / mean->n;
    else
        mean->n++;
    mean->mean += off / mean->n;
    mean->squares += off * (off - off / mean->n);
}

/* Each step is between the two ratios, and so is their mean: one more adds at most the square of
 * what is between these, and of MOST steps one fades before. */
bool evidence_is_mean(const struct evidence_mean *mean)
{
    double most = mean->n * pow(log(MOST_RATIO / LEAST_RATIO), 2);
    return mean->n >= 0 && mean->n <= EVIDENCE_MOST && mean->n == floor(mean->n) &&
           mean->mean >= log(LEAST_RATIO) && mean->mean <= log(MOST_RATIO) && mean->squares >= 0 &&
           mean->squares <= most * (1 + 1e-9);
}

static double sure(double n)
{
    return SURE * (1 + 2 / n);
}

/* Is a below b, and less than the ratio times it, for sure? */
static bool is_below(const struct evidence_mean *a, const struct evidence_mean *b, double ratio)
{
    return a->n >= EVIDENCE_LEAST && b->n >= EVIDENCE_LEAST &&
           a->mean - b->mean +
                   sure(fmin(a->n, b->n)) * deviation(a, b) * sqrt(1 / a->n + 1 / b->n) <
               log(ratio);
}

/* What is promised is no mean: it has no noise. */
static bool is_untrue(const struct evidence_mean *large)
{
    static const struct evidence_mean none;
    return large->n >= EVIDENCE_LEAST &&
           large->mean + sure(large->n) * deviation(large, &none) / sqrt(large->n) <
               log(EVIDENCE_UNTRUE);
}

/* ---- rows ---- */

static void judge(struct evidence_row *row)
{
    static const struct evidence_mean none;
    struct evidence_mean *ring = &row->arms[EVIDENCE_RING], *own = &row->arms[EVIDENCE_OWN];
    if (row->off ? ring->n < EVIDENCE_AGAIN : !is_below(ring, own, EVIDENCE_SLOWER))
        return;
    row->left = exp(ring->mean - own->mean);
    row->off = row->left < EVIDENCE_SLOWER;
    *ring = row->off ? none : *ring;
}

static bool is_good(const struct evidence_row *row)
{
    return !row->off && row->arms[EVIDENCE_RING].n >= EVIDENCE_ENOUGH &&
           row->arms[EVIDENCE_OWN].n >= EVIDENCE_ENOUGH;
}

static void drop(struct evidence_table *table, int i)
{
    int last = --table->n;
    table->subjects[i] = table->subjects[last];
    table->rows[i] = table->rows[last];
}

/* MiB; 0: too small to say anything. */
static int size_of(int64_t bytes)
{
    int size = EVIDENCE_LARGE;
    while (size >= 4 && bytes < (int64_t)size << 20)
        size /= 4;
    return size >= 4 ? size : 0;
}

static struct evidence_row *row_of(struct evidence_table *table, const struct running_step *step,
                                   int from)
{
    const uint64_t subject = (uint64_t)step->subject;
    const int nccl = step->nccl / 100;
    for (int i = 0; i < table->n; i++) {
        struct evidence_row *row = &table->rows[i];
        if (table->subjects[i] == subject && row->uid == step->uid && row->nccl == nccl &&
            row->from == from)
            return row;
    }
    /* Of a user who has many, his oldest row; of all the oldest, if there are too many. */
    uint32_t uid = step->uid;
    int of_user = 0, his = -1, any = -1;
    for (int i = 0; i < table->n; i++) {
        bool own = table->rows[i].uid == uid;
        of_user += own;
        if (own && (his < 0 || table->rows[i].order < table->rows[his].order))
            his = i;
        if (any < 0 || table->rows[i].order < table->rows[any].order)
            any = i;
    }
    if (of_user >= EVIDENCE_OF_USER)
        drop(table, his);
    else if (table->n == EVIDENCE_ROWS)
        drop(table, any);
    struct evidence_row *row = &table->rows[table->n];
    table->subjects[table->n++] = subject;
    *row = (struct evidence_row){.n_nodes = step->n_nodes,
                                 .uid = step->uid,
                                 .nccl = nccl,
                                 .from = from,
                                 .first = table->order + 1,
                                 .promised = step->promised};
    snprintf(row->what, sizeof(row->what), "%s", step->what);
    return row;
}

bool evidence_add(struct evidence_table *table, const struct running_step *step,
                  enum evidence_arm arm, int64_t bytes, double achieved)
{
    double ratio = achieved / step->promised;
    if (step->subject == 0 || step->nccl < 100 || !(step->promised > 0) || !(achieved > 0) ||
        size_of(bytes) == 0 || !(ratio >= LEAST_RATIO && ratio <= MOST_RATIO))
        return false;
    struct evidence_row *row = row_of(table, step, size_of(bytes));
    for (int i = 0; i < table->n; i++)
        if (table->subjects[i] == (uint64_t)step->subject && table->rows[i].uid == step->uid)
            table->rows[i].latest = false;
    row->latest = true;
    row->order = ++table->order;
    add(&row->arms[arm], log(ratio));
    if (arm == EVIDENCE_RING && row->from == EVIDENCE_LARGE)
        add(&row->large, log(ratio));
    judge(row);
    return true;
}

/* ---- what it says ---- */

/* The one in the middle of values that are put one after the other. */
static double middle(double *values, int n)
{
    for (int i = 1; i < n; i++)
        for (int at = i; at > 0 && values[at - 1] > values[at]; at--) {
            double value = values[at];
            values[at] = values[at - 1];
            values[at - 1] = value;
        }
    return n > 0 ? exp(values[n / 2]) : 0;
}

enum { VOTERS = 64 /* users of a subject who are looked at */ };

struct votes {
    double ratios[VOTERS], reached[VOTERS];
    int n_ratios, n_reached, n_untrue;
};

static void count_vote(const struct evidence_row *row, struct votes *votes,
                       struct evidence_view *view)
{
    const struct evidence_mean *ring = &row->arms[EVIDENCE_RING], *own = &row->arms[EVIDENCE_OWN];
    view->slower += row->off;
    view->good += is_good(row);
    bool compared = row->off || (ring->n >= EVIDENCE_LEAST && own->n >= EVIDENCE_LEAST);
    if (compared && votes->n_ratios < VOTERS)
        votes->ratios[votes->n_ratios++] = row->off ? log(row->left) : ring->mean - own->mean;
    if (row->large.n >= EVIDENCE_LEAST && votes->n_reached < VOTERS) {
        votes->reached[votes->n_reached++] = row->large.mean;
        votes->n_untrue += is_untrue(&row->large);
    }
}

/* Was something else promised to these GPUs after its last step? They have been measured anew. */
static bool is_past(const struct evidence_table *table, const struct evidence_row *latest,
                    uint64_t subject)
{
    for (int i = 0; latest && i < table->n; i++) {
        const struct evidence_row *row = &table->rows[i];
        if (table->subjects[i] != subject && row->first > latest->order &&
            row->n_nodes == latest->n_nodes && strcmp(row->what, latest->what) == 0)
            return true;
    }
    return false;
}

struct evidence_view evidence_look(const struct evidence_table *table, uint64_t subject, int users)
{
    struct evidence_view view = {.row = NULL};
    struct votes votes = {.n_ratios = 0};
    for (int i = 0; i < table->n; i++) {
        const struct evidence_row *row = &table->rows[i];
        if (table->subjects[i] != subject)
            continue;
        if (!view.row || row->order > view.row->order)
            view.row = row;
        for (int arm = 0; arm < EVIDENCE_ARMS; arm++)
            view.steps[arm] += row->arms[arm].n;
        if (row->latest)
            count_vote(row, &votes, &view);
    }
    view.off = view.slower >= users && view.slower > view.good;
    view.untrue = votes.n_untrue >= users && 2 * votes.n_untrue > votes.n_reached &&
                  !is_past(table, view.row, subject);
    view.ratio = middle(votes.ratios, votes.n_ratios);
    view.reached = middle(votes.reached, votes.n_reached);
    return view;
}

bool evidence_leaves(const struct evidence_table *table, uint64_t subject, uid_t uid, int users)
{
    bool known = false;
    for (int i = 0; i < table->n; i++) {
        const struct evidence_row *row = &table->rows[i];
        if (table->subjects[i] != subject)
            continue;
        known = true;
        if (row->uid == uid && row->latest && (row->off || is_good(row)))
            return row->off;
    }
    return known && evidence_look(table, subject, users).off;
}

bool evidence_draws(const struct tccl_step_key *key, const char *what, int share)
{
    char text[TCCL_KEY_CLUSTER + 64];
    int length = snprintf(text, sizeof(text), "%.32s %s %u", what, key->cluster,
                          key->het_job ? key->het_job : key->job);
    return (int)(tccl_hash64(text, (size_t)length) % TRIAL_WHOLE) < share;
}
