/* acct-ring-facts.h: the lines and bars that go with the drawing of a ring. */
#ifndef TCCL_ACCT_RING_FACTS_H
#define TCCL_ACCT_RING_FACTS_H

#include <jansson.h>

#include "acct/acct-ring-groups.h"
#include "chain/beside-text.h"
#include "chain/memory-load.h"

enum { ACCT_RING_LINES = 8, ACCT_RING_BARS = 5, ACCT_RING_LABEL = 160 };

struct acct_ring_facts {
    char *title;                  /* job, its name and user */
    char *lead;                   /* what it gains, and by what; NULL: not known */
    double gbps, baseline_gbps;   /* of the ring, and of NCCL's own; 0: not known */
    bool built;                   /* NCCL built it, as all nodes said */
    struct tccl_named_rings nccl; /* NCCL's own on the first node, each with an equal part; n 0: not
                                   * known */
    struct tccl_memory_load busy; /* the memory that NCCL's own ask most of, if they ask more than
                                   * the ring does of any; memory -1: there is none */
    char *lines[ACCT_RING_LINES]; /* what else is known; NULL past the last */
    int n_lines;
    struct {
        const char *label;
        double gbps;
        bool ring;          /* the ring's own bar, not one to compare it with */
    } bars[ACCT_RING_BARS]; /* known bandwidths */
    int n_bars;
    struct tccl_neighbour *beside; /* steps that ran on its nodes when this one began */
    int n_beside;
    bool bounds; /* beside them all have their GB/s at least (NeighboursBy) */
};

/* Reads the record's ring and its facts; texts are escaped (acct_escape). Returns 0, or -1 with err
 * saying why there is no ring. acct_ring_facts_clear frees both, also after a failure. */
int acct_ring_facts_read(const json_t *record, struct acct_ring *ring,
                         struct acct_ring_facts *facts, struct tccl_error *err);
void acct_ring_facts_clear(struct acct_ring *ring, struct acct_ring_facts *facts);

/* A node by its index: its name, escaped; "node 3" where the ring's text does not come so far. */
enum { ACCT_RING_PLACE = 48 };
void acct_ring_place(const struct acct_ring *ring, int node, char text[static ACCT_RING_PLACE]);

/* Is a neighbour known to reach its GB/s at least, rather than just that? */
bool acct_ring_at_least(const struct acct_ring_facts *facts, int neighbour);

/* What a neighbour runs: "NCCL's own", "a ring", "3 rings"; of one of several rings, counted from 0
 * (-1: of all), which one: "ring 1 of 3". */
enum { ACCT_RING_WHO = 48 };
void acct_ring_who(const struct tccl_neighbour *other, int which, char text[static ACCT_RING_WHO]);

/* What is said of a neighbour: "beside it: 5.20 of 10.40 GB/s, NCCL's own"; of a ring over several
 * nodes "beside it on n2: …". which: as above. */
void acct_ring_beside(const struct acct_ring *ring, const struct acct_ring_facts *facts,
                      int neighbour, int which, char text[static ACCT_RING_LABEL]);

/* What is said of NCCL's own: "NCCL's own on n1: 7.86 GB/s, ring 1 of 2". */
void acct_ring_nccl(const struct acct_ring *ring, const struct acct_ring_facts *facts, int i,
                    char text[static ACCT_RING_LABEL]);

/* A field of the record (acct-fields.h) as the table shows it, escaped. Allocated; NULL if out
 * of memory. */
char *acct_ring_shown(const json_t *record, const char *name);

#endif
