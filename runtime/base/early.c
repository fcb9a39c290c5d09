/* early.c: goes to the loader's list of libraries by system calls alone: /proc/self/auxv tells
 * where the loader is, and its _r_debug, which is there for debuggers, has the list. */
#include "base/loaded.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Its own address once it is relocated; the compiler must not know. */
static const volatile void *const volatile self = &self;

bool shim_relocated(void)
{
    return self == &self;
}

#if (defined __x86_64__ && defined __LP64__) || defined __aarch64__

static long call(long number, long a, long b, long c)
{
#ifdef __x86_64__
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long number_in __asm__("x8") = number;
    register long result __asm__("x0") = a;
    register long second __asm__("x1") = b, third __asm__("x2") = c;
    __asm__ volatile("svc #0" : "+r"(result) : "r"(number_in), "r"(second), "r"(third) : "memory");
    return result;
#endif
}

/* Where the loader is; 0: not known. */
static uintptr_t loader(void)
{
    static const char path[] = "/proc/self/auxv";
    uintptr_t words[128], base = 0, parts = 0;
    long fd = call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC);
    long size = fd < 0 ? 0 : call(SYS_read, fd, (long)words, sizeof(words));
    if (fd >= 0)
        call(SYS_close, fd, 0, 0);
    for (long i = 0; i + 1 < size / (long)sizeof(*words); i += 2) {
        if (words[i] == AT_BASE)
            base = words[i + 1];
        else if (words[i] == AT_PHDR)
            parts = words[i + 1];
    }
    /* Where the loader was started as a program, that is its own header. */
    return base ? base : parts & ~(uintptr_t)4095;
}

static const ElfW(Dyn) * dynamic_of(uintptr_t base)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)base;
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)(base + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (part[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(base + part[i].p_vaddr);
    return NULL;
}

extern ElfW(Dyn) shim_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));

void *shim_early_function(const char *name)
{
    uintptr_t base = loader();
    const ElfW(Dyn) *dynamic = base ? dynamic_of(base) : NULL;
    const struct r_debug *debug =
        dynamic ? shim_symbol_in(base, dynamic, "_r_debug", STT_OBJECT) : NULL;
    const struct link_map *map = debug ? debug->r_map : NULL;
    while (map && map->l_ld != shim_dynamic)
        map = map->l_next;
    void *found = NULL;
    for (map = map ? map->l_next : NULL; map && !found; map = map->l_next)
        found = shim_symbol_in(map->l_addr, map->l_ld, name, STT_FUNC);
    return found;
}

#else

void *shim_early_function(const char *name UNUSED)
{
    return NULL;
}

#endif
