/* system.h: what a machine runs that its bandwidths may depend on. */
#pragma once

#include <jansson.h>

enum { TCCL_SYSTEM_WORD = 96 };

/* Each "" where it is not known. */
struct tccl_system {
    char kernel[TCCL_SYSTEM_WORD];   /* its release */
    char driver[TCCL_SYSTEM_WORD];   /* NVIDIA's kernel module */
    char firmware[TCCL_SYSTEM_WORD]; /* version and date of the BIOS */
};

/* This machine's. root: in front of /sys, for tests; NULL: none. */
void tccl_system_read(const char *root, struct tccl_system *system);

/* {"kernel":…, "driver":…, "firmware":…}, what is not known left out; NULL without memory. */
json_t *tccl_system_to_json(const struct tccl_system *system);
/* What is missing or no text becomes "". */
void tccl_system_from_json(const json_t *json, struct tccl_system *system);
