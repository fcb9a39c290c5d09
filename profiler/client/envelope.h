/* envelope.h: what every message between machines carries. */
#ifndef TCCL_ENVELOPE_H
#define TCCL_ENVELOPE_H

#include <jansson.h>

#include "base/error.h"

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

#endif
