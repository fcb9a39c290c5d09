/* error.h: the error text that library functions fill in, and classes of reasons. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* ---- reason: why a step has no ring: the classes of reasons, which records carry, summaries count
 * and filters name. The text beside a class is for people, and may change. */

/* R(name, word, is it for a node's administrator to look at? Else the step or the site's policy
 * wants no ring, or can have none). A new class is a new line above the last one: tccld of older
 * versions take its word for "other". */
#define TCCL_REASONS(R)                                                                            \
    R(POLICY, "policy", false)                                                                     \
    R(NO_GAIN, "no gain", false)                                                                   \
    R(NO_GPU, "no GPU", false)                                                                     \
    R(JOB_SCRIPT, "job script", false)                                                             \
    R(OWN_GPUS, "own GPUs", false)                                                                 \
    R(SHARED_GPU, "shared GPU", false)                                                             \
    R(UNKNOWN_NCCL, "unknown NCCL", false)                                                         \
    R(HET_STEP, "het step", false)                                                                 \
    R(NO_PROFILE, "no profile", true)                                                              \
    R(UNKNOWN_GPU, "unknown GPU", true)                                                            \
    R(NO_RING, "no ring", true)                                                                    \
    R(LATE_START, "late start", true)                                                              \
    R(CANCELLED, "cancelled", true)                                                                \
    R(VERSION, "version", true)                                                                    \
    R(MUNGE, "munge", true)                                                                        \
    R(NO_ANSWER, "no answer in time", true)                                                        \
    R(NO_DAEMON, "no daemon", true)                                                                \
    R(UNREACHABLE, "unreachable", true)                                                            \
    R(NODE_LISTS, "node lists", true)                                                              \
    R(OVERLOAD, "overload", true)                                                                  \
    R(PLAN_LOST, "plan lost", true)                                                                \
    R(BUILT_DIFFERENTLY, "built differently", true)                                                \
    R(CONFIGURATION, "configuration", true)                                                        \
    R(MESSAGE, "message", true)                                                                    \
    R(BAD_PROFILE, "bad profile", true)                                                            \
    R(TRIAL, "trial", false)                                                                       \
    R(EVIDENCE, "evidence", false)                                                                 \
    R(COLLAPSE, "collapse", false)                                                                 \
    R(OTHER, "other", true)

enum tccl_reason {
    TCCL_REASON_NONE, /* there is none; of an error: not said */
#define TCCL_REASON_NAME(name, word, of_node) TCCL_REASON_##name,
    TCCL_REASONS(TCCL_REASON_NAME)
#undef TCCL_REASON_NAME
        TCCL_REASON_END
};

/* "", "policy", … "other", NULL. */
extern const char *const tccl_reason_words[];

/* The class of a word; TCCL_REASON_NONE for "" and NULL, TCCL_REASON_OTHER for an unknown one. */
enum tccl_reason tccl_reason_named(const char *word);

/* Is something wrong on a node? Not where the step or the site's policy wants no ring, or can have
 * none. */
bool tccl_reason_of_node(enum tccl_reason reason);

/* ---- error: the error text that library functions fill in. */

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
