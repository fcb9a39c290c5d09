/* welch.h: the difference of two means, with its interval of confidence, of few values each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All zeros is one without values. */
struct tccl_sample {
    int64_t count;
    double mean, squares; /* squares: the sum of squared deviations from the mean */
};

/* Welford, Technometrics 4 (1962): no difference of large sums. */
void tccl_sample_add(struct tccl_sample *sample, double value);

/* Half the width of the interval of 95 % about the difference of the means, by Welch's t
 * (Biometrika 34, 1947: the two need not vary equally much), with Satterthwaite's degrees of
 * freedom rounded down, which makes it wider. Infinite where one of them has less than two values.
 */
double tccl_welch(const struct tccl_sample *a, const struct tccl_sample *b);

/* The t that 95 % of Student's distribution are within, both ways; freedom: 1 and more. */
double tccl_student(int freedom);
