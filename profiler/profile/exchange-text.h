/* exchange-text.h: the text of an exported profile: where its members stand, so that one piece of
 * it at a time is taken apart; numbers written so that they are read back the same. */
#ifndef TCCL_EXCHANGE_TEXT_H
#define TCCL_EXCHANGE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error.h"

/* A piece of the text; size 0: it is not there. */
struct tccl_span {
    const char *at;
    size_t size;
};

struct tccl_document {
    struct tccl_span format, version, profile, machine, model, sets, tables;
};

/* Finds the members, of which none may be unknown, missing (but model) or there twice, and checks
 * format and version. The values themselves are not looked at. Returns 0, or -1 with err. */
int tccl_document_find(const char *text, size_t size, struct tccl_document *document,
                       struct tccl_error *err);

/* A new reference; NULL with err. */
json_t *tccl_span_parse(struct tccl_span span, struct tccl_error *err);

/* Calls each with the entries of an array, in order; -1 stops. Returns their number, or -1 with
 * err, which begins with the place: "[3]: …". */
long tccl_span_each(struct tccl_span span,
                    int (*each)(void *context, long index, struct tccl_span entry,
                                struct tccl_error *err),
                    void *context, struct tccl_error *err);

/* Writes the value on one line, numbers with as many digits as they need, 12 at least. Returns 0,
 * or -1 without memory, or where writing failed. */
int tccl_exact_dump(const json_t *json, FILE *out);
/* The same as a line of sets.jsonl: with its checksum, which is TCCL_LINE_SUM characters. */
enum { TCCL_LINE_SUM = 17 };
int tccl_exact_line(const json_t *json, FILE *out);

#endif
