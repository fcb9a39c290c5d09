/* check.h: tests that register themselves, and checks; main.c runs what a program has of them.
 *
 * SETUP runs before the tests of the file, BEFORE before each of them, AFTER after each, TEARDOWN
 * at the end; tests in the order of the file. TCCL_TEST=NAME runs one alone, TCCL_VERBOSE=1 says
 * how many checks each one made. Each failure is printed; the status is 1 if there were any, 77 if
 * what was tested was skipped. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

extern int check_failures;
extern long check_counted;
extern char **check_args; /* of the program */

/* Counts a check. Returns ok; if it is not: after "FILE:LINE: ", which is printed. */
bool check_that(bool ok, const char *file, int line);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!check_that((condition), __FILE__, __LINE__))                                          \
            fprintf(stderr, "failed: %s\n", #condition);                                           \
    } while (0)

/* What must not be, with what is said of it then, as printf; its text ends with a line feed. */
#define CHECK_NO(wrong, ...)                                                                       \
    do {                                                                                           \
        if (!check_that(!(wrong), __FILE__, __LINE__))                                             \
            fprintf(stderr, __VA_ARGS__);                                                          \
    } while (0)

#define CHECK_INT(actual, expected)                                                                \
    do {                                                                                           \
        long long a_ = (actual), e_ = (expected);                                                  \
        if (!check_that(a_ == e_, __FILE__, __LINE__))                                             \
            fprintf(stderr, "%s is %lld, expected %lld\n", #actual, a_, e_);                       \
    } while (0)

#define CHECK_STR(actual, expected)                                                                \
    do {                                                                                           \
        const char *a_ = (actual), *e_ = (expected);                                               \
        if (!check_that(a_ && strcmp(a_, e_) == 0, __FILE__, __LINE__))                            \
            fprintf(stderr, "%s is \"%s\", expected \"%s\"\n", #actual, a_ ? a_ : "(null)", e_);   \
    } while (0)

#define CHECK_HOLDS(text, part)                                                                    \
    do {                                                                                           \
        const char *t_ = (text), *p_ = (part);                                                     \
        if (!check_that(t_ && strstr(t_, p_), __FILE__, __LINE__))                                 \
            fprintf(stderr, "no \"%s\" in:\n%s\n", p_, t_ ? t_ : "(null)");                        \
    } while (0)

/* An error text that is empty where it is passed, for the three below. */
extern struct tccl_error check_err;
#define ERR (check_err.text[0] = '\0', &check_err)

/* A call with ERR that has to return 0 and say nothing; -1, with just this text. */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        CHECK_INT(call, 0);                                                                        \
        CHECK_STR(check_err.text, "");                                                             \
    } while (0)
#define CHECK_FAILS(call, text_)                                                                   \
    do {                                                                                           \
        CHECK_INT(call, -1);                                                                       \
        CHECK_STR(check_err.text, text_);                                                          \
    } while (0)
/* A condition with a call with ERR, whose error has this part. */
#define CHECK_SAYS(condition, part)                                                                \
    do {                                                                                           \
        CHECK(condition);                                                                          \
        CHECK_HOLDS(check_err.text, part);                                                         \
    } while (0)

/* A call with ERR without which the test can't go on: what it returns but 0 ends the program. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            check_end(__FILE__, __LINE__, #call);                                                  \
    } while (0)
void check_end(const char *file, int line, const char *call) __attribute__((noreturn));

/* What a call with this stream writes: PRINTED(out, print(out)). Allocated. */
#define PRINTED(stream, ...)                                                                       \
    __extension__({                                                                                \
        static char *text_;                                                                        \
        size_t size_;                                                                              \
        FILE *stream = open_memstream(&text_, &size_);                                             \
        __VA_ARGS__;                                                                               \
        fclose(stream);                                                                            \
        text_;                                                                                     \
    })

/* Variables of a test that release what they hold at the end of their scope: owned(table) struct
 * tccl_table *table, after OWNED(table, struct tccl_table, tccl_table_free); and
 * cleared_by(release) for what is not a pointer. */
#define OWNED(name, type, release)                                                                 \
    static inline void owned_##name(type **it)                                                     \
    {                                                                                              \
        if (*it)                                                                                   \
            release(*it);                                                                          \
    }
#define owned(name) __attribute__((cleanup(owned_##name)))
#define cleared_by(release) __attribute__((cleanup(release)))

enum check_part { CHECK_SETUP, CHECK_BEFORE, CHECK_TEST, CHECK_AFTER, CHECK_TEARDOWN };

struct check_step {
    enum check_part part;
    const char *name;
    void (*run)(void);
    struct check_step *next;
};

/* In main.c. */
void check_add(struct check_step *step);

#define CHECK_ADD_(part, name, function)                                                           \
    static void function(void);                                                                    \
    __attribute__((constructor)) static void check_add_##function(void)                            \
    {                                                                                              \
        static struct check_step step_ = {part, name, function, NULL};                             \
        check_add(&step_);                                                                         \
    }                                                                                              \
    static void function(void)
#define TEST(name) CHECK_ADD_(CHECK_TEST, #name, test_##name)
#define SETUP CHECK_ADD_(CHECK_SETUP, "setup", check_setup)
#define BEFORE CHECK_ADD_(CHECK_BEFORE, "before", check_before)
#define AFTER CHECK_ADD_(CHECK_AFTER, "after", check_after)
#define TEARDOWN CHECK_ADD_(CHECK_TEARDOWN, "teardown", check_teardown)

/* So many elements an array has. */
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* So many rounds of a property test, or of every third of a list: all of them in the build by gcc,
 * a third in those that look for what is undefined, which is in the code, whatever goes through. */
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__)
#define CHECK_PART 3
#else
#define CHECK_PART 1
#endif
#define CHECK_ROUNDS(n) (((n) + CHECK_PART - 1) / CHECK_PART)

