/* fuzz-main.c: runs a fuzz target where there is no libFuzzer: its seeds and those of the folder
 * named, then mutations of them. Repeatable: TCCL_SEED. TCCL_FUZZ_RUNS: how many (default RUNS;
 * after 2 s it ends in any case, so that it can stand among the unit tests). TCCL_FUZZ_SAVE=FILE:
 * each input is written there first; what is there after a crash caused it. --seeds FOLDER writes
 * the seeds there, for libFuzzer. */
#include <dirent.h>

#include "base/fileio.h"
#include "fuzz.h"

/* Sanitizers see what else would go by. */
#ifdef __SANITIZE_ADDRESS__
#define RUNS 20000
#else
#define RUNS 4000
#endif

enum { MAX_SEEDS = 256, LONGEST = 1 << 17, MAX_FILE = 1 << 16, SECONDS = 2 };

struct input {
    uint8_t *data;
    size_t size;
};

struct corpus {
    struct input inputs[MAX_SEEDS];
    int count;
};

static size_t below(size_t limit)
{
    return limit ? roll((unsigned)limit) : 0;
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
    size_t at = below(other->size), left = other->size - at;
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

static void run(const struct input *input)
{
    const char *save = getenv("TCCL_FUZZ_SAVE");
    /* Not synced, unlike what tccl_write_file does: it is done for every input. */
    FILE *file = save ? fopen(save, "w") : NULL;
    if (save && (!file || fwrite(input->data, 1, input->size, file) != input->size || fclose(file)))
        abort();
    LLVMFuzzerTestOneInput(input->data, input->size);
}

static long run_all(const struct corpus *corpus, long runs)
{
    cleanup_free uint8_t *room = malloc(LONGEST);
    struct input scratch = {room, 0};
    struct timespec begun, now;
    long done = 0;
    for (int i = 0; i < corpus->count; i++)
        run(&corpus->inputs[i]);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (; done < runs; done++) {
        const struct input *from = &corpus->inputs[below((size_t)corpus->count)];
        size_t changes = 1 + below(8);
        memcpy(scratch.data, from->data, from->size);
        scratch.size = from->size;
        while (changes-- > 0)
            mutate(&scratch, corpus);
        run(&scratch);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begun.tv_sec > SECONDS)
            break;
    }
    return done;
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
    size_t size;
    int count = scandir(folder, &entries, is_shown, alphasort);
    for (int i = 0; i < count; i++) {
        cleanup_free char *data = NULL;
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        MUST(tccl_read_file(path, MAX_FILE, &data, &size, ERR));
        keep(corpus, data, size);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static int write_seeds(const struct corpus *corpus, const char *folder)
{
    char path[4096];
    MUST(tccl_make_folder(folder, 0755, ERR));
    for (int i = 0; i < corpus->count; i++) {
        snprintf(path, sizeof(path), "%s/seed-%d", folder, i);
        MUST(tccl_write_file(path, 0644, corpus->inputs[i].data, corpus->inputs[i].size, ERR));
    }
    return 0;
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
    check_seed();
    long done = run_all(&corpus, runs ? strtol(runs, NULL, 0) : RUNS);
    printf("%d seeds, %ld mutations\n", corpus.count, done);
    for (int i = 0; i < corpus.count; i++)
        free(corpus.inputs[i].data);
    return corpus.count > 0 ? 0 : 1;
}
