/* hash.c: checksums and identities (xxHash). Compiled in: one library less to load for each
 * slurmstepd, 0.1 ms. */
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t tccl_hash64(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

void tccl_hash128_hex(const void *data, size_t size, char hex[static TCCL_HASH_HEX])
{
    XXH128_hash_t hash = XXH3_128bits(data, size);
    snprintf(hex, TCCL_HASH_HEX, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
}
