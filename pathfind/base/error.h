/* error.h: the error text that library functions fill in. */
#pragma once

#include <stddef.h>

#include "base/reason.h"

/* A parameter that a caller of many functions gives, and that this one does not need. */
#define UNUSED __attribute__((unused))

/* Zero-initialise before use. The text says what, where and what now, without "tccl: " in front. */
struct tccl_error {
    char text[512];
    enum tccl_reason reason; /* if a step has no ring because of it; TCCL_REASON_NONE: the caller
                                knows better */
};

/* Writes the text unless err is NULL or already holds one (first error wins). Always returns -1. */
int tccl_fail(struct tccl_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for functions that return a pointer: NULL. */
#define tccl_fail_null(...) (tccl_fail(__VA_ARGS__), NULL)

/* The same with the class of the reason. */
int tccl_fail_as(struct tccl_error *err, enum tccl_reason reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with another error's text and class. */
int tccl_fail_with(struct tccl_error *err, const struct tccl_error *why);

/* Gives an error that has no class one. Returns -1. */
int tccl_fail_because(struct tccl_error *err, enum tccl_reason reason);

/* Puts "what: " before the text in err, for callers that know the file or place. Returns -1. */
int tccl_fail_in(struct tccl_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
