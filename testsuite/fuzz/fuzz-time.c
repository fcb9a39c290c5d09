/* Times as tcclacct's options and SLURM_TIME_FORMAT have them. */
#include "acct/acct.h"
#include "fuzz.h"

enum { NOW = 1764000000 };

static void check_print(time_t when, const char *format)
{
    char text[64], small[5];
    acct_time_print(when, NOW, format, text, sizeof(text));
    FUZZ_CHECK(memchr(text, '\0', sizeof(text)));
    acct_time_print(when, NOW, format, small, sizeof(small));
    FUZZ_CHECK(memchr(small, '\0', sizeof(small)));
}

/* What is printed as Slurm prints it reads as the same second, from 1900 to 9999. */
static void check_again(time_t when)
{
    char text[64];
    time_t again;
    acct_time_print(when, NOW, NULL, text, sizeof(text));
    if (strlen(text) != strlen("YYYY-MM-DDTHH:MM:SS") || strcmp(text, "1900") < 0 || text[4] != '-')
        return;
    FUZZ_CHECK(acct_time_parse(text, NOW, &again, NULL) == 0);
    FUZZ_CHECK(again == when);
    FUZZ_CHECK(acct_midnight(when) <= when);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = fuzz_text(data, size);
    time_t when, read;
    if (acct_time_parse(text, NOW, &when, ERR) != 0) {
        FUZZ_CHECK(check_err.text[0]);
    } else {
        check_print(when, NULL);
        check_print(when, "relative");
        check_again(when);
    }
    memset(&read, 0, sizeof(read));
    memcpy(&read, data, size < sizeof(read) ? size : sizeof(read));
    check_print(read, "relative");
    check_print(read, text);
    return 0;
}

FUZZ_SEEDS("2025-11-21T18:57:51", "1121", "11/21/25", "11.21.25-10:00 PM", "now-3days",
           "now - 5 min", "noon", "yesterday 16:00:01", "uts1764000000", "tomorrow-fika", "5",
           "%c %Y", "%H:%M", "12:30AM 0229", "1899-12-31")
