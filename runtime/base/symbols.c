/* symbols.c: looks functions up in the hash tables of loaded objects, as the loader does. The order
 * of dl_iterate_phdr is that in which they were loaded, so what stands behind the shim there is
 * what RTLD_NEXT would find from it. */
#include "base/loaded.h"

#include <link.h>
#include <string.h>

#include "base/base.h"

void *shim_next_dlsym;

/* What a dynamic section tells. */
struct tables {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash, *hash; /* NULL: not there */
};

/* Loaders relocate these pointers in place, but not all loaders, and not in all objects (vDSO). */
static const void *pointer(uintptr_t base, uintptr_t value)
{
    return (const void *)(value < base ? value + base : value);
}

static void read_dynamic(uintptr_t base, const ElfW(Dyn) * entry, struct tables *tables)
{
    tables->symbols = NULL;
    tables->strings = NULL;
    tables->gnu_hash = tables->hash = NULL;
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *at = pointer(base, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            tables->symbols = at;
        else if (entry->d_tag == DT_STRTAB)
            tables->strings = at;
        else if (entry->d_tag == DT_GNU_HASH)
            tables->gnu_hash = at;
        else if (entry->d_tag == DT_HASH)
            tables->hash = at;
    }
}

static bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* The fields of st_info lie alike in both classes of ELF: binding and type. */
static bool is_symbol(const struct tables *tables, uint32_t i, const char *name, unsigned type)
{
    const ElfW(Sym) *symbol = &tables->symbols[i];
    return symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 0xf) == type &&
           symbol->st_info >> 4 != STB_LOCAL && same(tables->strings + symbol->st_name, name);
}

