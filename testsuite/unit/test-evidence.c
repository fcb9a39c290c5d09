/* What steps achieve: means and the test of two kinds against what is counted here from all values,
 * noise that must not switch a ring off, slower rings that must be, and users who lie. */
#include "tccld/join/evidence.h"

#include "check.h"
#include "tccld/join/running.h"

static struct evidence_table table;

BEFORE
{
    memset(&table, 0, sizeof(table));
}

static const struct running_step usual = {
    .subject = 7, .what = "9f3c01aa:0-3", .n_nodes = 2, .uid = 1000, .nccl = 22907, .promised = 10};
enum { BYTES = 64 << 20 };

static bool ring(const struct running_step *step)
{
    return evidence_add(&table, step, EVIDENCE_RING, BYTES, 9);
}

static double uniform(void)
{
    return (rand() + 0.5) / (RAND_MAX + 1.0);
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static bool step(int64_t subject, uid_t uid, enum evidence_arm arm, double achieved)
{
    struct running_step one = usual;
    one.subject = subject;
    one.uid = uid;
    return evidence_add(&table, &one, arm, BYTES, achieved);
}

/* The two-sample test by all values, in two passes. */
struct sample {
    double values[64];
    int n;
};

static double mean_of(const struct sample *sample)
{
    double sum = 0;
    for (int i = 0; i < sample->n; i++)
        sum += sample->values[i];
    return sum / sample->n;
}

static double squares_of(const struct sample *sample)
{
    double mean = mean_of(sample), sum = 0;
    for (int i = 0; i < sample->n; i++)
        sum += (sample->values[i] - mean) * (sample->values[i] - mean);
    return sum;
}

static bool oracle(const struct sample *ring, const struct sample *own)
{
    if (ring->n < 5 || own->n < 5)
        return false;
    double variance = (squares_of(ring) + squares_of(own) + 8 * 0.01) / (ring->n + own->n - 2 + 8);
    double error = sqrt(variance / ring->n + variance / own->n);
    int least = ring->n < own->n ? ring->n : own->n;
    return mean_of(ring) - mean_of(own) + 3.3 * (1 + 2.0 / least) * error < log(0.97);
}

TEST(as_by_all_values)
{
    int seen[2] = {0};
    check_seed();
    for (int round = 0; round < 400; round++) {
        struct sample samples[EVIDENCE_ARMS] = {{.n = 0}};
        double ratio = 0.8 + 0.3 * uniform(), noise = 0.02 + 0.03 * uniform();
        bool off = false;
        for (int i = 0; i < 100 && !off; i++) {
            enum evidence_arm arm = rand() % 2 ? EVIDENCE_RING : EVIDENCE_OWN;
            struct sample *sample = &samples[arm];
            if (sample->n == 64)
                break;
            double x = (arm == EVIDENCE_RING ? ratio : 1) * exp(noise * normal());
            sample->values[sample->n++] = log(x);
            CHECK(step((uint64_t)round + 1, 1000, arm, 10 * x));
            off = oracle(&samples[EVIDENCE_RING], &samples[EVIDENCE_OWN]);
            CHECK_INT(evidence_leaves(&table, (uint64_t)round + 1, 1000, 3), off);
        }
        seen[off]++;
    }
    CHECK(seen[0] > 20 && seen[1] > 20);
}

/* Steps until a user's ring is left; -1: it never is. own: the share of steps without the ring. */
static int steps_until_off(double ratio, double noise, double own, int most)
{
    memset(&table, 0, sizeof(table));
    for (int i = 1; i <= most; i++) {
        enum evidence_arm arm = uniform() < own ? EVIDENCE_OWN : EVIDENCE_RING;
        step(1, 1000, arm, 8 * (arm == EVIDENCE_RING ? ratio : 1) * exp(noise * normal()));
        if (evidence_leaves(&table, 1, 1000, 3))
            return i;
    }
    return -1;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* A good ring stays, whatever the noise; one that is a tenth slower is left within so many steps.
 */
TEST(noise)
{
    enum { ROUNDS = 200 };
    static const struct {
        double ratio, noise, own;
        int most, offs, middle; /* offs: at most, of a good ring; middle: steps of a bad one */
    } cases[] = {
        {1, 0.1, 0.5, 2000, 1, 0},     {1, 0.1, 0.05, 2000, 1, 0},    {1.1, 0.2, 0.5, 1000, 1, 0},
        {1, 0.03, 0.05, 2000, 0, 0},   {0.9, 0.1, 0.5, 1500, 0, 250}, {0.9, 0.02, 0.5, 200, 0, 40},
        {0.9, 0.1, 0.1, 6000, 0, 900}, {0.5, 0.1, 0.5, 60, 0, 20},
    };
    int steps[ROUNDS];
    check_seed();
    for (size_t i = 0; i < COUNT(cases); i++) {
        int offs = 0;
        for (int round = 0; round < ROUNDS; round++) {
            int at = steps_until_off(cases[i].ratio, cases[i].noise, cases[i].own, cases[i].most);
            steps[offs] = at;
            offs += at >= 0;
        }
        qsort(steps, (size_t)offs, sizeof(*steps), compare_ints);
        printf("ratio %.2f, noise %.2f, %2.0f %% without: %3d of %d left, after %d steps in the "
               "middle, %d at most\n",
               cases[i].ratio, cases[i].noise, cases[i].own * 100, offs, ROUNDS,
               offs ? steps[offs / 2] : 0, offs ? steps[offs - 1] : 0);
        if (cases[i].middle) {
            CHECK_INT(offs, ROUNDS);
            CHECK(offs > 0 && steps[offs / 2] <= cases[i].middle);
        } else {
            CHECK(offs <= cases[i].offs);
        }
    }
}

static void steps_of(uint64_t subject, uid_t uid, int n, double ring, double own)
{
    for (int i = 0; i < n; i++) {
        step(subject, uid, EVIDENCE_RING, ring);
        step(subject, uid, EVIDENCE_OWN, own);
    }
}

/* Nobody else's steps count until three users' say the same, and more than say otherwise. */
TEST(users)
{
    steps_of(1, 1001, 100, 1, 60); /* one who lies, as much as he can */
    CHECK(evidence_leaves(&table, 1, 1001, 3) && !evidence_leaves(&table, 1, 1000, 3));
    steps_of(1, 1002, 100, 1, 60);
    CHECK(!evidence_leaves(&table, 1, 1000, 3));
    CHECK(evidence_leaves(&table, 1, 1000, 2));
    steps_of(1, 1003, 8, 5, 10);
    CHECK(evidence_leaves(&table, 1, 1000, 3));
    CHECK(!evidence_leaves(&table, 2, 1000, 3)); /* a new profile: another subject */
    struct evidence_view view = evidence_look(&table, 1, 3);
    CHECK(view.off && view.slower == 3 && view.good == 0 && view.ratio < 0.51);
    CHECK_STR(view.row->what, "9f3c01aa:0-3");
    /* His own steps say that it is good: he keeps it, others don't. */
    steps_of(1, 1004, 16, 11, 10);
    CHECK(!evidence_leaves(&table, 1, 1004, 3) && evidence_leaves(&table, 1, 1000, 3));
    /* As many of one mind as of the other: the ring is given. */
    steps_of(1, 1005, 16, 11, 10);
    steps_of(1, 1006, 16, 11, 10);
    CHECK(!evidence_leaves(&table, 1, 1000, 3));
    CHECK(evidence_leaves(&table, 1, 1003, 3));
}

/* A ring that was left is given to some jobs, and again to all once these say so. */
TEST(again)
{
    steps_of(1, 1000, 10, 8, 10);
    CHECK(evidence_leaves(&table, 1, 1000, 3));
    for (int i = 0; i < 40; i++) /* still slower */
        step(1, 1000, EVIDENCE_RING, 8);
    CHECK(evidence_leaves(&table, 1, 1000, 3));
    while (table.rows[0].arms[EVIDENCE_RING].n > 0) /* to the next verdict */
        step(1, 1000, EVIDENCE_RING, 8);
    for (int i = 0; i < EVIDENCE_AGAIN; i++) {
        CHECK(evidence_leaves(&table, 1, 1000, 3));
        step(1, 1000, EVIDENCE_RING, 10.5);
    }
    CHECK(!evidence_leaves(&table, 1, 1000, 3));
}

/* The NCCL that he has used last counts. */
TEST(versions)
{
    struct running_step other = usual;
    steps_of(1, 1000, 10, 8, 10);
    CHECK(evidence_leaves(&table, 1, 1000, 3));
    other.subject = 1;
    other.nccl = 22801;
    CHECK(evidence_add(&table, &other, EVIDENCE_OWN, BYTES, 9));
    CHECK(!evidence_leaves(&table, 1, 1000, 3));
    other.nccl = 22905; /* as the first one */
    CHECK(evidence_add(&table, &other, EVIDENCE_OWN, BYTES, 9));
    CHECK(evidence_leaves(&table, 1, 1000, 3));
    CHECK_INT(table.n, 2);
}

TEST(refused)
{
    static const double bad[] = {0, -1, NAN, INFINITY, -INFINITY, 1e300, 80.1, 0.15, 1e-300};
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!step(1, 1000, EVIDENCE_RING, bad[i]));
    struct running_step one = usual;
    one.promised = 0;
    CHECK(!ring(&one));
    one.promised = NAN;
    CHECK(!ring(&one));
    one = usual;
    one.subject = 0;
    CHECK(!ring(&one));
    one = usual;
    one.nccl = 0;
    CHECK(!ring(&one));
    one.nccl = 97; /* no version: a row of it could not be read again, and nothing with it */
    CHECK(!ring(&one));
    CHECK(!evidence_add(&table, &usual, EVIDENCE_RING, (4 << 20) - 1, 9));
    CHECK(!evidence_add(&table, &usual, EVIDENCE_RING, INT64_MIN, 9));
    CHECK_INT(table.n, 0);
}

/* One figure that is far off moves a mean little. */
TEST(outlier)
{
    for (int i = 0; i < 20; i++)
        step(1, 1000, EVIDENCE_RING, 10);
    CHECK(step(1, 1000, EVIDENCE_RING, 79));
    CHECK(fabs(table.rows[0].arms[EVIDENCE_RING].mean) < 4 * 0.1 / 20);
}

/* Whoever makes up versions and sizes pushes out his own rows. */
TEST(flood)
{
    struct running_step one = usual;
    steps_of(1, 1000, 10, 8, 10);
    one.uid = 6666;
    for (int i = 0; i < 5000; i++) {
        one.nccl = 100 + i * 100;
        one.subject = i / 7 + 1;
        evidence_add(&table, &one, EVIDENCE_RING, INT64_C(1) << (i % 63), 9);
    }
    CHECK_INT(table.n, 1 + EVIDENCE_OF_USER);
    CHECK(evidence_leaves(&table, 1, 1000, 3));
    for (one.uid = 10000; one.uid < 12000; one.uid++) {
        one.nccl = 22907;
        CHECK(ring(&one));
        CHECK(table.n <= EVIDENCE_ROWS);
    }
    CHECK_INT(table.n, EVIDENCE_ROWS);
    CHECK(!evidence_leaves(&table, 1, 1000, 3)); /* the oldest */
}

/* A profile that promises too much: large collectives with the ring alone say so. */
TEST(untrue)
{
    for (uid_t uid = 1; uid <= 3; uid++) {
        CHECK(!evidence_look(&table, 1, 3).untrue);
        for (int i = 0; i < 6; i++)
            step(1, uid, EVIDENCE_RING, 6.5);
    }
    struct evidence_view view = evidence_look(&table, 1, 3);
    CHECK(view.untrue && fabs(view.reached - 0.65) < 1e-6 && view.ratio == 0);
    struct running_step small = usual;
    small.subject = 2;
    for (int i = 0; i < 50; i++)
        evidence_add(&table, &small, EVIDENCE_RING, 16 << 20, 3);
    CHECK(!evidence_look(&table, 2, 1).untrue);
    for (int i = 0; i < 50; i++)
        step(3, 1, EVIDENCE_RING, 8.2);
    CHECK(!evidence_look(&table, 3, 1).untrue);
}

/* A machine that was measured anew: what is promised to its GPUs now has its first step after the
 * last one of what was promised before. */
TEST(measured_anew)
{
    step(2, 1, EVIDENCE_RING, 9); /* another one that is promised, in turn */
    for (int i = 0; i < 6; i++)
        step(1, 1, EVIDENCE_RING, 4);
    step(2, 1, EVIDENCE_RING, 9);
    CHECK(evidence_look(&table, 1, 1).untrue);
    struct running_step other = usual;
    strcpy(other.what, "elsewhere");
    other.subject = 3;
    CHECK(ring(&other));
    CHECK(evidence_look(&table, 1, 1).untrue);
    step(4, 2, EVIDENCE_OWN, 9);
    CHECK(!evidence_look(&table, 1, 1).untrue);
    CHECK(evidence_look(&table, 1, 1).reached > 0);
}
