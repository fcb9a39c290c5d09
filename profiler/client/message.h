/* message.h: messages, JSON objects with a version and a type, and checked access to their members.
 * Format: profiler/client/README.md. */
#pragma once

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

enum { TCCL_WIRE_VERSION = 1 };

/* Text of a message -> object with the right version and a type. A new reference, or NULL with err.
 */
json_t *tccl_message_parse(const char *data, size_t size, struct tccl_error *err);
/* A message as compact text; allocated, NULL only if out of memory. */
char *tccl_message_text(const json_t *message);
/* The type of a parsed message. */
const char *tccl_message_type(const json_t *message);
/* A new message of that type; NULL only if out of memory. */
json_t *tccl_message_new(const char *type);

/* The class of the reason that a message gives, as a word in it; TCCL_REASON_OTHER where there is
 * none: an older tccld's. Put: with the node on which it is so; NULL: none. Returns 0, or -1
 * without memory. */
enum tccl_reason tccl_message_reason(const json_t *message);
int tccl_message_put_reason(json_t *message, enum tccl_reason reason, const char *node);

/* Members of an object, checked: an integer within [min, max]; a finite number >= 0; a text of at
 * most max bytes (*text is borrowed; NULL where it is absent and optional). Each returns 0, or -1
 * with err that names the member. */
int tccl_get_int(const json_t *object, const char *name, json_int_t min, json_int_t max,
                 json_int_t *value, struct tccl_error *err);
int tccl_get_number(const json_t *object, const char *name, double *value, struct tccl_error *err);
int tccl_get_text(const json_t *object, const char *name, size_t max, const char **text,
                  struct tccl_error *err);
int tccl_get_optional_text(const json_t *object, const char *name, size_t max, const char **text,
                           struct tccl_error *err);
/* Adds a text of any bytes, cut to max bytes; NULL adds nothing. What is not UTF-8 becomes '?'. */
int tccl_put_text(json_t *object, const char *name, const char *text, size_t max);

/* ---- envelope: what every message between machines carries. */

/* What every message between machines carries: its receiver's node name, the sender's, when the
 * sender started (microseconds of its clock; 0 for a tool), and a number used once. A credential
 * made for one node is valid on all: these four make it good for one receiver, once. */
enum { TCCL_NONCE = 33 };
struct tccl_envelope {
    const char *to, *from; /* borrowed */
    json_int_t epoch;
    char nonce[TCCL_NONCE];
};
/* A number used once. Returns 0, or -1 with err. */
int tccl_nonce_make(char nonce[static TCCL_NONCE], struct tccl_error *err);
/* Puts an envelope with a fresh nonce on a message. Returns 0, or -1 with err. */
int tccl_envelope_put(json_t *message, struct tccl_envelope *envelope, struct tccl_error *err);
/* Texts are borrowed from the message. Returns 0, or -1 with err. */
int tccl_envelope_get(const json_t *message, struct tccl_envelope *envelope,
                      struct tccl_error *err);
