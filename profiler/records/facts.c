/* facts.c: packs facts: 64 bytes of numbers, little-endian, then the texts, each with a NUL. */
#include "records/facts.h"

#include <stdlib.h>
#include <string.h>

#include "chain/nccl-version.h"
#include "records/record.h"

enum { NUMBERS = 4 * 4 + 6 * 8, TEXTS = 4, ARGUMENTS = 17 };

static void put_number(unsigned char **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (unsigned char)(value >> 8 * i);
}

static uint64_t get_number(const unsigned char **at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t) * (*at)++ << 8 * i;
    return value;
}

static void put_real(unsigned char **at, double real)
{
    uint64_t value;
    memcpy(&value, &real, sizeof(value));
    put_number(at, value, 8);
}

static double get_real(const unsigned char **at)
{
    uint64_t value = get_number(at, 8);
    double real;
    memcpy(&real, &value, sizeof(real));
    return real;
}

/* A record of an older version has no class: of those one text told what has consequences. Of the
 * others nobody knows whether a node is to blame. */
static enum tccl_reason class_of(const char *class, const char *reason)
{
    enum tccl_reason cause = tccl_reason_named(class);
    return !*reason                              ? TCCL_REASON_NONE
           : cause != TCCL_REASON_NONE           ? cause
           : strstr(reason, TCCL_NCCL_NOT_KNOWN) ? TCCL_REASON_UNKNOWN_NCCL
                                                 : TCCL_REASON_UNCLASSED;
}

int tccl_facts_read(const void *bytes, size_t size, struct tccl_facts *facts)
{
    const unsigned char *at = bytes;
    const char **texts[TEXTS] = {&facts->state, &facts->built, &facts->reason, &facts->nodes};
    if (!bytes || size < NUMBERS + TEXTS || at[size - 1] != '\0')
        return -1;
    const unsigned char *end = at + size;
    facts->uid = (uint32_t)get_number(&at, 4);
    facts->n_nodes = (uint32_t)get_number(&at, 4);
    facts->gpus = (uint32_t)get_number(&at, 4);
    facts->gbps = get_real(&at);
    facts->ratio = get_real(&at);
    facts->solve_us = (int64_t)get_number(&at, 8);
    facts->alone = get_real(&at);
    facts->placed = get_real(&at);
    facts->baseline = get_real(&at);
    facts->neighbours = (uint32_t)get_number(&at, 4);
    for (int i = 0; i < TEXTS; i++) {
        if (at >= end)
            return -1;
        *texts[i] = (const char *)at;
        at += strlen(*texts[i]) + 1;
    }
    facts->cause = class_of(at < end ? (const char *)at : "", facts->reason);
    return 0;
}

struct tccl_shown tccl_shown(const char *state, const char *reason, const char *class,
                             const char *built, const char *built_reason, int64_t step)
{
    enum tccl_reason of_built = TCCL_REASON_BUILT_DIFFERENTLY;
    if (!*built_reason)
        of_built = TCCL_REASON_NONE;
    struct tccl_shown shown = {state, reason, built, class_of(class, reason)};
    /* It was said before that this NCCL is not known, and then the program had another one. */
    if (*built && strcmp(built, "not used") != 0 && strcmp(state, "fallback") == 0 &&
        shown.cause == TCCL_REASON_UNKNOWN_NCCL)
        shown = (struct tccl_shown){"applied", "", built, TCCL_REASON_NONE};
    if (strcmp(shown.state, "applied") != 0)
        return shown;
    if (strcmp(built, "not used") == 0 && strstr(built_reason, TCCL_NCCL_NOT_KNOWN))
        return (struct tccl_shown){"fallback", built_reason, built, TCCL_REASON_UNKNOWN_NCCL};
    if (strcmp(built, "differs") == 0)
        return (struct tccl_shown){built, built_reason, built, of_built};
    if (strcmp(built, "fewer") == 0)
        return (struct tccl_shown){"partial", built_reason, built, of_built};
    /* Slurm's numbers (slurm.h: SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP). */
    bool script = step == 0xfffffffb || step == 0xfffffffa;
    if (script && strcmp(built_reason, TCCL_BUILT_SILENT) == 0)
        return (struct tccl_shown){"nothing-to-do", "the job script used no GPUs together", "",
                                   TCCL_REASON_JOB_SCRIPT};
    return shown;
}

static const char *text_of(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    return text ? text : "";
}

static void write_facts(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct tccl_shown shown =
        tccl_shown(text_of(values[1]), text_of(values[2]), text_of(values[16]), text_of(values[9]),
                   text_of(values[10]), sqlite3_value_int64(values[15]));
    const char *texts[TEXTS + 1] = {shown.state, shown.built, shown.reason, text_of(values[3]),
                                    tccl_reason_words[shown.cause]};
    size_t size = NUMBERS;
    (void)count;
    for (int i = 0; i <= TEXTS; i++)
        size += strlen(texts[i]) + 1;
    unsigned char *bytes = sqlite3_malloc64(size), *at = bytes;
    if (!bytes) {
        sqlite3_result_error_nomem(context);
        return;
    }
    put_number(&at, (uint64_t)sqlite3_value_int64(values[0]), 4);
    put_number(&at, (uint64_t)sqlite3_value_int64(values[4]), 4);
    put_number(&at, (uint64_t)sqlite3_value_int64(values[5]), 4);
    put_real(&at, sqlite3_value_double(values[6]));
    put_real(&at, sqlite3_value_double(values[7]));
    put_number(&at, (uint64_t)sqlite3_value_int64(values[8]), 8);
    put_real(&at, sqlite3_value_double(values[11]));
    put_real(&at, sqlite3_value_double(values[12]));
    put_real(&at, sqlite3_value_double(values[13]));
    put_number(&at, (uint64_t)sqlite3_value_int64(values[14]), 4);
    for (int i = 0; i <= TEXTS; i++)
        at = (unsigned char *)stpcpy((char *)at, texts[i]) + 1;
    sqlite3_result_blob64(context, bytes, size, sqlite3_free);
}

int tccl_facts_function(sqlite3 *db)
{
    return sqlite3_create_function(db, "tccl_facts", ARGUMENTS, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                   NULL, write_facts, NULL, NULL);
}
