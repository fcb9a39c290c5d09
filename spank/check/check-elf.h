/* check-elf.h: what a program or library says of itself in its ELF data, without loading it. */
#ifndef TCCL_CHECK_ELF_H
#define TCCL_CHECK_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { CHECK_ELF_MOST = 1 << 30 /* bytes of a file that is looked at */ };

/* A file, mapped. */
struct check_elf {
    const unsigned char *data;
    size_t size;
};

/* Maps a regular file that is ELF. Returns 0, or -1 with err. close is right after both. */
int check_elf_open(const char *path, struct check_elf *elf, struct tccl_error *err);
void check_elf_close(struct check_elf *elf);

/* Is it for programs such as this one: same processor, same size of addresses? The functions below
 * find nothing in others. */
bool check_elf_native(const struct check_elf *elf);

/* The value of a 32-bit variable that the library exports. Returns false if there is none. */
bool check_elf_number(const struct check_elf *elf, const char *symbol, uint32_t *value);

/* Is anything exported or wanted under this name? */
bool check_elf_defines(const struct check_elf *elf, const char *symbol);

/* The newest GLIBC_major.minor that it needs; 0, 0 if none. */
void check_elf_glibc(const struct check_elf *elf, int *major, int *minor);

/* The first text with a digit behind prefix, anywhere in the file: "2.28.9+cuda12.9" behind "NCCL
 * version ". Copies what is behind it, letters, digits and ".+-" only. Returns false if there is
 * none. */
bool check_elf_word(const struct check_elf *elf, const char *prefix, char *word, size_t size);

#endif
