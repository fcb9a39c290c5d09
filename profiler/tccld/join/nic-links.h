/* nic-links.h: which NICs of this node have no link now: no ring leads over them. */
#pragma once

#include <stdbool.h>

#include "base/bus.h"
#include "base/error.h"
#include "tccld/main/daemon.h"

/* NICs by their PCI addresses as /sys has them ("0000:c1:00.0"). Virtual functions count. */
enum { NIC_LINKS_MAX = 1024 };
struct nic_links_down {
    char busids[NIC_LINKS_MAX][TCCL_BUS_TEXT];
    int n;
};

/* Which NICs below root (NULL: /) have a state, and no port that is up: of RDMA devices their own
 * ports count, of others the interface. A firmware that hangs can keep it for long. */
void nic_links_look(const char *root, struct nic_links_down *down);

bool nic_links_has(const struct nic_links_down *down, const char *busid);

struct nic_links;

/* Looks now and every ten seconds, in a thread of its own, and has own_links know what has changed,
 * and fresh_look search by it.
 * NULL with err. */
struct nic_links *nic_links_new(struct daemon *daemon, struct tccl_error *err);
/* Looks now, at all of it; where a look is under way behind that. */
void nic_links_hurry(struct nic_links *links);
void nic_links_free(struct nic_links *links); /* NULL is fine */

/* fresh.c: a search for rings on this node as it is now, where those of the profile, judged again,
 * may be far from the best. */

struct fresh;

/* Searches in a thread of its own that leaves the processor to others. NULL with err. */
struct fresh *fresh_new(struct daemon *daemon, struct tccl_error *err);
/* Begins with the next GPU set that own_wants names, if none is being searched: by the model where
 * one made the profile, else by what was measured (search/recall.h), for a minute at most. NULL is
 * fine. */
void fresh_look(struct fresh *fresh);
void fresh_free(struct fresh *fresh); /* NULL is fine */
