/* test-acct-time.c: tcclacct's times against those of Slurm itself, whose functions are called here
 * with a clock that stands where the test sets it. */
#include <ctype.h>

#include <slurm/slurm_errno.h>

#include "acct/acct.h"
#include "each-text.h"

/* Of libslurm; its headers do not declare them. */
time_t slurm_parse_time(const char *text, int past);
void slurm_make_time_str(time_t *when, char *text, int size);

static time_t now;

/* In place of the C library's, for libslurm too. */
__attribute__((visibility("default"))) time_t time(time_t *when)
{
    if (when)
        *when = now;
    return now;
}

static const char *pick(const char *const *words, unsigned count)
{
    return words[roll(count)];
}
#define PICK(...)                                                                                  \
    pick((const char *const[]){__VA_ARGS__},                                                       \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Numbers that are mostly good, sometimes just beyond. */
static void add_clock(char *text, size_t size)
{
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, size - used, PICK("%u:%02u", "%02u:%02u", "%02u:%u"),
                             roll(26), roll(62));
    if (roll(2))
        used += (size_t)snprintf(text + used, size - used, ":%02u", roll(62));
    if (roll(3) == 0)
        snprintf(text + used, size - used, "%s", PICK("AM", " pm", "Pm", " am", "PM", " xm"));
}

static void add_date(char *text, size_t size)
{
    static const char *const forms[] = {"%02u%02u",     "%02u/%02u",      "%02u.%02u",     "%u/%u",
                                        "%02u%02u%02u", "%02u/%02u/%02u", "%02u.%02u.%02u"};
    size_t used = strlen(text);
    unsigned form = roll(9);
    if (form >= 7)
        snprintf(text + used, size - used, form == 7 ? "%04u-%02u-%02u" : "%04u-%02u-%u",
                 1990 + roll(50), roll(14), roll(33));
    else
        snprintf(text + used, size - used, forms[form], roll(14), roll(33), roll(45));
}

static void add_now(char *text, size_t size)
{
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, size - used, "now");
    if (roll(8))
        snprintf(text + used, size - used, "%s%u%s", PICK("-", "+", " - ", "-", "", "*"), roll(400),
                 PICK("", "", "seconds", "second", "minutes", "minute", "hours", "hour", "days",
                      "day", "Weeks", "week", "years", " days"));
}

static void add_part(char *text, size_t size)
{
    size_t used = strlen(text);
    switch (roll(5)) {
    case 0:
        add_clock(text, size);
        break;
    case 1:
    case 2:
        add_date(text, size);
        break;
    case 3:
        snprintf(text + used, size - used, "%s",
                 PICK("today", "tomorrow", "midnight", "noon", "fika", "teatime", "NOON", "ToDay"));
        break;
    default:
        if (used == 0)
            add_now(text, size); /* elsewhere Slurm reads beyond the text */
    }
}

/* One to three parts, and now and then a character that is not what was meant. */
static void make_text(char *text, size_t size)
{
    *text = '\0';
    add_part(text, size);
    for (unsigned more = roll(3); more > 0; more--) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s", PICK("-", "T", " ", "", "--"));
        add_part(text, size);
    }
    size_t length = strlen(text);
    if (length && roll(5) == 0)
        text[roll((unsigned)length)] = "0123456789:/.-T apx"[roll(19)];
}

/* Slurm's answer: 0 and the time, or -1. It complains on standard error, which is not shown. */
static int ask_slurm(const char *text, time_t *result)
{
    fflush(stderr);
    cleanup_close int kept = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    errno = 0;
    *result = slurm_parse_time(text, 1);
    int rc = errno == ESLURM_INVALID_TIME_VALUE || *result == 0 ? -1 : 0;
    fflush(stderr);
    dup2(kept, 2);
    return rc;
}

/* Do both have one wall clock time, which comes twice? Then Slurm may mean the other one. */
static bool is_same_clock(time_t one, time_t other)
{
    struct tm first, second;
    localtime_r(&one, &first);
    localtime_r(&other, &second);
    return first.tm_sec == second.tm_sec && first.tm_min == second.tm_min &&
           first.tm_hour == second.tm_hour && first.tm_yday == second.tm_yday &&
           first.tm_year == second.tm_year;
}

/* Texts that are taken here, and refused by Slurm: words with a capital T, units cut short. */
static bool is_beyond(const char *text)
{
    char lower[128] = "";
    for (size_t i = 0; text[i] && i < sizeof(lower) - 1; i++)
        lower[i] = (char)tolower((unsigned char)text[i]);
    return strstr(lower, "today") || strstr(lower, "tomorrow") || strstr(lower, "teatime") ||
           strstr(lower, "now");
}

