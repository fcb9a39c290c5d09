/* achieved.c: groups of steps that can be compared: as many nodes and GPUs of one class, and
 * collectives of the same size. A job is one value, however many steps it has: trials are drawn by
 * jobs, and steps of one job are alike. Bandwidths are compared by their logarithms, so that the
 * difference of means is a ratio, which outliers move little. */
#include "records/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "client/outcome.h"
#include "records/record.h"

enum {
    GROUPS = 1000, /* of further ones nothing is said */
    JOBS = 500000,
    SHOWN = 20,  /* groups, and accounts */
    ENOUGH = 5,  /* jobs with the ring, and as many without */
    LATEST = 16, /* of a group's steps alone, by which a profile is judged */
    NAMED = 240, /* bytes of their names */
    LARGE = 64 << 20
};
static const double as_fast = 0.03; /* a difference of logarithms */
static const double short_of = 0.8; /* of what the profile says: it is no longer true */
static const double small = 0.05;   /* share of the time */

enum arm { OWN, RINGS, ARMS };

/* Large collectives of a step with the ring, beside no other step. */
struct alone {
    double gbps, share;    /* promised, and reached of that */
    char nodes[NAMED + 1]; /* their list, cut */
};

struct group {
    int64_t n_nodes, gpus, from, steps[ARMS], trials, users;
    struct tccl_series shares;   /* of what was foretold, with the ring */
    struct alone latest[LATEST]; /* the one of number i in [i % LATEST] */
    int64_t n_alone;
    struct tccl_sample arms[ARMS]; /* a value for each job: logarithms of GB/s */
};

/* A job's steps with, or without, the ring in one group. */
struct unit {
    double logs; /* sum */
    long steps;
    int group;
    enum arm arm;
};

struct account {
    int64_t uid, steps, small;
    double bytes, share; /* sums */
};

struct tccl_achieved {
    struct tccl_texts classes, units_by, users_by, accounts_by;
    struct group *groups;
    struct unit *units;
    struct account *accounts;
    size_t groups_room, units_room, accounts_room;
    struct tccl_series shares;
    int64_t steps[ARMS], trials;
};

struct tccl_achieved *tccl_achieved_new(void)
{
    return calloc(1, sizeof(struct tccl_achieved));
}

void tccl_achieved_free(struct tccl_achieved *achieved)
{
    if (!achieved)
        return;
    for (int i = 0; i < achieved->classes.count; i++)
        tccl_series_clear(&achieved->groups[i].shares);
    tccl_texts_clear(&achieved->classes);
    tccl_texts_clear(&achieved->units_by);
    tccl_texts_clear(&achieved->users_by);
    tccl_texts_clear(&achieved->accounts_by);
    tccl_series_clear(&achieved->shares);
    free(achieved->groups);
    free(achieved->units);
    free(achieved->accounts);
    free(achieved);
}

/* ---- A step ---- */

/* Nodes and GPUs have 30 bits each (client/step-fields.c). -1: out of memory. */
static int find_group(struct tccl_achieved *achieved, const struct tccl_facts *facts)
{
    int count = achieved->classes.count;
    /* As the shim has them: what a user may say in its place makes no group of its own. */
    int64_t from = facts->achieved_from >= LARGE       ? LARGE
                   : facts->achieved_from >= LARGE / 4 ? LARGE / 4
                                                       : LARGE / 16;
    uint64_t tag = (uint64_t)facts->n_nodes << 32 | (uint64_t)facts->gpus << 2 |
                   (unsigned)((from > LARGE / 16) + (from > LARGE / 4));
    if (TCCL_GROW(achieved->groups, count, achieved->groups_room) != 0)
        return -1;
    int number =
        tccl_texts_number(&achieved->classes, facts->node_class, strlen(facts->node_class), tag);
    if (number == count)
        achieved->groups[number] =
            (struct group){.n_nodes = facts->n_nodes, .gpus = facts->gpus, .from = from};
    return number;
}

