#include "check/check-elf.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#if __SIZEOF_POINTER__ == 8
typedef Elf64_Ehdr elf_header;
typedef Elf64_Shdr elf_section;
typedef Elf64_Sym elf_symbol;
typedef Elf64_Verneed elf_need;
typedef Elf64_Vernaux elf_wanted;
#else
typedef Elf32_Ehdr elf_header;
typedef Elf32_Shdr elf_section;
typedef Elf32_Sym elf_symbol;
typedef Elf32_Verneed elf_need;
typedef Elf32_Vernaux elf_wanted;
#endif

int check_elf_open(const char *path, struct check_elf *elf, struct tccl_error *err)
{
    struct stat st;
    *elf = (struct check_elf){0};
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0)
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(elf_header) ||
        st.st_size > CHECK_ELF_MOST)
        return tccl_fail(err, "%s: is not a library", path);
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    elf->data = data;
    elf->size = (size_t)st.st_size;
    if (memcmp(elf->data, ELFMAG, SELFMAG) == 0)
        return 0;
    check_elf_close(elf);
    return tccl_fail(err, "%s: is not a library", path);
}

void check_elf_close(struct check_elf *elf)
{
    if (elf->data)
        munmap((void *)(uintptr_t)elf->data, elf->size);
    *elf = (struct check_elf){0};
}

/* Bytes of the file, or NULL where it is not that long. */
static const void *part(const struct check_elf *elf, uint64_t offset, uint64_t size)
{
    return offset <= elf->size && size <= elf->size - offset ? elf->data + offset : NULL;
}

/* The kind of machine that a program is for. */
static bool machine_of(const struct check_elf *elf, elf_header *header)
{
    const void *data = elf->data ? part(elf, 0, sizeof(*header)) : NULL;
    if (data)
        memcpy(header, data, sizeof(*header));
    return data != NULL;
}

bool check_elf_native(const struct check_elf *elf)
{
    struct check_elf self;
    elf_header own, other;
    if (!machine_of(elf, &other) || check_elf_open("/proc/self/exe", &self, NULL) != 0)
        return false;
    bool native = machine_of(&self, &own) && own.e_machine == other.e_machine &&
                  own.e_ident[EI_CLASS] == other.e_ident[EI_CLASS] &&
                  own.e_ident[EI_DATA] == other.e_ident[EI_DATA];
    check_elf_close(&self);
    return native;
}

static bool section_at(const struct check_elf *elf, unsigned index, elf_section *section)
{
    elf_header header;
    if (!machine_of(elf, &header) || index >= header.e_shnum ||
        header.e_shentsize != sizeof(*section))
        return false;
    const void *data = part(elf, header.e_shoff, (uint64_t)(index + 1) * sizeof(*section));
    if (data)
        memcpy(section, (const char *)data + index * sizeof(*section), sizeof(*section));
    return data != NULL;
}

/* The first section of a type. */
static bool find_section(const struct check_elf *elf, unsigned type, elf_section *section)
{
    if (!check_elf_native(elf))
        return false;
    for (unsigned i = 0; section_at(elf, i, section); i++)
        if (section->sh_type == type)
            return true;
    return false;
}

/* A text of a string section, or NULL if it does not end in there. */
static const char *text_at(const struct check_elf *elf, unsigned section, uint64_t offset)
{
    elf_section strings;
    if (!section_at(elf, section, &strings) || offset >= strings.sh_size)
        return NULL;
    const char *all = part(elf, strings.sh_offset, strings.sh_size);
    return all && memchr(all + offset, '\0', strings.sh_size - offset) ? all + offset : NULL;
}

static bool find_symbol(const struct check_elf *elf, const char *name, elf_symbol *symbol)
{
    elf_section table;
    if (!find_section(elf, SHT_DYNSYM, &table))
        return false;
    const unsigned char *all = part(elf, table.sh_offset, table.sh_size);
    for (uint64_t i = 0; all && i < table.sh_size / sizeof(*symbol); i++) {
        memcpy(symbol, all + i * sizeof(*symbol), sizeof(*symbol));
        const char *text = text_at(elf, table.sh_link, symbol->st_name);
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

bool check_elf_defines(const struct check_elf *elf, const char *name)
{
    elf_symbol symbol;
    return find_symbol(elf, name, &symbol) && symbol.st_shndx != SHN_UNDEF;
}

bool check_elf_number(const struct check_elf *elf, const char *name, uint32_t *value)
{
    elf_symbol symbol;
    elf_section section;
    if (!find_symbol(elf, name, &symbol) || symbol.st_size < sizeof(*value) ||
        !section_at(elf, symbol.st_shndx, &section) || section.sh_type == SHT_NOBITS ||
        symbol.st_value < section.sh_addr)
        return false;
    const void *data =
        part(elf, section.sh_offset + (symbol.st_value - section.sh_addr), sizeof(*value));
    if (data)
        memcpy(value, data, sizeof(*value));
    return data != NULL;
}

static void take_version(const char *text, int *major, int *minor)
{
    int first, second;
    if (!text || sscanf(text, "GLIBC_%d.%d", &first, &second) != 2)
        return;
    if (first > *major || (first == *major && second > *minor)) {
        *major = first;
        *minor = second;
    }
}

/* The versions wanted of one library, at offset of the section. */
static void read_wanted(const struct check_elf *elf, const elf_section *section, uint64_t offset,
                        unsigned count, int *major, int *minor)
{
    elf_wanted each;
    for (unsigned i = 0; i < count && offset <= section->sh_size; i++, offset += each.vna_next) {
        const void *data = part(elf, section->sh_offset + offset, sizeof(each));
        if (!data)
            return;
        memcpy(&each, data, sizeof(each));
        take_version(text_at(elf, section->sh_link, each.vna_name), major, minor);
        if (!each.vna_next)
            return;
    }
}

void check_elf_glibc(const struct check_elf *elf, int *major, int *minor)
{
    elf_section section;
    elf_need need;
    uint64_t offset = 0;
    *major = *minor = 0;
    if (!find_section(elf, SHT_GNU_verneed, &section))
        return;
    for (unsigned i = 0; i < section.sh_info && offset <= section.sh_size; i++) {
        const void *data = part(elf, section.sh_offset + offset, sizeof(need));
        if (!data)
            return;
        memcpy(&need, data, sizeof(need));
        read_wanted(elf, &section, offset + need.vn_aux, need.vn_cnt, major, minor);
        if (!need.vn_next)
            return;
        offset += need.vn_next;
    }
}

bool check_elf_word(const struct check_elf *elf, const char *prefix, char *word, size_t size)
{
    size_t length = strlen(prefix);
    const unsigned char *at = elf->data, *end = elf->data + elf->size;
    while (at && (at = memmem(at, (size_t)(end - at), prefix, length))) {
        size_t used = 0;
        at += length;
        if (at < end && isdigit(*at))
            for (; at < end && used + 1 < size && (isalnum(*at) || strchr(".+-", *at)) && *at; at++)
                word[used++] = (char)*at;
        word[used] = '\0';
        if (used)
            return true;
    }
    return false;
}
