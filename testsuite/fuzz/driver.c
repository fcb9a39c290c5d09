/* driver.c: runs a fuzz target where there is no libFuzzer: its seeds and those of the folder
 * named, then mutations of them. Repeatable: TCCL_SEED. TCCL_FUZZ_RUNS: how many (default 20000;
 * after 2 s it ends in any case, so that it can stand among the unit tests). TCCL_FUZZ_SAVE=FILE:
 * each input is written there first; what is there after a crash caused it. --seeds FOLDER writes
 * the seeds there, for libFuzzer. */
#include <dirent.h>
#include <string.h>
#include <time.h>

#include "base/fileio.h"
#include "fuzz.h"

enum { MAX_SEEDS = 256, LONGEST = 1 << 17, MAX_FILE = 1 << 16, SECONDS = 2 };

struct input {
    uint8_t *data;
    size_t size;
};

struct corpus {
    struct input inputs[MAX_SEEDS];
    int count;
};

static uint64_t state;

/* xorshift64* (Vigna, 2016). */
static uint64_t next(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

static size_t below(size_t limit)
{
    return limit ? (size_t)(next() >> 11) % limit : 0;
}

static void keep(void *context, const void *data, size_t size)
{
    struct corpus *corpus = context;

    if (corpus->count == MAX_SEEDS || size > MAX_FILE)
        return;
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    corpus->inputs[corpus->count++] = (struct input){copy, size};
}

static void insert(struct input *input, const void *data, size_t size)
{
    if (input->size + size > LONGEST)
        return;
    size_t at = below(input->size + 1);
    memmove(input->data + at + size, input->data + at, input->size - at);
    memcpy(input->data + at, data, size);
    input->size += size;
}

static void insert_token(struct input *input)
{
    static const char *const tokens[] = {
        "0",   "-1",      "1e999", "4294967296", "9223372036854775808",
        "0.1", "null",    "true",  "\"",         "{",
        "}",   "[",       "]",     ",",          ":",
        "\n",  "\\u0000", "\xff",  "\xc3",       "[0-9]",
        "g15", "-w>",     "%",     "=",          " ",
        "\0"};
    const char *token = tokens[below(sizeof(tokens) / sizeof(*tokens))];

    insert(input, token, *token ? strlen(token) : 1);
}

static void overwrite_with_token(struct input *input)
{
    static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '-', '"', ' '};

    if (input->size > 0)
        input->data[below(input->size)] = bytes[below(sizeof(bytes))];
}

static void erase(struct input *input)
{
    size_t at = below(input->size);
    size_t size = 1 + below(input->size - at < 32 ? input->size - at : 32);

    if (at + size > input->size)
        return;
    memmove(input->data + at, input->data + at + size, input->size - at - size);
    input->size -= size;
}

/* Puts a piece of one input into another, or again into itself. */
static void insert_piece(struct input *input, const struct corpus *corpus)
{
    const struct input *other = &corpus->inputs[below((size_t)corpus->count)];
    size_t at = below(other->size);
    size_t left = other->size - at;

    insert(input, other->data + at, below((left < 64 ? left : 64) + 1));
}

static void mutate(struct input *input, const struct corpus *corpus)
{
    switch (below(8)) {
    case 0:
    case 1:
        if (input->size > 0)
            input->data[below(input->size)] ^= (uint8_t)(1 << below(8));
        return;
    case 2:
        overwrite_with_token(input);
        return;
    case 3:
    case 4:
        insert_token(input);
        return;
    case 5:
        insert_piece(input, corpus);
        return;
    case 6:
        input->size -= below(8) == 0 ? below(input->size) : 0;
        return;
    default:
        erase(input);
    }
}

/* Not synced, unlike what tccl_write_file does: it is done for every input. */
static void save_input(const struct input *input, const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file || fwrite(input->data, 1, input->size, file) != input->size || fclose(file) != 0)
        abort();
}

static void run(const struct input *input)
{
    const char *save = getenv("TCCL_FUZZ_SAVE");

    if (save)
        save_input(input, save);
    LLVMFuzzerTestOneInput(input->data, input->size);
}

static void run_mutated(const struct corpus *corpus, struct input *scratch)
{
    const struct input *from = &corpus->inputs[below((size_t)corpus->count)];
    size_t changes = 1 + below(8);

    memcpy(scratch->data, from->data, from->size);
    scratch->size = from->size;
    while (changes-- > 0)
        mutate(scratch, corpus);
    run(scratch);
}

static long run_all(const struct corpus *corpus, long runs)
{
    struct input scratch = {malloc(LONGEST), 0};
    struct timespec begun, now;
    long done = 0;

    if (!scratch.data)
        abort();
    for (int i = 0; i < corpus->count; i++)
        run(&corpus->inputs[i]);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (; done < runs; done++) {
        run_mutated(corpus, &scratch);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begun.tv_sec > SECONDS)
            break;
    }
    free(scratch.data);
    return done;
}

static void add_file(struct corpus *corpus, const char *path)
{
    struct tccl_error err = {0};
    char *data;
    size_t size;

    if (tccl_read_file(path, MAX_FILE, &data, &size, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    keep(corpus, data, size);
    free(data);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In the order of names, so that TCCL_SEED repeats a run. */
static void add_folder(struct corpus *corpus, const char *folder)
{
    struct dirent **entries;
    char path[4096];
    int count = scandir(folder, &entries, is_shown, alphasort);

    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        add_file(corpus, path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static int write_seeds(const struct corpus *corpus, const char *folder)
{
    struct tccl_error err = {0};
    char path[4096];
    int rc = tccl_make_folder(folder, 0755, &err);
    for (int i = 0; rc == 0 && i < corpus->count; i++) {
        snprintf(path, sizeof(path), "%s/seed-%d", folder, i);
        rc = tccl_write_file(path, 0644, corpus->inputs[i].data, corpus->inputs[i].size, &err);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    return rc < 0;
}

static unsigned long choose_seed(void)
{
    const char *text = getenv("TCCL_SEED");
    unsigned long seed = text ? strtoul(text, NULL, 0) : (unsigned long)time(NULL) ^ getpid();

    printf("seed %lu (repeat with TCCL_SEED=%lu)\n", seed, seed);
    fflush(stdout);
    return seed;
}

int main(int argc, char **argv)
{
    static struct corpus corpus;
    const char *runs = getenv("TCCL_FUZZ_RUNS");

    fuzz_seeds(keep, &corpus);
    if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
        return write_seeds(&corpus, argv[2]);
    for (int i = 1; i < argc; i++)
        add_folder(&corpus, argv[i]);
    state = choose_seed() * UINT64_C(0x9e3779b97f4a7c15) | 1;
    long done = run_all(&corpus, runs ? strtol(runs, NULL, 0) : 20000);
    printf("%d seeds, %ld mutations\n", corpus.count, done);
    for (int i = 0; i < corpus.count; i++)
        free(corpus.inputs[i].data);
    return corpus.count > 0 ? 0 : 1;
}
