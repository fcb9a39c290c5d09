/* welch.c: means, Welch's interval, and Student's distribution. */
#include "records/summary.h"

#include <math.h>

enum { FREEDOM = 400 }; /* more are taken for so many: t is 0.3 % too large at most */

void tccl_sample_add(struct tccl_sample *sample, double value)
{
    double before = value - sample->mean;
    sample->mean += before / (double)++sample->count;
    sample->squares += before * (value - sample->mean);
}

/* The part of Student's distribution within -t and t: Abramowitz and Stegun, Handbook of
 * Mathematical Functions (1964), 26.7.3 and 26.7.4. */
static double part_within(double t, int freedom)
{
    double angle = atan(t / sqrt(freedom)), cosine = cos(angle), sum = 0;
    bool odd = freedom % 2;
    double term = odd ? cosine : 1;
    for (int i = odd ? 2 : 1; i < freedom; i += 2) {
        sum += term;
        term *= cosine * cosine * i / (i + 1);
    }
    sum *= sin(angle);
    return odd ? M_2_PI * (angle + sum) : sum;
}

double tccl_student(int freedom)
{
    double low = 1.9, high = 12.8;
    if (freedom > FREEDOM)
        freedom = FREEDOM;
    while (high - low > 1e-9) {
        double middle = (low + high) / 2;
        if (part_within(middle, freedom) < 0.95)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Of the mean, squared. */
static double error_of(const struct tccl_sample *sample)
{
    return sample->squares / (double)(sample->count - 1) / (double)sample->count;
}

double tccl_welch(const struct tccl_sample *a, const struct tccl_sample *b)
{
    if (a->count < 2 || b->count < 2)
        return INFINITY;
    double one = error_of(a), other = error_of(b), both = one + other;
    if (!(both > 0))
        return 0;
    double freedom =
        both * both / (one * one / (double)(a->count - 1) + other * other / (double)(b->count - 1));
    int whole = freedom < 1 ? 1 : freedom > FREEDOM ? FREEDOM : (int)freedom;
    return tccl_student(whole) * sqrt(both);
}
