/* libc-versions.h: binds to the versions of libc's functions that GLIBC_2.17 has, also where the
 * shim is built on a newer one. Included ahead of every file (-include, see meson.build);
 * libdl.so.2 stays needed, because that is where an older libc has them. */
#ifndef SHIM_LIBC_VERSIONS_H
#define SHIM_LIBC_VERSIONS_H

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
/* In libc itself since 2.34. */
SHIM_BIND(dlopen, dlopen);
SHIM_BIND(dlclose, dlclose);
SHIM_BIND(dlsym, dlsym);
SHIM_BIND(dlvsym, dlvsym);
SHIM_BIND(dladdr, dladdr);
SHIM_BIND(dlerror, dlerror);
/* What headers make of fcntl since 2.28, and of strtol since 2.38. */
SHIM_BIND(fcntl64, fcntl);
SHIM_BIND(__isoc23_strtol, strtol);
SHIM_BIND(__isoc23_strtoul, strtoul);
SHIM_BIND(__isoc23_strtoll, strtoll);
SHIM_BIND(__isoc23_strtoull, strtoull);
#endif

#endif
