/* check.h: checks for unit tests; each failure is printed, and main returns check_result(). */
#ifndef TCCL_CHECK_H
#define TCCL_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int check_failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

#define CHECK_INT(actual, expected)                                                                \
    do {                                                                                           \
        long long a_ = (actual), e_ = (expected);                                                  \
        if (a_ != e_) {                                                                            \
            fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #actual, a_, \
                    e_);                                                                           \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

#define CHECK_STR(actual, expected)                                                                \
    do {                                                                                           \
        const char *a_ = (actual), *e_ = (expected);                                               \
        if (!a_ || strcmp(a_, e_) != 0) {                                                          \
            fprintf(stderr, "%s:%d: %s is \"%s\", expected \"%s\"\n", __FILE__, __LINE__, #actual, \
                    a_ ? a_ : "(null)", e_);                                                       \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

#define CHECK_HOLDS(text, part)                                                                    \
    do {                                                                                           \
        const char *t_ = (text), *p_ = (part);                                                     \
        if (!t_ || !strstr(t_, p_)) {                                                              \
            fprintf(stderr, "%s:%d: no \"%s\" in:\n%s\n", __FILE__, __LINE__, p_,                  \
                    t_ ? t_ : "(null)");                                                           \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

/* The seed of a property test: TCCL_SEED from the environment, or a new one; printed. */
__attribute__((unused)) static unsigned long check_seed(void)
{
    const char *text = getenv("TCCL_SEED");
    unsigned long seed = text ? strtoul(text, NULL, 0) : (unsigned long)time(NULL) ^ getpid();
    printf("seed %lu (repeat with TCCL_SEED=%lu)\n", seed, seed);
    fflush(stdout);
    return seed;
}

static inline int check_result(void)
{
    if (check_failures)
        fprintf(stderr, "%d checks failed\n", check_failures);
    return check_failures ? 1 : 0;
}

#endif
