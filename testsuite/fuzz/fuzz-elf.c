/* Libraries, as tccl-check looks into them without loading them. */
#include <link.h>
#include <string.h>

#include "base/cleanup.h"
#include "check/check-elf.h"
#include "fuzz.h"

/* A small library that has all that is looked for. */
struct library {
    ElfW(Ehdr) header;
    ElfW(Shdr) sections[5]; /* none, symbols, their names, wanted versions, data */
    ElfW(Sym) symbols[3];
    struct {
        Elf64_Verneed need; /* the same in both sizes */
        Elf64_Vernaux wanted[2];
    } versions;
    char names[64];
    uint32_t number;
    char word[32];
};

enum { NUMBER = 1, FUNCTION = 13, OLD = 22, NEW = 33 }; /* in names */

static ElfW(Shdr) section(ElfW(Word) type, size_t offset, size_t size)
{
    return (ElfW(Shdr)){.sh_type = type, .sh_offset = offset, .sh_size = size, .sh_link = 2};
}

static struct library make_library(void)
{
    struct library library = {.names = "\0some_number\0function\0GLIBC_2.17\0GLIBC_2.34",
                              .number = 0x160503,
                              .word = "NCCL version 2.28.9+cuda12.9"};
    FILE *self = fopen("/proc/self/exe", "r");
    if (!self || fread(&library.header, sizeof(library.header), 1, self) != 1)
        abort();
    fclose(self);
    library.header.e_shoff = offsetof(struct library, sections);
    library.header.e_shentsize = sizeof(library.sections[0]);
    library.header.e_shnum = 5;
    library.sections[1] =
        section(SHT_DYNSYM, offsetof(struct library, symbols), sizeof(library.symbols));
    library.sections[2] =
        section(SHT_STRTAB, offsetof(struct library, names), sizeof(library.names));
    library.sections[3] =
        section(SHT_GNU_verneed, offsetof(struct library, versions), sizeof(library.versions));
    library.sections[3].sh_info = 1;
    library.sections[4] =
        section(SHT_PROGBITS, offsetof(struct library, number), sizeof(library.number));
    library.sections[4].sh_addr = 0x1000;
    library.symbols[1] = (ElfW(Sym)){
        .st_name = NUMBER, .st_shndx = 4, .st_value = 0x1000, .st_size = sizeof(library.number)};
    library.symbols[2] = (ElfW(Sym)){.st_name = FUNCTION, .st_shndx = 4};
    library.versions.need =
        (Elf64_Verneed){.vn_version = 1, .vn_cnt = 2, .vn_aux = sizeof(Elf64_Verneed)};
    library.versions.wanted[0] =
        (Elf64_Vernaux){.vna_name = OLD, .vna_next = sizeof(Elf64_Vernaux)};
    library.versions.wanted[1] = (Elf64_Vernaux){.vna_name = NEW};
    return library;
}

static void check_word(const struct check_elf *elf)
{
    char word[16];
    if (!check_elf_word(elf, "NCCL version ", word, sizeof(word)))
        return;
    FUZZ_CHECK(*word && strlen(word) < sizeof(word));
    FUZZ_CHECK(memmem(elf->data, elf->size, word, strlen(word)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Not mapped, so that AddressSanitizer sees what reads beyond it. */
    cleanup_free char *copy = fuzz_text(data, size);
    struct check_elf elf = {.data = (unsigned char *)copy, .size = size}, opened;
    struct library library = make_library();
    uint32_t number = 0;
    int major, minor;
    char path[FUZZ_PATH];
    check_word(&elf);
    check_elf_defines(&elf, "function");
    bool found = check_elf_number(&elf, "some_number", &number);
    check_elf_glibc(&elf, &major, &minor);
    if (size == sizeof(library) && memcmp(data, &library, size) == 0)
        FUZZ_CHECK(found && number == library.number && major == 2 && minor == 34 &&
                   check_elf_defines(&elf, "function"));
    int fd = fuzz_file(data, size, path);
    struct tccl_error err = {0};
    if (check_elf_open(path, &opened, &err) != 0)
        FUZZ_CHECK(err.text[0]);
    else
        FUZZ_CHECK(check_elf_native(&opened) == check_elf_native(&elf));
    check_elf_close(&opened);
    close(fd);
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    struct library library = make_library();
    add(context, &library, sizeof(library));
    library.header.e_machine ^= 1;
    add(context, &library, sizeof(library));
    add(context, "NCCL version x NCCL version 2.1", 31);
}
