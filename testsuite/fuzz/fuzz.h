/* fuzz.h: what each fuzz target gives (LLVMFuzzerTestOneInput, fuzz_seeds), and helpers for them.
 */
#pragma once

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

/* The input in as many bytes as it has, for parsers that must keep to the size; to be freed. */
static inline char *fuzz_exact(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    return text;
}

/* The input as JSON, or NULL. A new reference. */
static inline json_t *fuzz_json(const uint8_t *data, size_t size)
{
    return json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
}

/* A seed. Takes the reference. */
static inline void fuzz_add_json(fuzz_add *add, void *context, json_t *json)
{
    cleanup_free char *text = json_dumps(json, JSON_COMPACT);
    add(context, text, strlen(text));
    json_decref(json);
}
