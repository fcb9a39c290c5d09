/* The log of measured sets. Checksums are made right where the first byte is odd. */
#include <inttypes.h>

#include "base/hash.h"
#include "fuzz.h"
#include "search/setlog.h"

static int check_line(void *context, const struct tccl_set *set,
                      const struct tccl_measurement *measurement)
{
    FUZZ_CHECK(set->count <= TCCL_MAX_SET);
    FUZZ_CHECK(measurement->gbps >= 0 && measurement->spread >= 0);
    for (int i = 0; i < set->count; i++)
        FUZZ_CHECK(tccl_transfer_valid(set->transfers[i]));
    ++*(long *)context;
    return 0;
}

/* Gives each line "JSON checksum" the checksum of its JSON. */
static void fix_checksums(char *text, size_t size)
{
    for (char *line = text; line < text + size;) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        char sum[17];
        if (!end)
            return;
        if (end - line > 17) {
            snprintf(sum, sizeof(sum), "%016" PRIx64, tccl_hash64(line, (size_t)(end - line) - 17));
            memcpy(end - 16, sum, 16);
        }
        line = end + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH];
    int dropped = 0;
    long lines = 0;
    if (size == 0)
        return 0;
    cleanup_free char *text = fuzz_text(data + 1, size - 1);
    if (data[0] & 1)
        fix_checksums(text, size - 1);
    int fd = fuzz_file(text, size - 1, path);
    long rc = tccl_setlog_read(path, check_line, &lines, &dropped, ERR);
    FUZZ_CHECK(rc == lines || (rc == -1 && strstr(check_err.text, path)));
    close(fd);
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    char log[600] = "1";
    static const char *const lines[] = {
        "{\"set\":\"g0>g1 g1>g0\",\"gbps\":10.4,\"spread\":0.01,\"source\":\"model\",\"time\":1}",
        "{\"set\":\"g0>m1\",\"gbps\":0,\"spread\":0,\"source\":\"host\",\"time\":1700000000}",
    };
    for (int i = 0; i < 2; i++)
        snprintf(log + strlen(log), sizeof(log) - strlen(log), "%s %016x\n", lines[i], 0);
    fix_checksums(log + 1, strlen(log) - 1);
    add(context, log, strlen(log));
    log[0] = '2';
    add(context, log, strlen(log));
    log[0] = '1';
    add(context, log, strlen(log) - 5);
}