static int add_to_job(struct tccl_achieved *achieved, const struct tccl_facts *facts, int group,
                      enum arm arm)
{
    int count = achieved->units_by.count, users = achieved->users_by.count;
    uint64_t tag = (uint64_t)group << 1 | arm;
    const int64_t key[] = {facts->job, facts->uid};
    if (count >= JOBS)
        return 0;
    if (TCCL_GROW(achieved->units, count, achieved->units_room) != 0)
        return -1;
    int number = tccl_texts_number(&achieved->units_by, (const char *)key, sizeof(key), tag);
    if (number < 0)
        return -1;
    struct unit *unit = &achieved->units[number];
    if (number == count) {
        *unit = (struct unit){.group = group, .arm = arm};
        achieved->groups[group].users +=
            tccl_texts_number(&achieved->users_by, (const char *)&key[1], sizeof(*key),
                              (uint64_t)group) == users;
    }
    unit->logs += log(facts->achieved_gbps);
    unit->steps++;
    return 0;
}

/* With the ring, beside what the profile says; alone, too, it tells whether that is still so. */
static int count_share(struct tccl_achieved *achieved, const struct tccl_facts *facts, int number,
                       double share)
{
    struct group *group = &achieved->groups[number];
    if (tccl_series_add(&achieved->shares, share) != 0 ||
        tccl_series_add(&group->shares, share) != 0)
        return -1;
    if (facts->neighbours > 0 || facts->later > 0 || group->from < LARGE)
        return 0;
    struct alone *alone = &group->latest[group->n_alone++ % LATEST];
    alone->gbps = facts->gbps;
    alone->share = share;
    size_t length = strnlen(facts->nodes, NAMED);
    memcpy(alone->nodes, facts->nodes, length);
    alone->nodes[length] = '\0';
    return 0;
}

static int count_time(struct tccl_achieved *achieved, const struct tccl_facts *facts)
{
    uint64_t user = *facts->account ? 0 : (uint64_t)facts->uid + 1;
    int count = achieved->accounts_by.count;
    if (!(facts->sent_share > 0 && facts->sent_share <= 1))
        return 0;
    if (TCCL_GROW(achieved->accounts, count, achieved->accounts_room) != 0)
        return -1;
    int number =
        tccl_texts_number(&achieved->accounts_by, facts->account, strlen(facts->account), user);
    if (number < 0)
        return -1;
    struct account *account = &achieved->accounts[number];
    if (number == count)
        *account = (struct account){.uid = user ? facts->uid : -1};
    account->steps++;
    account->small += facts->sent_share < small;
    account->bytes += (double)facts->sent_bytes;
    account->share += facts->sent_share;
    return 0;
}

int tccl_achieved_count(struct tccl_achieved *achieved, const struct tccl_facts *facts,
                        struct tccl_error *err)
{
    const char *state = facts->shown.state;
    double share = tccl_achieved_share(facts->achieved_gbps, facts->achieved_with, facts->built,
                                       facts->gbps, facts->nccl_gbps, facts->baseline_gbps);
    bool rings = tccl_is(facts->achieved_with, "rings");
    bool counts = share > 0 && (rings ? tccl_is(facts->shown.built, "yes")
                                      : tccl_is(state, "left") || tccl_is(state, "failed"));
    enum arm arm = rings ? RINGS : OWN;
    int number = counts ? find_group(achieved, facts) : 0;
    if (count_time(achieved, facts) != 0 || number < 0)
        return tccl_fail(err, "out of memory for a summary");
    if (!counts || number >= GROUPS)
        return 0;
    bool trial = facts->shown.cause == TCCL_REASON_TRIAL;
    achieved->steps[arm]++;
    achieved->groups[number].steps[arm]++;
    achieved->trials += !rings && trial;
    achieved->groups[number].trials += !rings && trial;
    if (add_to_job(achieved, facts, number, arm) != 0 ||
        (rings && count_share(achieved, facts, number, share) < 0))
        return tccl_fail(err, "out of memory for a summary");
    return 0;
}

