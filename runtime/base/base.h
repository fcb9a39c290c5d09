/* base.h: what the shim's files share. Everything here works without allocation. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bus.h"
#include "base/error.h"

enum { SHIM_GPUS = 16, SHIM_NAME = 64, SHIM_PATH = 1024 };

/* The shim's errors are called why: reasons why something is not done, one sentence each. */

#define SHIM_NO_BUS ((tccl_bus)-1) /* the PCI address of no device */
/* Where bus stands in a list of n; -1: nowhere. */
int shim_bus_find(const tccl_bus *list, int n, tccl_bus bus);

/* Text in a buffer of the caller's; what does not fit is left out and full is set. */
struct shim_text {
    char *at;
    size_t size, length; /* length without the final zero byte */
    bool full;
};
void shim_text_add(struct shim_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a pattern: %h is the host name up to its first dot, %p the process id, %% a %. */
void shim_text_expand(struct shim_text *text, const char *pattern);

/* What processes or threads share, in one order that all of them see. */
#define shim_load(at) __atomic_load_n(at, __ATOMIC_SEQ_CST)
#define shim_store(at, value) __atomic_store_n(at, value, __ATOMIC_SEQ_CST)
#define shim_swap(at, from, to)                                                                    \
    __atomic_compare_exchange_n(at, from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* The last part of a path, within it. */
const char *shim_file_name(const char *path);

/* FNV-1a over bytes, from hash (SHIM_HASH_START at first). */
#define SHIM_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t shim_hash(uint64_t hash, const void *bytes, size_t size);

/* A whole number in base 10 or 16, all of the text. Returns 0, or -1: not one, or above max. */
int shim_number(const char *text, int base, uint64_t max, uint64_t *number);

/* Reads a file of at most size - 1 bytes and puts a zero byte behind. Returns its length, or -1: it
 * can't be read, or is longer (errno EFBIG; text is its beginning then). */
long shim_read_file(const char *path, char *text, size_t size);

/* Is the descriptor a memory file of that name? Programs close descriptors that they did not
 * open, and use the number for something else. */
bool shim_is_memory_file(int fd, const char *name);

/* Writes all of the text. Returns 0, or -1. */
int shim_write_all(int fd, const char *text, size_t size);

/* Memory for what would be long on the stack: threads of programs may have small ones. All zero
 * bytes; NULL: there is none. shim_scratch_free of NULL does nothing. */
void *shim_scratch(size_t size);
void shim_scratch_free(void *scratch, size_t size);

int64_t shim_now_us(void); /* CLOCK_MONOTONIC */
void shim_sleep_us(long microseconds);
int shim_tid(void);

/* The value in the environment as libc's getenv finds it; never an answer of the shim's. */
char *shim_env(const char *name);

/* A lock for short sections, waited for at most a second (who holds it may have been killed).
 * Returns 0, or -1: not had. */
typedef int shim_lock;
int shim_lock_take(shim_lock *lock);
void shim_lock_release(shim_lock *lock);
/* Is this process a child, by fork, of the one that has asked of that owner before? (0 at first.)
 * Once true, it owns it. */
bool shim_forked(int *owner);

/* The shim's own log (shim-log.c). Silent unless TCCL_DEBUG is set: WARN (only what was left
 * undone, and why), INFO (also one line for each communicator), in the manner of NCCL_DEBUG. It
 * goes to stderr, or to TCCL_DEBUG_FILE (%h host name, %p process id), appended with one write a
 * line: "host:pid:tid TCCL INFO …". */
enum shim_level { SHIM_LOG_WARN = 1, SHIM_LOG_INFO };
void shim_log(enum shim_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- device: GPUs by the numbers of CUDA and NVML. Of CUDA only what the process has loaded; NVML
 * is loaded and started if NCCL has not done so yet, and left so. */

/* The bus id of the calling thread's current CUDA device, or of CUDA's device number ordinal.
 * Returns 0, or -1 with why (no CUDA, no device chosen so far, a MIG instance). */
int shim_device_current(tccl_bus *bus, struct tccl_error *why);
int shim_device_bus(int ordinal, tccl_bus *bus, struct tccl_error *why);

/* The version of CUDA that the driver is for (12060: 12.6); 0: not known. */
int shim_device_driver(void);

/* NVML's index of a GPU, which is NCCL's dev in a graph file. Returns 0, or -1 with why. */
int shim_device_nvml(tccl_bus bus, int *index, struct tccl_error *why);

/* Does NVML tell this process of the GPU? With ConstrainDevices, only of those of its own task. */
bool shim_device_seen(tccl_bus bus);

/* Its compute capability as one number (80: 8.0); -1: not known. */
int shim_device_sm(tccl_bus bus);

/* Has the GPU NVLink, to whatever? Also true if that can't be known. */
bool shim_device_has_nvlink(tccl_bus bus);
/* Are all pairs of these GPUs joined by NVLink, directly or by switches (SHIM_NVLINK_ALL), some of
 * them (SHIM_NVLINK_SOME), or none? -1 with why: can't be known. linked: for each pair, may be
 * NULL. */
enum shim_nvlink { SHIM_NVLINK_NONE, SHIM_NVLINK_SOME, SHIM_NVLINK_ALL };
int shim_device_nvlink(const tccl_bus *gpus, int n, bool linked[SHIM_GPUS][SHIM_GPUS],
                       struct tccl_error *why);
