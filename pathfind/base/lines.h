/* lines.h: facts as lines of text, as plan files have them, and what the runtime shim and tccld
 * say to each other. Of libc only: the runtime shim has this too.
 *
 *   tccl-plan 1          a name and a version
 *   job 7                one fact a line: a key, a blank, a value
 *   chain 0000:01:00.0 -w> 0000:41:00.0 -m1> 0000:01:00.0
 *   end                  always the last line: a text that was cut is seen
 *
 * Keys are lower-case letters, digits and '_'. Values have no control characters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    TCCL_LINES_SIZE = 16 * 1024, /* longest text */
    TCCL_LINES_NAME = 32         /* its name, with its NUL */
};

/* A text that has been checked as a whole; borrows it. */
struct tccl_lines {
    char name[TCCL_LINES_NAME];
    int version;
    const char *facts; /* the lines behind the first, up to "end" */
    size_t size;
};

/* Returns 0, or -1 with err: not such a text, cut, or too long. */
int tccl_lines_open(const char *text, size_t size, struct tccl_lines *lines,
                    struct tccl_error *err);
/* Of a text at the beginning of a file that goes on: its length, with its last line; 0: there is
 * none. */
size_t tccl_lines_length(const char *file, size_t size);
bool tccl_lines_are(const struct tccl_lines *lines, const char *name, int version);

/* The value of the only line with that key. Returns its length, or -1: there is none, there are
 * several, or it is longer than size - 1 bytes (text is "" then). */
long tccl_line_text(const struct tccl_lines *lines, const char *key, char *text, size_t size);
/* Reads digits with at most one point among them, whatever the locale. Returns the place behind
 * them; digits: how many. Of up to TCCL_EXACT_DIGITS both the whole and the power of ten are exact,
 * so their quotient is what strtod gives (W. Clinger, How to read floating point numbers
 * accurately, 1990). */
enum { TCCL_EXACT_DIGITS = 15 };
const char *tccl_word_decimal(const char *text, double *number, int *digits);
/* Whole numbers; numbers in plain digits, without exponent; "yes" or "no". Each returns 0, or -1:
 * there is none, there are several, or it is something else, or out of bounds. */
int tccl_line_integer(const struct tccl_lines *lines, const char *key, int64_t min, int64_t max,
                      int64_t *number);
int tccl_line_number(const struct tccl_lines *lines, const char *key, double min, double max,
                     double *number);
/* The same of a word of a line. */
int tccl_word_number(const char *text, double min, double max, double *number);
int tccl_line_bool(const struct tccl_lines *lines, const char *key, bool *truth);
/* For keys that have several lines: the value of the next one behind *at, which is NULL at first.
 * Returns its length; -1 if there is none, or it is longer than size - 1 bytes. */
long tccl_line_next(const struct tccl_lines *lines, const char *key, const char **at, char *text,
                    size_t size);

/* Writing, into a buffer of the caller's. */
struct tccl_line_writer {
    char *text;
    size_t size, length;
    bool full;
};
void tccl_lines_begin(struct tccl_line_writer *writer, char *text, size_t size, const char *name,
                      int version);
/* Control characters become '?'. */
void tccl_line_put(struct tccl_line_writer *writer, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Rounded to 1e-4, whatever the locale; what is below 0, above 1e12 or no number is 0. */
void tccl_line_put_number(struct tccl_line_writer *writer, const char *key, double number);
void tccl_line_put_bool(struct tccl_line_writer *writer, const char *key, bool truth);
/* Returns 0, or -1: the buffer was too small. */
int tccl_lines_end(struct tccl_line_writer *writer);

/* ---- plan-lines: the whole numbers of 32 bits in a plan file: lines that tccld writes, and the
 * runtime shim reads into members of the same names. To add one, add its line. Other lines:
 * profiler/client/shim.md. */

/* Those of a step's key: NUMBER(name). */
#define TCCL_KEY_NUMBERS(NUMBER)                                                                   \
    NUMBER(job) NUMBER(het_job) NUMBER(het_offset) NUMBER(step) NUMBER(restart)

/* Of the step: NUMBER(name, most, where tccld has it: tccld/join/step-outcome.c). */
#define TCCL_PLAN_NUMBERS(NUMBER)                                                                  \
    NUMBER(uid, UINT32_MAX, join->uid)                                                             \
    NUMBER(index, 16383, join->node)                                                               \
    NUMBER(n_nodes, 16384, join->n_nodes)                                                          \
    NUMBER(step_gpus, 16384 * 16, outcome->gpus)

#define TCCL_NUMBER_MEMBER_32(name, ...) uint32_t name;

/* As Slurm numbers the steps that are none of srun's (slurm.h; the plugin's build compares them).
 */
#define TCCL_STEP_INTERACTIVE UINT32_C(0xfffffffa)
#define TCCL_STEP_BATCH UINT32_C(0xfffffffb)
#define TCCL_STEP_EXTERN UINT32_C(0xfffffffc)
