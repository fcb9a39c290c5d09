/* fuzz.h: what each fuzz target gives (LLVMFuzzerTestOneInput, fuzz_seeds), and helpers for them.
 */
#ifndef TCCL_FUZZ_H
#define TCCL_FUZZ_H

#include <stddef.h>
#include <sys/mman.h>

#include "check.h"

/* Feeds one input. Returns 0; what is wrong with the parser aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls add with each good input to begin from. */
typedef void fuzz_add(void *context, const void *data, size_t size);
void fuzz_seeds(fuzz_add *add, void *context);

/* In place of fuzz_seeds where all inputs are texts. */
#define FUZZ_SEEDS(...)                                                                            \
    void fuzz_seeds(fuzz_add *add, void *context)                                                  \
    {                                                                                              \
        static const char *const seeds_[] = {__VA_ARGS__};                                         \
        for (size_t i = 0; i < COUNT(seeds_); i++)                                                 \
            add(context, seeds_[i], strlen(seeds_[i]));                                            \
    }

/* A property that must hold for every input. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { FUZZ_PATH = 32 };

/* The input as a file in memory, for readers that take a path. Returns a descriptor to be closed.
 */
static inline int fuzz_file(const void *data, size_t size, char path[static FUZZ_PATH])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

/* The input with a NUL behind it, for parsers of text; to be freed. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    for (size_t i = 0; i < size; i++)
        text[i] = (char)data[i];
    text[size] = '\0';
    return text;
}

#endif
