/* source.h: where bandwidths come from, as profiles, tables, plans and records say it: the back end
 * that measured ("model", "host", "cuda") and, behind a '+', what ran beside: "cuda+offload". */
#ifndef TCCL_SOURCE_H
#define TCCL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/* What jobs keep running beside their rings. offload: each GPU copies to its own memory and from
 * it, as jobs do that keep parameters or states of the optimizer there. */
enum tccl_background { TCCL_BACKGROUND_NONE, TCCL_BACKGROUND_OFFLOAD, TCCL_BACKGROUNDS };

enum { TCCL_BACKGROUND = 15 /* bytes of a name, and room */ };

/* "none", "offload" */
const char *tccl_background_name(enum tccl_background background);
/* By its name; -1: none is called that. */
int tccl_background_parse(const char *name);
/* The same; NONE for "" and for one that this version doesn't know. */
enum tccl_background tccl_background_named(const char *name);

/* "cuda+offload", cut off where size is too small. */
void tccl_source_format(const char *backend, enum tccl_background background, char *text,
                        size_t size);
/* Is it of that back end, whatever ran beside? */
bool tccl_source_is(const char *source, const char *backend);
/* Is it of a back end that measures, and not a model's? */
bool tccl_source_measured(const char *source);
/* What ran beside; NONE also for a source that this version doesn't know. */
enum tccl_background tccl_source_background(const char *source);
/* The back end alone, cut off where size is too small. */
void tccl_source_backend(const char *source, char *text, size_t size);

#endif
