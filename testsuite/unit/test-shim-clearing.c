/* A library's large memset gives pages back in place of writing them: in the thread that waits for
 * it, of private memory, and once. What can't be so is cleared as ever. */
#include "nccl/shim-nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/loaded.h"
#include "check.h"

enum { LARGE = 300 << 20 };

typedef void clears(void *at, int value, size_t size);
static clears *lazy, *now;
static void **slot;

static char *map(int flags, int fd, size_t size)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

/* Of some bytes of each page. */
static bool all_are(const char *at, size_t size, char value)
{
    for (size_t i = 0; i < size; i += 509)
        if (at[i] != value)
            return false;
    return at[size - 1] == value;
}

static size_t pages_there(char *at, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;
    unsigned char *there = malloc(size / page);
    CHECK(mincore(at, size, there) == 0);
    for (size_t i = 0; i < size / page; i++)
        n += there[i] & 1;
    free(there);
    return n;
}

/* Any place and size in a mapping that has been written: those bytes are cleared, and no others. */
static void test_pages(unsigned long seed)
{
    enum { SIZE = 1 << 20 };
    char *at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, SIZE);
    for (int i = 0; i < 100; i++) {
        srandom((unsigned)(seed + (unsigned long)i));
        size_t begin = (size_t)random() % (SIZE / 2), size = (size_t)random() % (SIZE / 2);
        memset(at, 7, SIZE);
        bool done = shim_clear_pages(at + begin, size);
        CHECK(done || size < 3 << 12);
        for (size_t k = 0; k < SIZE && done; k++)
            if (at[k] != (k >= begin && k < begin + size ? 0 : 7)) {
                CHECK_INT(k, 0);
                break;
            }
    }
    munmap(at, SIZE);
}

/* Given back, these would not read as zero, or can't be. */
static void test_others(void)
{
    enum { SIZE = 1 << 20 };
    cleanup_file FILE *file = tmpfile();
    cleanup_free char *text = malloc(SIZE);
    memset(text, 7, SIZE);
    CHECK(file && fwrite(text, 1, SIZE, file) == SIZE && fflush(file) == 0);
    char *shared = map(MAP_SHARED, fileno(file), SIZE);
    char *private = map(MAP_PRIVATE, fileno(file), SIZE);
    char *locked = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, SIZE);
    CHECK(!shim_clear_pages(shared, SIZE) && !shim_clear_pages(private, SIZE));
    if (syscall(SYS_mlock, locked, (size_t)SIZE) == 0) /* sanitizers have none */
        CHECK(!shim_clear_pages(locked, SIZE));
    munmap(shared, SIZE);
    munmap(private, SIZE);
    munmap(locked, SIZE);
}

/* A table as malloc gives it: no page of it is written, and the pointer is as it was. */
static void test_call(void)
{
    void *before = *slot;
    char *table = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, LARGE);
    shim_clearing_leave_out((void *)lazy);
    CHECK(*slot != before);
    lazy(table, 0, LARGE);
    CHECK(*slot == before && pages_there(table, LARGE) < 2000 && all_are(table, LARGE, 0));
    lazy(table, 1, LARGE); /* one that was used before */
    shim_clearing_leave_out((void *)lazy);
    lazy(table, 0, LARGE);
    CHECK(all_are(table, LARGE, 0));
    before = *slot; /* it may have been bound meanwhile */
    shim_clearing_leave_out((void *)lazy);
    lazy(table, 1, LARGE);      /* not cleared, */
    lazy(table, 0, LARGE / 16); /* not large */
    CHECK(all_are(table, LARGE / 16, 0) && all_are(table + LARGE / 16, LARGE - LARGE / 16, 1));
    CHECK(*slot != before);
    shim_clearing_stop();
    CHECK(*slot == before);
    shim_clearing_stop();
    munmap(table, LARGE);
}

static void *in_thread(void *data)
{
    char *table = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, LARGE);
    if (data)
        shim_clearing_leave_out((void *)lazy);
    lazy(table, 0, LARGE);
    size_t there = pages_there(table, LARGE);
    munmap(table, LARGE);
    return (void *)there;
}

/* Another thread's call comes meanwhile: that is cleared unless it waits, too. */
static void test_threads(void)
{
    void *before = *slot;
    for (int waits = 0; waits < 2; waits++) {
        pthread_t thread;
        void *there;
        char *table = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, LARGE);
        shim_clearing_leave_out((void *)lazy);
        CHECK(pthread_create(&thread, NULL, in_thread, waits ? table : NULL) == 0);
        CHECK(pthread_join(thread, &there) == 0 && ((size_t)there < 2000) == (waits == 1));
        CHECK(*slot != before);
        lazy(table, 0, LARGE);
        CHECK(pages_there(table, LARGE) < 2000 && *slot == before);
        munmap(table, LARGE);
    }
}

static void *open_library(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY);
    CHECK(handle != NULL);
    return handle ? dlsym(handle, "tccl_clear") : NULL;
}

/* Locked pages are not given back: memory is checked first then. AddressSanitizer locks nothing. */
static void test_locked(void)
{
#ifdef __SANITIZE_ADDRESS__
    return;
#endif
    if (mlockall(MCL_FUTURE) != 0)
        return;
    CHECK(!shim_clearing_can((void *)lazy));
    munlockall();
}

/* Usage: test-shim-clearing LAZY NOW: the library, bound lazily and write-protected. */

SETUP
{
    lazy = check_args[1] ? (clears *)open_library(check_args[1]) : NULL;
    now = lazy && check_args[2] ? (clears *)open_library(check_args[2]) : NULL;
    if (!now)
        exit(1);
}

TEST(slots)
{
    test_pages(check_seed());
    test_others();
    CHECK(!shim_slot((void *)now, "memset") && !shim_clearing_can((void *)now));
    CHECK(!shim_slot((void *)lazy, "memcpy") && !shim_slot(&slot, "no such function"));
    slot = shim_slot((void *)lazy, "memset");
    CHECK(slot != NULL);
    if (!slot)
        return;
    test_call();
    test_threads();
    test_locked();
    void *before = *slot;
    *slot = (void *)in_thread; /* somebody else's */
    CHECK(!shim_clearing_can((void *)lazy));
    shim_clearing_leave_out((void *)lazy);
    CHECK(*slot == (void *)in_thread);
    *slot = before;
}
