/* credential.h: munge credentials around messages. These calls block: tccld makes them in a worker.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum {
    TCCL_CRED_TTL = 60,       /* seconds that a credential is good for */
    TCCL_CRED_ANYONE = -1,    /* as reader: any user may decode it */
    TCCL_CRED_RETRIES = 20,   /* retries while munged is busy or down, */
    TCCL_CRED_RETRY_MS = 100, /* that far apart */
};

/* Encodes data so that only the user reader can decode it. socket: munged's, "" for munge's
 * default. Retries while munged does not answer, until deadline (tccl_now_ms). *cred is a text,
 * allocated (caller frees). Returns 0, or -1 with err. */
int tccl_cred_encode(const char *socket, uid_t reader, const char *data, size_t size,
                     int64_t deadline, char **cred, struct tccl_error *err);

/* Does a text look like a credential, so that it is worth asking munged? */
bool tccl_cred_has_form(const char *cred);

/* Decodes a credential (a text): who made it and what it holds. *data is allocated (caller frees)
 * and has a NUL behind its *size bytes. Returns 0, or -1 with err: forged, expired, replayed, for
 * another user, or munged does not answer; *data is then NULL. */
int tccl_cred_decode(const char *socket, const char *cred, int64_t deadline, uid_t *uid,
                     char **data, size_t *size, struct tccl_error *err);
