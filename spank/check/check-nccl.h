/* check-nccl.h: the NCCL libraries that programs on this node would find. */
#ifndef TCCL_CHECK_NCCL_H
#define TCCL_CHECK_NCCL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { CHECK_NCCL_MOST = 16, CHECK_NCCL_VERSION = 32 };

struct check_nccl {
    char path[PATH_MAX];
    const char *from;                 /* static: "LD_LIBRARY_PATH", "ldconfig", "python3" */
    char version[CHECK_NCCL_VERSION]; /* "2.28.9+cuda12.9", "" unknown */
};

struct check_nccls {
    struct check_nccl all[CHECK_NCCL_MOST]; /* each file once, in the order of the search */
    int count;
    char torch[PATH_MAX]; /* a PyTorch without a libnccl.so beside it or in nvidia/nccl; "" none */
    bool python;          /* python3 was asked */
};

/* Looks in LD_LIBRARY_PATH, ld.so's cache and python3's packages, until deadline (tccl_now_ms). */
void check_nccls_find(int64_t deadline, struct check_nccls *found);

/* Is it one that the shim knows, 2.18 to 2.30? An unknown version is not. */
bool check_nccl_supported(const char *version);

#endif