/* ---- The answer ---- */

static json_t *real_or_null(bool known, double value)
{
    return known ? json_real(value) : json_null();
}

static json_t *median_or_null(struct tccl_series *series)
{
    return series->count ? json_real(tccl_series_median(series)) : json_null();
}

/* What is known of the gain: a word, and how many more jobs it would take, of either kind. */
static const char *judge(const struct group *group, double gain, double half,
                         int64_t needs[static ARMS])
{
    double most = fabs(gain) + half;
    bool enough = true;
    for (int arm = 0; arm < ARMS; arm++) {
        int64_t count = group->arms[arm].count;
        needs[arm] = count < ENOUGH ? ENOUGH - count : 0;
        enough = enough && count >= ENOUGH;
    }
    if (!enough)
        return "unknown";
    if (fabs(gain) > half)
        return gain > 0 ? "faster" : "slower";
    if (most <= as_fast)
        return "as fast";
    /* Half the width goes by the root of the number. */
    double wanted = fmax(fabs(gain), as_fast - fabs(gain)), times = half / wanted * half / wanted;
    for (int arm = 0; arm < ARMS; arm++)
        needs[arm] = (int64_t)ceil((double)group->arms[arm].count * (times - 1)) + 1;
    return "unknown";
}

static json_t *arm_json(const struct group *group, enum arm arm)
{
    const struct tccl_sample *sample = &group->arms[arm];
    return json_pack("{s:I, s:I, s:o}", "steps", (json_int_t)group->steps[arm], "jobs",
                     (json_int_t)sample->count, "gbps",
                     real_or_null(sample->count > 0, exp(sample->mean)));
}

/* Writes the nodes of steps that fell short, each list once. */
static void name_short(const struct alone *const *steps, int count,
                       char nodes[static NAMED + sizeof(", …")])
{
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        const char *list = steps[i]->nodes, *comma = used ? ", " : "";
        bool named = steps[i]->share >= short_of, fits = used + strlen(list) + 2 <= NAMED;
        for (int k = 0; k < i && !named; k++)
            named = strcmp(steps[k]->nodes, list) == 0 && steps[k]->share < short_of;
        if (!named)
            used += (size_t)sprintf(nodes + used, "%s%s", comma, fits ? list : "…");
        if (!named && !fits)
            return;
    }
}

/* Is the profile no longer true? By the latest steps, as many as were promised what the last one
 * was: after a new measurement it is another promise. Null: it is, or too few tell. */
static json_t *stale_json(const struct group *group)
{
    struct tccl_series shares = {0};
    const struct alone *steps[LATEST],
        *last = &group->latest[(group->n_alone + LATEST - 1) % LATEST];
    char nodes[NAMED + sizeof(", …")] = "";
    int count = 0;
    for (int i = 0; i < LATEST && i < group->n_alone; i++)
        if (fabs(group->latest[i].gbps - last->gbps) <= 0.01 * last->gbps)
            steps[count++] = &group->latest[i];
    for (int i = 0; i < count; i++)
        if (tccl_series_add(&shares, steps[i]->share) != 0)
            return NULL;
    double median = count >= ENOUGH ? tccl_series_median(&shares) : short_of;
    tccl_series_clear(&shares);
    if (median >= short_of)
        return json_null();
    name_short(steps, count, nodes);
    return json_pack("{s:i, s:f, s:s}", "steps", count, "share", median, "nodes", nodes);
}

