/* links.h: how the links of a machine were trained while it was measured. */
#pragma once

#include <jansson.h>

#include "machine/machine.h"

enum { TCCL_LINKS = 128 };

/* The link above a GPU, a NIC or a bridge. */
struct tccl_link {
    char busid[TCCL_BUSID];
    int lanes;  /* 1 to 32 */
    double gts; /* GT/s, 2.5 to 256 */
};

/* Zero-initialise: nothing is known. */
struct tccl_links {
    int n;
    struct tccl_link list[TCCL_LINKS];
};

/* One more, where there is room. */
void tccl_links_add(struct tccl_links *links, const char *busid, int lanes, double gts);
/* NULL: nothing is known of it. */
const struct tccl_link *tccl_links_find(const struct tccl_links *links, const char *busid);

/* {"0000:15:00.0": [16, 32.0], …}: lanes, GT/s; NULL without memory. */
json_t *tccl_links_to_json(const struct tccl_links *links);
/* What is missing, or can't be, is left out. */
void tccl_links_from_json(const json_t *json, struct tccl_links *links);
