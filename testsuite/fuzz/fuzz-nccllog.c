/* NCCL's log as the runtime shim reads it: no byte behind the last newline is used, nothing is read
 * beyond the end, and what is told of a line lies within it. */
#include "fuzz.h"
#include "verify/verify.h"

static void check_nics(const struct shim_line *line)
{
    const char *at = line->text;
    char name[SHIM_NAME];
    int number, count = 0;
    while (shim_line_nic(&at, line->end, &number, name) > 0) {
        FUZZ_CHECK(at > line->text && at <= line->end && number >= 0 && name[0]);
        count++;
    }
    FUZZ_CHECK(count <= line->end - line->text);
}

static void check_line(const char *start, const char *end)
{
    struct shim_line line;
    bool known = shim_line_read(start, end, &line);
    FUZZ_CHECK(known == (line.kind != SHIM_LINE_OTHER));
    if (!known)
        return;
    FUZZ_CHECK(line.pid >= 0 && line.tid >= 0 && line.rank >= 0 && line.ranks >= 0);
    FUZZ_CHECK(line.channel >= 0 && line.from >= 0 && line.to >= 0 && line.devices >= 0);
    if (line.text)
        FUZZ_CHECK(line.text > start && line.text <= line.end && line.end == end);
    if (line.kind == SHIM_LINE_NICS)
        check_nics(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *copy = fuzz_exact(data, size);
    char *newline, *at = copy;
    for (; (newline = memchr(at, '\n', size - (size_t)(at - copy))); at = newline + 1)
        check_line(at, newline);
    FUZZ_CHECK(shim_nccllog_take(copy, size, 1000) == (size_t)(at - copy));
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    static const char *const seeds[] = {
        "n:1000:7 [0] NCCL INFO ncclCommInitRank comm 0x7f rank 0 nranks 4 cudaDev 0 nvmlDev 0 "
        "busId 1a000 commId 0x1 - Init START\n"
        "n:1000:7 [0] NCCL INFO Channel 00/02 : 0 1 2 3\n"
        "n:1000:7 [0] NCCL INFO Ring 00 : 3 -> 0 -> 1\n"
        "n:1000:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read\n"
        "n:1000:7 [0] NCCL INFO Channel 00/0 : 3[0] -> 0[0] [receive] via NET/IB/1(2)/GDRDMA\n",
        "[2026-11-21 15:00:01] n:1000:7 [-1] NCCL INFO comm 0x7f rank 0 nranks 4 cudaDev 0 busId "
        "1a000 commId 0x1 - Init COMPLETE\n",
        "n:1000:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1:0:2/RoCE [RO]; OOB "
        "eth0:10.0.0.1<0>\nn:1000:7 [0] NCCL INFO Using network IB\n"
        "n:1000:7 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} ; OOB x\n"
        "n:1000:7 [0] NCCL INFO NET/IB : Made virtual device [2] name=a+b speed=400000 ndevs=2\n"};
    for (size_t i = 0; i < COUNT(seeds); i++)
        add(context, seeds[i], strlen(seeds[i]));
}