static json_t *group_json(const struct tccl_achieved *achieved, int number)
{
    struct group *group = &achieved->groups[number];
    const struct tccl_sample *rings = &group->arms[RINGS], *own = &group->arms[OWN];
    int64_t needs[ARMS];
    double gain = rings->mean - own->mean, half = tccl_welch(rings, own);
    const char *word = judge(group, gain, half, needs);
    bool both = rings->count > 0 && own->count > 0;
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:s, s:{s:I, s:I}, s:o}",
        "node_class", tccl_texts_get(&achieved->classes, number), "n_nodes",
        (json_int_t)group->n_nodes, "gpus", (json_int_t)group->gpus, "from",
        (json_int_t)group->from, "rings", arm_json(group, RINGS), "own", arm_json(group, OWN),
        "trials", (json_int_t)group->trials, "users", (json_int_t)group->users, "share",
        median_or_null(&group->shares), "gain", real_or_null(both, exp(gain)), "low",
        real_or_null(both && isfinite(half), exp(gain - half)), "high",
        real_or_null(both && isfinite(half), exp(gain + half)), "verdict", word, "needs", "rings",
        (json_int_t)needs[RINGS], "own", (json_int_t)needs[OWN], "stale", stale_json(group));
}

/* The numbers of the first ones by weight, the heaviest first. Returns how many. */
static int heaviest(int count, double (*weight_of)(const struct tccl_achieved *, int),
                    const struct tccl_achieved *achieved, int chosen[static SHOWN])
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        int at = n < SHOWN ? n++ : SHOWN;
        double weight = weight_of(achieved, i);
        for (; at > 0 && weight_of(achieved, chosen[at - 1]) < weight; at--)
            if (at < SHOWN)
                chosen[at] = chosen[at - 1];
        if (at < SHOWN)
            chosen[at] = i;
    }
    return n;
}

static double steps_of(const struct tccl_achieved *achieved, int number)
{
    return (double)(achieved->groups[number].steps[OWN] + achieved->groups[number].steps[RINGS]);
}

static double bytes_of(const struct tccl_achieved *achieved, int number)
{
    return achieved->accounts[number].bytes;
}

static json_t *groups_json(const struct tccl_achieved *achieved)
{
    int chosen[SHOWN], count = achieved->classes.count;
    cleanup_json json_t *array = json_array();
    int n = heaviest(count < GROUPS ? count : GROUPS, steps_of, achieved, chosen);
    for (int i = 0; i < n; i++)
        if (json_array_append_new(array, group_json(achieved, chosen[i])) != 0)
            return NULL;
    return tccl_steal(array);
}

static json_t *accounts_json(const struct tccl_achieved *achieved)
{
    int chosen[SHOWN];
    cleanup_json json_t *array = json_array();
    int n = heaviest(achieved->accounts_by.count, bytes_of, achieved, chosen);
    for (int i = 0; i < n; i++) {
        const struct account *account = &achieved->accounts[chosen[i]];
        json_t *name = json_string(tccl_texts_get(&achieved->accounts_by, chosen[i]));
        if (json_array_append_new(
                array,
                json_pack("{s:o, s:o, s:I, s:I, s:f, s:f}", "account",
                          name ? name : json_string(""), "uid",
                          account->uid < 0 ? json_null() : json_integer(account->uid), "steps",
                          (json_int_t)account->steps, "small", (json_int_t)account->small, "bytes",
                          account->bytes, "share", account->share / (double)account->steps)) != 0)
            return NULL;
    }
    return tccl_steal(array);
}

json_t *tccl_achieved_json(struct tccl_achieved *achieved)
{
    for (int i = 0; i < achieved->units_by.count && i < JOBS; i++) {
        const struct unit *unit = &achieved->units[i];
        tccl_sample_add(&achieved->groups[unit->group].arms[unit->arm],
                        unit->logs / (double)unit->steps);
    }
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "rings", (json_int_t)achieved->steps[RINGS],
                     "own", (json_int_t)achieved->steps[OWN], "trials",
                     (json_int_t)achieved->trials, "share", median_or_null(&achieved->shares),
                     "groups", groups_json(achieved), "accounts", accounts_json(achieved));
}
