/* acct-ring.h: the ring, or rings, of a step, read from its record (record.h) and shown. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "acct/acct.h"
#include "base/error.h"
#include "chain/beside-text.h"
#include "draw/sheet.h"

/* Consecutive nodes with the same chains. */
struct acct_run {
    int set; /* index */
    int first, count;
};

/* Runs that repeat: runs first to first + n_runs - 1, consecutively that many times. */
struct acct_group {
    int first, n_runs, times;
};

struct acct_ring {
    struct tccl_named_rings *sets; /* distinct ones, in order of appearance; of one ring: chains */
    struct acct_run *runs;
    struct acct_group *groups; /* all runs, in order */
    char **names;              /* of the nodes */
    int n_rings;               /* in each set: that run at once */
    int n_sets, n_runs, n_groups, n_nodes, n_gpus;
    bool cut; /* truncated: this is only the beginning of the ring */
};

/* Reads the text (chain-text.h): nodes with equal chains once, repetitions grouped. A ring without
 * node names belongs to the node called alone. All nodes must have as many chains. Returns 0, or -1
 * with err. acct_ring_clear frees, also after a failure. */
int acct_ring_read(const char *text, const char *alone, struct acct_ring *ring,
                   struct tccl_error *err);
void acct_ring_clear(struct acct_ring *ring);

/* A record's ring, and what is drawn of it. */
struct acct_drawn {
    struct acct_ring ring;
    struct tccl_sheet sheet;
    struct tccl_named_rings nccl;  /* NCCL's own on the first node, each with an equal part */
    struct tccl_neighbour *beside; /* steps that ran on its nodes when this one began */
    int n_beside;
    bool bounds;   /* beside them all have their GB/s at least (NeighboursBy) */
    json_t *shown; /* texts that it holds */
};

/* Returns 0, or -1 with err: the record has no ring (with the record's own reason), its text can't
 * be read, or out of memory. If it holds only the beginning of the ring, the sheet says so.
 * acct_drawn_clear frees, also after a failure. */
int acct_drawn_read(const json_t *record, struct acct_drawn *drawn, struct tccl_error *err);
void acct_drawn_clear(struct acct_drawn *drawn);

/* A field of the record (acct.h) as the table shows it. Borrowed from drawn; "" where there
 * is none, or no memory. */
const char *acct_drawn_field(struct acct_drawn *drawn, const json_t *record, const char *name);
/* A node by its index: its name; "node 3" where the ring's text does not come so far. */
enum { ACCT_PLACE = 48 };
void acct_drawn_place(const struct acct_drawn *drawn, int node, char text[static ACCT_PLACE]);
/* Is a neighbour known to reach its GB/s at least, rather than just that? */
bool acct_drawn_least(const struct acct_drawn *drawn, int neighbour);

/* These read a record and draw it. Returns 0, or -1 with err as above; nothing has been written
 * then. Errors of out are left to ferror. */

/* As SVG: one self-contained <svg> element. */
int acct_ring_svg(FILE *out, const json_t *record, struct tccl_error *err);

/* As a page for browsers. */
int acct_ring_page(FILE *out, const json_t *record, const struct acct_asked *asked,
                   struct tccl_error *err);

/* For a terminal of that many columns (at least 40), in UTF-8 if the environment's locale (LC_ALL,
 * LC_CTYPE, LANG) uses it, else in ASCII. colour: with terminal colours. LC_CTYPE must be a UTF-8
 * locale, for the width of characters. */
int acct_ring_text(FILE *out, const json_t *record, int columns, bool colour,
                   struct tccl_error *err);

/* As an object: {"step": the record, "ring": {"closed", "cut", "rings": how many run at once,
 * "nodes": [{"name", "chains": index}], "chains": [[chain]]}}; a chain is {"entry", "gpus",
 * "links": [{"kind", "memory"}], "exit"}. A new reference, or NULL with err. */
json_t *acct_ring_json(json_t *record, struct tccl_error *err);
