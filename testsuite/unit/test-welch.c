/* test-welch.c: intervals of confidence against tables, against plain integration of Student's
 * density, and by how often they hold what is so. */
#include "check.h"
#include "records/summary.h"

/* Abramowitz and Stegun, table 26.10 (two-sided, 0.95). */
TEST(table)
{
    static const struct {
        int freedom;
        double t;
    } rows[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},   {8, 2.306},
                {9, 2.262},  {20, 2.086}, {30, 2.042}, {60, 2.000}, {120, 1.980}, {400, 1.966}};
    for (int i = 0; i < (int)COUNT(rows); i++)
        CHECK(fabs(tccl_student(rows[i].freedom) - rows[i].t) < 6e-4);
    CHECK(tccl_student(100000) > 1.96 && tccl_student(100000) < 1.967);
}

/* By Simpson's rule. */
static double within(double t, double freedom)
{
    enum { PARTS = 20000 };
    double sum = 0, scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) /
                            sqrt(freedom * acos(-1.0));
    for (int i = 0; i <= PARTS; i++) {
        double x = t * i / PARTS, density = pow(1 + x * x / freedom, -(freedom + 1) / 2);
        sum += density * (i == 0 || i == PARTS ? 1 : i % 2 ? 4 : 2);
    }
    return 2 * scale * sum * t / PARTS / 3;
}

TEST(density)
{
    double before = INFINITY;
    for (int freedom = 1; freedom <= 400; freedom += 1 + freedom / 12) {
        double t = tccl_student(freedom);
        CHECK(fabs(within(t, freedom) - 0.95) < 1e-7 && t < before);
        before = t;
    }
}

static double normal(void)
{
    double u = (rand() + 1.0) / (RAND_MAX + 2.0), v = (rand() + 1.0) / (RAND_MAX + 2.0);
    return sqrt(-2 * log(u)) * cos(2 * acos(-1.0) * v);
}

static struct tccl_sample sample_of(int count, double mean, double spread, double *values)
{
    struct tccl_sample sample = {0};
    for (int i = 0; i < count; i++)
        tccl_sample_add(&sample, values[i] = mean + spread * normal());
    return sample;
}

static double variance(const double *values, int count)
{
    double mean = 0, sum = 0;
    for (int i = 0; i < count; i++)
        mean += values[i] / count;
    for (int i = 0; i < count; i++)
        sum += pow(values[i] - mean, 2);
    return sum / (count - 1);
}

/* The same by the textbook, in two passes and with the density above; and in 95 of 100 draws what
 * is so lies within, also of few values that vary unequally. */
TEST(draws)
{
    enum { ROUNDS = 3000, MOST = 12 };
    double a[MOST], b[MOST];
    int held = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int n = 5 + rand() % (MOST - 4), m = 5 + rand() % (MOST - 4);
        double spread = 0.02 + rand() % 10 / 10.0, apart = rand() % 100 / 50.0 - 1;
        struct tccl_sample one = sample_of(n, apart, spread, a), other = sample_of(m, 0, 0.1, b);
        double half = tccl_welch(&one, &other);
        held += fabs(one.mean - other.mean - apart) <= half;
        if (round >= 50)
            continue;
        double va = variance(a, n) / n, vb = variance(b, m) / m;
        double freedom = floor(pow(va + vb, 2) / (va * va / (n - 1) + vb * vb / (m - 1)));
        CHECK(fabs(within(half / sqrt(va + vb), freedom) - 0.95) < 1e-6);
    }
    printf("%d of %d intervals hold it\n", held, ROUNDS);
    CHECK(held > 0.935 * ROUNDS && held < 0.975 * ROUNDS);
}

TEST(few)
{
    struct tccl_sample none = {0}, one = {0}, same = {0};
    tccl_sample_add(&one, 1);
    for (int i = 0; i < 5; i++)
        tccl_sample_add(&same, 2.5);
    CHECK(isinf(tccl_welch(&none, &same)) && isinf(tccl_welch(&same, &one)));
    CHECK(tccl_welch(&same, &same) == 0 && same.mean == 2.5 && same.squares == 0);
}
