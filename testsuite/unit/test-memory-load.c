/* test-memory-load.c: what chains ask of a memory, against a plain reading of their text. */
#include "chain/memory-load.h"

#include "check.h"

static void say(const char *text, char said[static TCCL_LOAD_TEXT])
{
    struct tccl_named_rings rings;
    CHECK_INT(tccl_named_rings_parse(text, &rings, NULL), 0);
    struct tccl_memory_load load = tccl_memory_busiest(rings.chains, rings.n);
    tccl_memory_load_say(&load, "NCCL", said);
}

TEST(words)
{
    char said[TCCL_LOAD_TEXT];
    say("0 -m0> 3 -m1> 1 -m1> 2 -m3> 0", said);
    CHECK_STR(said, "NCCL sends three devices through memory 1");
    say("mlx5_0 -m1> 3 -w> 0 -g> mlx5_0", said);
    CHECK_STR(said, "NCCL sends two devices through memory 1");
    say("0 -m2> 1 -m2> 0 | 1 -m2> 0 -m2> 1", said);
    CHECK_STR(said, "NCCL sends two devices through memory 2");
}

TEST(none)
{
    struct tccl_named_rings rings;
    CHECK_INT(tccl_named_rings_parse("0 -w> 1 -r> 0", &rings, NULL), 0);
    struct tccl_memory_load load = tccl_memory_busiest(rings.chains, rings.n);
    CHECK(load.memory == -1 && load.copies == 0 && load.gpus == 0);
}

/* Counts the arrows "-mK>" of a text, and the different words next to them. */
static struct tccl_memory_load count(const char *text, int memory)
{
    struct tccl_memory_load load = {.memory = memory};
    char copy[4096], arrow[16], *words[512], *seen[512];
    int n = 0, n_seen = 0;
    snprintf(copy, sizeof(copy), "%s", text);
    snprintf(arrow, sizeof(arrow), "-m%d>", memory);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[n++] = word;
    for (int i = 1; i + 1 < n; i++)
        for (int side = -1; side <= 1 && strcmp(words[i], arrow) == 0; side += 2) {
            bool again = false;
            load.copies++;
            load.writes += side < 0;
            for (int k = 0; k < n_seen; k++)
                again |= strcmp(seen[k], words[i + side]) == 0;
            if (again)
                continue;
            seen[n_seen++] = words[i + side];
            *(strchr(words[i + side], '_') ? &load.nics : &load.gpus) += 1;
        }
    return load;
}

static void write_chain(bool closed, int n, int memories, FILE *out)
{
    int first = (int)roll((unsigned)n);
    if (!closed)
        fprintf(out, "mlx_%u -m%u> ", roll(2), roll((unsigned)memories));
    for (int i = 0; i < n; i++) {
        fprintf(out, "%d", (first + i) % n);
        if (closed || i + 1 < n)
            fprintf(out, roll(3) ? " -m%u> " : " -w> ", roll((unsigned)memories));
    }
    if (closed)
        fprintf(out, "%d", first);
    else
        fprintf(out, roll(2) ? " -m%u> mlx_1" : " -g> mlx_0", roll((unsigned)memories));
}

/* By NICs: GPU 0 writes, and NIC 0 reads; at the other end NIC 1 writes into memory 1. */
TEST(by_nics)
{
    struct tccl_named_chain chain;
    CHECK_OK(tccl_named_parse("0 -m0n0n1m1> 1 -m0> 2 -n1n0> 0", &chain, ERR));
    struct tccl_memory_load first = tccl_memory_load(&chain, 1, 0),
                            second = tccl_memory_load(&chain, 1, 1);
    CHECK(first.copies == 4 && first.writes == 2 && first.gpus == 3 && first.nics == 1);
    CHECK(second.copies == 2 && second.writes == 1 && second.gpus == 1 && second.nics == 1);
}

TEST(random)
{
    for (int round = 0; round < 3000; round++) {
        int rings = 1 + (int)roll(4), n = 2 + (int)roll(6), memories = 1 + (int)roll(4), most = 0;
        bool closed = roll(2);
        char text[4096] = "";
        FILE *out = fmemopen(text, sizeof(text), "w");
        for (int i = 0; i < rings; i++) {
            fputs(i ? " | " : "", out);
            write_chain(closed, n, memories, out);
        }
        fclose(out);
        struct tccl_named_rings named;
        CHECK_INT(tccl_named_rings_parse(text, &named, NULL), 0);
        for (int memory = 0; memory < memories; memory++) {
            struct tccl_memory_load a = tccl_memory_load(named.chains, named.n, memory);
            struct tccl_memory_load b = count(text, memory);
            CHECK(a.copies == b.copies && a.writes == b.writes && a.gpus == b.gpus &&
                  a.nics == b.nics);
            most = b.copies > most ? b.copies : most;
        }
        CHECK_INT(tccl_memory_busiest(named.chains, named.n).copies, most);
    }
}

SETUP
{
}
