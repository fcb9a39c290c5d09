/* libc-versions.h: binds to the versions of libc's functions that GLIBC_2.17 has, also where the
 * shim is built on a newer one. Included ahead of every file (-include, see meson.build). */
#pragma once

#include <features.h>

#ifdef __GLIBC__
#if defined __x86_64__ && defined __LP64__
#define SHIM_OLD_LIBC "GLIBC_2.2.5"
#elif defined __aarch64__ || (defined __powerpc64__ && defined __LITTLE_ENDIAN__)
#define SHIM_OLD_LIBC "GLIBC_2.17"
#endif
#endif

#ifdef SHIM_OLD_LIBC
#define SHIM_BIND(ours, theirs) __asm__(".symver " #ours "," #theirs "@" SHIM_OLD_LIBC)
/* What headers make of fcntl since 2.28, and of strtol since 2.38. */
SHIM_BIND(fcntl64, fcntl);
SHIM_BIND(__isoc23_strtol, strtol);
SHIM_BIND(__isoc23_strtoul, strtoul);
SHIM_BIND(__isoc23_strtoll, strtoll);
SHIM_BIND(__isoc23_strtoull, strtoull);
#endif
