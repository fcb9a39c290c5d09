/* hash.h: checksums and identities (xxHash). */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TCCL_HASH_HEX = 33 };

/* XXH3, 64 bits: checksums of lines and files. */
uint64_t tccl_hash64(const void *data, size_t size);

/* XXH3, 128 bits, as 32 hexadecimal digits and a NUL: identities such as the machine id. */
void tccl_hash128_hex(const void *data, size_t size, char hex[static TCCL_HASH_HEX]);
