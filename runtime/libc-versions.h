/* libc-versions.h: binds to the versions of libc's functions that GLIBC_2.17 has, also where the
 * shim is built on a newer one. Included ahead of every file (-include, see meson.build);
 * libdl.so.2 stays needed, because that is where an older libc has them. */
#ifndef SHIM_LIBC_VERSIONS_H
#define SHIM_LIBC_VERSIONS_H

#include <features.h>

#ifdef __GLIBC__
#if defined __x86_64__ && defined __LP64__
#define SHIM_LIBDL_VERSION "GLIBC_2.2.5"
#elif defined __aarch64__ || (defined __powerpc64__ && defined __LITTLE_ENDIAN__)
#define SHIM_LIBDL_VERSION "GLIBC_2.17"
#endif
#endif

#ifdef SHIM_LIBDL_VERSION
#define SHIM_FROM_LIBDL(name) __asm__(".symver " #name "," #name "@" SHIM_LIBDL_VERSION)
SHIM_FROM_LIBDL(dlopen);
SHIM_FROM_LIBDL(dlclose);
SHIM_FROM_LIBDL(dlsym);
SHIM_FROM_LIBDL(dlvsym);
SHIM_FROM_LIBDL(dladdr);
SHIM_FROM_LIBDL(dlerror);
#endif

#endif
