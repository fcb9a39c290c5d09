/* clearing.c: the pages of a table are given back to the kernel in place of being cleared.
 * Whoever calls meanwhile finds either pointer, and both are right. */
#include "nccl/shim-nccl.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/loaded.h"

enum { LARGE = 256 << 20 }; /* bytes; older NCCLs' tables take less */

static int lock;    /* of the pointer and the number */
static int waiting; /* threads of the process that wait for their call */
/* Where the pointer is, and what it was; NULL: this thread does not wait. */
static __thread void **slot;
static __thread void *before;

/* Pages that were written, given back and read as zero are private memory of no file's. */
bool shim_clear_pages(void *at, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)at + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)at + size) / page * page;
    if (end < first + page)
        return false;
    volatile char *pages = (volatile char *)first;
    const size_t last = end - first - page, places[] = {0, last / page / 2 * page, last};
    for (int i = 0; i < 3; i++)
        pages[places[i]] = 1;
    if (madvise((void *)first, end - first, MADV_DONTNEED) != 0)
        return false;
    for (int i = 0; i < 3; i++)
        if (pages[places[i]] != 0)
            return false;
    memset(at, 0, first - (uintptr_t)at);
    memset((void *)end, 0, (uintptr_t)at + size - end);
    return true;
}

static void *in_front_of_memset(void *at, int value, size_t size)
{
    if (!slot || value != 0 || size < LARGE)
        return memset(at, value, size);
    shim_clearing_stop();
    return shim_clear_pages(at, size) ? at : memset(at, value, size);
}

static bool replace(void **at, void *from, void *to)
{
    return shim_swap(at, &from, to);
}

/* Where the kernel promises no more memory than it has (vm.overcommit_memory=2), an allocation
 * counts whether it is written or not. */
static bool is_promised(void)
{
    char text[16];
    return shim_read_file("/proc/sys/vm/overcommit_memory", text, sizeof(text)) <= 0 ||
           text[0] == '2';
}

/* Not where a program has all of its pages locked (mlockall). */
static bool gives_back(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool can = shim_clear_pages(page, size);
    munmap(page, size);
    return can;
}

/* The pointer, and what it is now: the loader's, which leads to the object itself until the first
 * call, or ours, while another thread waits. NULL: it is none of these. */
static void **find_slot(const void *caller, void **now)
{
    struct shim_object object;
    void **found = shim_slot(caller, "memset");
    if (!found || !shim_object_of(caller, &object))
        return NULL;
    *now = shim_load(found);
    bool unbound = (uintptr_t)*now >= object.start && (uintptr_t)*now < object.end;
    return unbound || *now == (void *)memset || *now == (void *)in_front_of_memset ? found : NULL;
}

bool shim_clearing_can(const void *caller)
{
    void *now;
    return find_slot(caller, &now) && !is_promised() && gives_back();
}

void shim_clearing_leave_out(const void *caller)
{
    shim_clearing_stop();
    if (shim_lock_take(&lock) != 0)
        return;
    void *own = (void *)in_front_of_memset, *now;
    void **found = find_slot(caller, &now);
    if (found) {
        slot = found;
        before = now == own ? (void *)memset : now;
        waiting++;
        replace(found, now, own);
    }
    shim_lock_release(&lock);
}

/* A pointer that stays here, as the lock can't be had, leads on to memset. */
void shim_clearing_stop(void)
{
    void **mine = slot;
    if (!mine)
        return;
    slot = NULL;
    if (shim_lock_take(&lock) != 0)
        return;
    if (--waiting == 0)
        replace(mine, (void *)in_front_of_memset, before);
    shim_lock_release(&lock);
}