/* "now" anywhere but at the beginning is read beyond the text's end by Slurm 22.05. */
static bool can_ask(const char *text)
{
    const char *found = strcasestr(text, "now");
    return !found || (found == text && !strcasestr(text + 3, "now"));
}

static void compare(const char *text, int *taken)
{
    time_t expected, got = 0;
    if (!can_ask(text))
        return;
    int slurm = ask_slurm(text, &expected), ours = acct_time_parse(text, now, &got, ERR);
    if (check_failures > 20)
        return;
    if (slurm != 0) {
        CHECK_NO(ours == 0 && !is_beyond(text), "'%s' is taken as %lld, Slurm refuses it\n", text,
                 (long long)got);
        return;
    }
    if (labs(expected - now) > 99999999999)
        return; /* such an offset is refused here */
    ++*taken;
    CHECK_NO(ours != 0 || (got != expected && !is_same_clock(got, expected)),
             "'%s' at %lld (%s): %lld, Slurm says %lld: %s\n", text, (long long)now, getenv("TZ"),
             (long long)got, (long long)expected, check_err.text);
}

/* The moments at which clocks are moved count more than others. */
static time_t some_moment(void)
{
    static const time_t changes[] = {1774746000, 1792890000, 1773558000, 1793512800, 1798761600};
    if (roll(2))
        return changes[roll(5)] + (time_t)roll(4 * 86400) - 2 * 86400;
    return 1600000000 + (time_t)roll(400000000);
}

TEST(random_texts)
{
    static const char *const zones[] = {"UTC", "Europe/Stockholm", "America/New_York",
                                        "Australia/Lord_Howe", "XST-3"};
    int taken = 0;
    for (int round = 0; round < 60; round++) {
        setenv("TZ", zones[roll(5)], 1);
        tzset();
        now = some_moment();
        for (int i = 0; i < 400; i++) {
            char text[128];
            make_text(text, sizeof(text));
            compare(text, &taken);
        }
    }
    printf("%d texts that Slurm takes\n", taken);
    CHECK(taken > 4000);
}

/* Those of sacct(1), and what users make of them. */
TEST(known_texts)
{
    int taken = 0;
    setenv("TZ", "Europe/Stockholm", 1);
    tzset();
    now = 1773480615;
    EACH_TEXT(text, "08:05|8:05:09|12:10 AM|12:10PM|1:10pm|0131|0230|013126|01/31|1/5|01/31/24|"
                    "01.31.24|01/31-07:08|123100|2024-02-29|2025-02-29|2024-02-5|1898-04-06|"
                    "1900-04-06|2024-02-29T07:08|2024-02-29T07:08:09|2024-02-29 07:08|"
                    "07:08 2024-02-29|noon tomorrow|tomorrow-08:00|today noon|now|now-15|"
                    "now-2days|now - 2 days|now-1week|now-1day-08:00|now+1hour noon|uts1700000000|"
                    "uts5|UTS1700000000x|midnight|fika|teatime|25:00|24:00|12:60|13:00 AM|"
                    "13:00 PM|0:30 AM|0132|1301|2024-13-01|2024-01-01T|01/31/|now-|now5|now-days|"
                    "01/31x|99999999|x|-01/31|2024-01-01Z|T0131T08:00")
        compare(text, &taken);
    CHECK(taken > 35);
}

/* SLURM_TIME_FORMAT is read once by libslurm, so this checks one of its values. */
TEST(relative)
{
    setenv("SLURM_TIME_FORMAT", "relative", 1);
    now = 1798800000;
    for (int i = 0; i < 2000; i++) {
        time_t when = i % 2 ? now + (time_t)roll(40 * 86400) - 20 * 86400
                            : now + (time_t)roll(900 * 86400U) - 450 * 86400;
        char expected[64], got[64];
        slurm_make_time_str(&when, expected, sizeof(expected));
        acct_time_print(when, now, "relative", got, sizeof(got));
        CHECK_STR(got, expected);
    }
}

/* Nothing is read behind the text's end, as AddressSanitizer sees; and a far year is no near day.
 */
TEST(edges)
{
    char *text = strdup("5"), got[64], year[16];
    time_t when;
    struct tm fields;
    CHECK_INT(acct_time_parse(text, now, &when, NULL), -1);
    free(text);
    localtime_r(&now, &fields);
    fields.tm_year += 1 << 29; /* times 1000: 0 in 32 bits */
    acct_time_print(mktime(&fields), now, "relative", got, sizeof(got));
    snprintf(year, sizeof(year), " %d", fields.tm_year + 1900);
    CHECK(strstr(got, year) != NULL);
}

SETUP
{
}
