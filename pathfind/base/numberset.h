/* numberset.h: small sets of numbers as a bit mask and as text such as "0-3,6". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Reads "0-3,6" (numbers below limit, limit <= 32; any order; repeats are refused). Returns 0, or
 * -1 with err. */
int tccl_numberset_parse(const char *text, int limit, uint32_t *mask, struct tccl_error *err);

/* Writes the mask as "0-3,6"; "" for 0. Returns the length, or -1 where size is too small. */
int tccl_numberset_format(uint32_t mask, char *text, size_t size);