/* Each element of a JSON array: EACH_OF(record, records) { … }. */
#define EACH_OF(one, array)                                                                        \
    for (size_t at_ = 0; at_ != SIZE_MAX; at_ = SIZE_MAX)                                          \
        for (json_t * one; (one = json_array_get(array, at_)); at_++)

/* The seed of a property test: TCCL_SEED from the environment, or a new one; printed when it is
 * asked for first. rand() and drand48() begin from it in each test, so that one alone does the
 * same.
 */
unsigned long check_seed(void);
void check_seed_anew(void);

/* A number below limit; the state is a seed at first. */
int random_below(unsigned long *state, int limit);

/* The same, from check_seed's seed on. */
unsigned roll(unsigned limit);

/* No more can be tested here (in main.c): the program ends with 77, after TEARDOWN, where no check
 * has failed. The caller returns. */
void check_skip(const char *why, ...) __attribute__((format(printf, 1, 2)));

/* Runs the function in a child process, whose failures count here. */
void check_in_child(void (*run)(void));

/* The exit status with which a child ends; -1: it was killed, or there is none. */
int check_exit(pid_t pid);

/* How a program ends that has a main of its own: 1 if checks failed, or 0. */
int check_result(void);

/* A folder of the program's own below TMPDIR, 0755, made at the first call, removed with all that
 * is in it by check_clear, which main.c calls. */
const char *check_folder(void);
void check_clear(void);

/* Checks that nothing is in it any more. */
void check_nothing_left(void);

/* Such a text, which stays until the end: the same one for equal texts. */
char *check_intern(const char *text);

/* A path in it, as printf; "": the folder's. It stays. */
const char *check_at(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A text, as printf. Static: the last 16 stay. */
const char *check_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Removes what is there, with all that is below it. The folder itself stays, empty, where path is
 * check_folder's. */
void check_remove(const char *path);

/* A file with this text at a path, with the folders that lead there. */
void check_write_file(const char *path, const char *text);

/* What a file has, at most 64 KiB; "" where there is none. Static. */
const char *check_read_file(const char *path);
