/* seal.h: credentials made and opened in the pool of munge threads. */
#pragma once

#include <stdbool.h>

#include "tccld/main/daemon.h"

enum { SEAL_PATIENCE_MS = 5000 /* the longest that a task may go on trying */ };

/* Puts a text (taken over) in a credential for reader, until deadline. Calls done on the event loop
 * with the credential, which it owns, or NULL and err. Returns 0, or -1 with err (done isn't
 * called). */
int seal_close(struct daemon *daemon, uid_t reader, char *text, int64_t deadline,
               void (*done)(void *context, char *cred, const struct tccl_error *err), void *context,
               struct tccl_error *err);

/* Opens a credential (taken over). Calls done with who made it and the text in it, which it owns,
 * or NULL and err. Returns as above. */
int seal_open(struct daemon *daemon, char *cred, int64_t deadline,
              void (*done)(void *context, uid_t uid, char *text, size_t size,
                           const struct tccl_error *err),
              void *context, struct tccl_error *err);

/* Does munge work, and have more to do than it has done? */
bool seal_is_busy(const struct daemon *daemon);
