/* reload.h: reads tccl.conf, at the start and, beside the event loop, at SIGHUP. */
#pragma once

#include "tccld/main/daemon.h"

/* What tccld's options say of it. NULL: the defaults. check: any user may read it.
 * monitored: root has started it, and it has become TccldUser. alone: it serves whoever has started
 * it, on a machine by itself. */
struct conf_source {
    const char *path, *node;
    bool check, monitored, alone;
};

/* A configuration and the users it names, checked; the caller clears and frees it. NULL with err.
 */
struct tccl_conf *reload_read(const struct conf_source *source, struct tccl_users *users,
                              struct tccl_error *err);

/* Reads it again at SIGHUP; source stays the caller's. NULL with err. */
struct reload *reload_new(struct daemon *daemon, const struct conf_source *source,
                          struct tccl_error *err);
void reload_free(struct reload *reload); /* NULL is fine */