/* Index of the symbol, or 0. */
static uint32_t find_gnu(const struct tables *tables, const char *name, unsigned type)
{
    const uint32_t *header = tables->gnu_hash;
    uint32_t n = header[0], first = header[1], hash = 5381;
    for (const char *at = name; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    const uint32_t *buckets = header + 4 + header[2] * (sizeof(ElfW(Addr)) / sizeof(*header));
    const uint32_t *chain = buckets + n;
    uint32_t i = n ? buckets[hash % n] : 0;
    for (; i >= first && i > 0; i++) {
        uint32_t word = chain[i - first];
        if ((word | 1) == (hash | 1) && is_symbol(tables, i, name, type))
            return i;
        if (word & 1)
            return 0;
    }
    return 0;
}

void *shim_symbol_in(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name, unsigned type)
{
    struct tables tables;
    uint32_t i = 0;
    read_dynamic(base, dynamic, &tables);
    if (!tables.symbols || !tables.strings)
        return NULL;
    if (tables.gnu_hash)
        i = find_gnu(&tables, name, type);
    else
        for (uint32_t at = 1; !i && tables.hash && at < tables.hash[1]; at++)
            i = is_symbol(&tables, at, name, type) ? at : 0;
    return i ? (void *)(base + tables.symbols[i].st_value) : NULL;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return NULL;
}

static void *find_in(const struct dl_phdr_info *object, const char *name)
{
    const ElfW(Dyn) *dynamic = dynamic_of(object);
    return dynamic ? shim_symbol_in(object->dlpi_addr, dynamic, name, STT_FUNC) : NULL;
}

/* ---- Objects ---- */

static bool holds(const struct dl_phdr_info *info, const void *address)
{
    uintptr_t at = (uintptr_t)address - info->dlpi_addr;
    for (int i = 0; (uintptr_t)address >= info->dlpi_addr && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && at - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

struct search {
    const void *address;    /* in the object that is looked for */
    const char *name;       /* what its file's name begins with; of a function */
    bool past_us;           /* the shim itself was met */
    void *found;            /* the function */
    struct dl_phdr_info in; /* the object */
};

static int visit_holder(struct dl_phdr_info *info, size_t size UNUSED, void *data)
{
    struct search *search = data;
    if (!holds(info, search->address))
        return 0;
    search->in = *info;
    return 1;
}

static bool find_holder(const void *address, struct search *search)
{
    search->address = address;
    return address && dl_iterate_phdr(visit_holder, search);
}

bool shim_object_of(const void *address, struct shim_object *object)
{
    struct search search;
    if (!find_holder(address, &search))
        return false;
    const struct dl_phdr_info *in = &search.in;
    *object = (struct shim_object){UINTPTR_MAX, 0, in->dlpi_name ? in->dlpi_name : ""};
    for (int i = 0; i < in->dlpi_phnum; i++) {
        if (in->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uintptr_t at = in->dlpi_addr + in->dlpi_phdr[i].p_vaddr;
        uintptr_t end = at + in->dlpi_phdr[i].p_memsz;
        object->start = at < object->start ? at : object->start;
        object->end = end > object->end ? end : object->end;
    }
    return true;
}

static int visit_named(struct dl_phdr_info *info, size_t size UNUSED, void *data)
{
    struct search *search = data;
    const char *path = info->dlpi_name;
    if (!path || strncmp(shim_file_name(path), search->name, strlen(search->name)) != 0)
        return 0;
    search->in = *info;
    return 1;
}

const char *shim_loaded(const char *beginning)
{
    struct search search = {.name = beginning};
    return dl_iterate_phdr(visit_named, &search) ? search.in.dlpi_name : NULL;
}

/* The linker's names for where the shim begins and ends. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

bool shim_is_ours(const void *address)
{
    return (uintptr_t)address >= (uintptr_t)__ehdr_start && (uintptr_t)address < (uintptr_t)_end;
}

bool shim_defines(const void *address, const char *name)
{
    struct search search;
    return find_holder(address, &search) && find_in(&search.in, name);
}

/* past_us: those behind the shim only. */
static int visit_others(struct dl_phdr_info *info, size_t size UNUSED, void *data)
{
    struct search *search = data;
    if (holds(info, __ehdr_start))
        search->past_us = true;
    else if (search->past_us)
        search->found = find_in(info, search->name);
    return search->found != NULL;
}

bool shim_defined_elsewhere(const char *name)
{
    struct search search = {.name = name, .past_us = true};
    return dl_iterate_phdr(visit_others, &search) && search.found;
}

/* ---- Slots ---- */

#ifdef __aarch64__
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#else
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#endif

static bool may_write(const struct dl_phdr_info *info, uintptr_t offset)
{
    bool writable = false, relro = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        bool inside = offset - part->p_vaddr < part->p_memsz;
        writable |= part->p_type == PT_LOAD && part->p_flags & PF_W && inside;
        relro |= part->p_type == PT_GNU_RELRO && inside;
    }
    return writable && !relro;
}

static void **slot_in(const struct dl_phdr_info *info, const ElfW(Dyn) * dynamic, const char *name)
{
    const ElfW(Rela) *jumps = NULL;
    size_t size = 0;
    struct tables tables;
    read_dynamic(info->dlpi_addr, dynamic, &tables);
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_JMPREL)
            jumps = pointer(info->dlpi_addr, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_PLTRELSZ)
            size = entry->d_un.d_val;
        else if (entry->d_tag == DT_PLTREL && entry->d_un.d_val != DT_RELA)
            return NULL;
    }
    if (!jumps || !tables.symbols || !tables.strings)
        return NULL;
    for (size_t i = 0; i < size / sizeof(*jumps); i++) {
        const ElfW(Sym) *symbol = &tables.symbols[jumps[i].r_info >> 32];
        if ((uint32_t)jumps[i].r_info == JUMP_SLOT && symbol->st_shndx == SHN_UNDEF &&
            same(tables.strings + symbol->st_name, name))
            return may_write(info, jumps[i].r_offset)
                       ? (void **)(info->dlpi_addr + jumps[i].r_offset)
                       : NULL;
    }
    return NULL;
}

void **shim_slot(const void *address, const char *name)
{
    struct search search;
    const ElfW(Dyn) *dynamic = find_holder(address, &search) ? dynamic_of(&search.in) : NULL;
    return dynamic ? slot_in(&search.in, dynamic, name) : NULL;
}

/* ---- Functions of libdl ---- */

static void *look_for(const char *name)
{
    struct search behind = {.name = name}, any = {.name = name, .past_us = true};
    if (!dl_iterate_phdr(visit_others, &behind)) /* loaded late, all may be ahead of it */
        dl_iterate_phdr(visit_others, &any);
    return behind.found ? behind.found : any.found;
}

void *shim_next(void **known, const char *name)
{
    void *found = __atomic_load_n(known, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    found = shim_relocated() ? look_for(name) : shim_early_function(name);
    __atomic_store_n(known, found, __ATOMIC_RELEASE);
    return found;
}

void *shim_find_dlsym(void)
{
    return shim_next(&shim_next_dlsym, "dlsym");
}

void *shim_dlsym(void *handle, const char *name)
{
    void *(*next)(void *, const char *) = (void *(*)(void *, const char *))shim_find_dlsym();
    return next ? next(handle, name) : NULL;
}

void *shim_dlopen(const char *name, int flags)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int))look_for("dlopen");
    return next ? next(name, flags) : NULL;
}

void shim_dlclose(void *handle)
{
    int (*next)(void *) = (int (*)(void *))look_for("dlclose");
    if (next)
        next(handle);
}

bool shim_functions(void *handle, const char names[][SHIM_FUNCTION], size_t n, size_t needed,
                    void *functions)
{
    bool there = true;
    for (size_t i = 0; i < n; i++) {
        void *function = dlsym(handle, names[i]);
        memcpy((char *)functions + i * sizeof(function), &function, sizeof(function));
        there = there && (function || i >= needed);
    }
    return there;
}
