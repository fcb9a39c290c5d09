/* serve-site.h: the server of tcclacct's page: who is let in, what is answered at once, and what is
 * left to helpers (serve-helper.h). */
#ifndef TCCL_SERVE_SITE_H
#define TCCL_SERVE_SITE_H

#include <stdint.h>

#include "acct/serve-helper.h"
#include "base/error.h"

/* Who comes when this many are there takes the place of the one that has been silent longest. */
enum { SERVE_VISITS = 64, SERVE_HEAD_MS = 10000, SERVE_SEND_MS = 60000 };

struct serve_place {
    const char *socket; /* path of a unix socket, or NULL: TCP */
    uint16_t port;      /* TCP: on 127.0.0.1 and ::1 only; 0: any that is free */
    serve_work *work;   /* answers to paths below /api/ */
    void *context;
};

/* Serves until SIGTERM or SIGINT. ready is called once, when browsers can come, with the URL to
 * open (of a unix socket NULL). A socket that nobody listens at any more is replaced; it has mode
 * 0600, and is removed at the end. On TCP the URL holds a token that is new each time. Returns 0,
 * or -1 with err. */
int serve_site_run(const struct serve_place *place,
                   void (*ready)(const struct serve_place *place, const char *url),
                   struct tccl_error *err);

#endif
