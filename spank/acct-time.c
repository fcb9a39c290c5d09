/* acct-time.c: times as Slurm's commands read and print them. */
#include "acct-time.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char *text, struct tccl_error *err)
{
    return tccl_fail(err,
                     "'%.60s' is not a time: give YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], MM/DD[/YY], "
                     "HH:MM[:SS], now[-N{seconds,minutes,hours,days,weeks}], today or yesterday",
                     text);
}

/* Turns the fields into a time, if there is such a day and hour. Returns 0 or -1. */
static int make_time(const struct tm *fields, time_t *result)
{
    struct tm made = *fields;
    made.tm_isdst = -1;
    if (fields->tm_hour > 23 || fields->tm_min > 59 || fields->tm_sec > 59 || fields->tm_hour < 0 ||
        fields->tm_min < 0 || fields->tm_sec < 0)
        return -1;
    *result = mktime(&made);
    return *result != (time_t)-1 && made.tm_mday == fields->tm_mday &&
                   made.tm_mon == fields->tm_mon && made.tm_year == fields->tm_year
               ? 0
               : -1;
}

/* The day of now moved by days, at an hour. */
static time_t day_at(time_t now, int days, int hour)
{
    struct tm fields;
    localtime_r(&now, &fields);
    fields.tm_mday += days;
    fields.tm_hour = hour;
    fields.tm_min = fields.tm_sec = 0;
    fields.tm_isdst = -1;
    return mktime(&fields);
}

time_t acct_midnight(time_t now)
{
    return day_at(now, 0, 0);
}

static bool parse_word(const char *text, time_t now, time_t *result)
{
    static const struct {
        const char *word;
        int days, hour;
    } words[] = {
        {"today", 0, 0}, {"midnight", 0, 0}, {"yesterday", -1, 0}, {"tomorrow", 1, 0},
        {"noon", 0, 12}, {"fika", 0, 15},    {"teatime", 0, 16},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!strcasecmp(text, words[i].word)) {
            *result = day_at(now, words[i].days, words[i].hour);
            return true;
        }
    }
    return false;
}

/* Seconds in a unit, which may be cut short ("min"); 0 if it is none. */
static long unit_seconds(const char *unit)
{
    static const struct {
        const char *name;
        long seconds;
    } units[] = {
        {"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}, {"weeks", 604800}};
    if (!*unit)
        return 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strncasecmp(unit, units[i].name, strlen(unit)))
            return units[i].seconds;
    return 0;
}

/* What follows "now". Returns 0 or -1. */
static int parse_offset(const char *text, time_t now, time_t *result)
{
    int sign = *text == '-' ? -1 : 1;
    *result = now;
    if (!*text)
        return 0;
    if (*text != '-' && *text != '+')
        return -1;
    size_t length = strspn(++text, "0123456789");
    long seconds = unit_seconds(text + length);
    if (length == 0 || length > 9 || !seconds)
        return -1;
    *result = now + sign * (time_t)strtol(text, NULL, 10) * seconds;
    return 0;
}

/* "AM" or "PM" (with blanks before it) makes 12 hours into 24. Returns 0, or -1 for anything else.
 */
static int parse_half(const char *text, struct tm *fields)
{
    text += strspn(text, " ");
    if (!*text)
        return 0;
    bool pm = !strcasecmp(text, "PM");
    if ((!pm && strcasecmp(text, "AM") != 0) || fields->tm_hour < 1 || fields->tm_hour > 12)
        return -1;
    fields->tm_hour = fields->tm_hour % 12 + (pm ? 12 : 0);
    return 0;
}

/* HH:MM[:SS] and AM or PM, to the end of the text. Returns 0 or -1. */
static int parse_clock(const char *text, struct tm *fields)
{
    int used = 0, more = 0;
    fields->tm_sec = 0;
    if (!isdigit((unsigned char)*text) ||
        sscanf(text, "%2d:%2d%n", &fields->tm_hour, &fields->tm_min, &used) != 2 || !used)
        return -1;
    if (text[used] == ':') {
        if (sscanf(text + used, ":%2d%n", &fields->tm_sec, &more) != 1 || !more)
            return -1;
        used += more;
    }
    return parse_half(text + used, fields);
}

/* The forms of a date. Returns the characters used, 0 if it is none; *year = -1: not given. */
static int parse_date(const char *text, int *year, int *month, int *day)
{
    static const char *const forms[] = {"%2d/%2d/%4d%n", "%2d.%2d.%4d%n"};
    static const char *const short_forms[] = {"%2d/%2d%n", "%2d.%2d%n"};
    int used = 0;
    size_t digits = strspn(text, "0123456789");
    if (sscanf(text, "%4d-%2d-%2d%n", year, month, day, &used) == 3 && used && digits == 4)
        return used;
    for (int i = 0; i < 2; i++)
        if (sscanf(text, forms[i], month, day, year, &used) == 3 && used)
            return used;
    if (digits == 6 && sscanf(text, "%2d%2d%2d%n", month, day, year, &used) == 3)
        return used;
    *year = -1;
    for (int i = 0; i < 2; i++)
        if (sscanf(text, short_forms[i], month, day, &used) == 2 && used)
            return used;
    return digits == 4 && sscanf(text, "%2d%2d%n", month, day, &used) == 2 ? used : 0;
}

/* A date and what may follow it. Returns 0 or -1. */
static int parse_day(const char *text, time_t now, time_t *result)
{
    struct tm fields = {0}, today;
    int year = -1, month, day;
    int used = isdigit((unsigned char)*text) ? parse_date(text, &year, &month, &day) : 0;
    if (!used || month < 1 || month > 12 || day < 1 || (year < 0 && year != -1))
        return -1;
    localtime_r(&now, &today);
    fields.tm_mon = month - 1;
    fields.tm_mday = day;
    fields.tm_year = year < 0 ? today.tm_year : year < 100 ? year + 100 : year - 1900;
    if (text[used] && (!strchr("T- ", text[used]) || parse_clock(text + used + 1, &fields) != 0))
        return -1;
    if (make_time(&fields, result) != 0)
        return -1;
    if (year >= 0 || *result <= now)
        return 0;
    fields.tm_year--;
    return make_time(&fields, result);
}

int acct_time_parse(const char *text, time_t now, time_t *result, struct tccl_error *err)
{
    struct tm fields;
    if (parse_word(text, now, result))
        return 0;
    if (!strncasecmp(text, "now", 3))
        return parse_offset(text + 3, now, result) == 0 ? 0 : refuse(text, err);
    localtime_r(&now, &fields);
    if (parse_clock(text, &fields) == 0)
        return make_time(&fields, result) == 0 ? 0 : refuse(text, err);
    return parse_day(text, now, result) == 0 ? 0 : refuse(text, err);
}

/* Slurm's "relative": the nearer, the more exact. */
static const char *relative_format(time_t when, time_t now)
{
    time_t midnight = acct_midnight(now);
    if (when >= midnight && when < day_at(now, 1, 0))
        return "%H:%M:%S";
    if (when < midnight && when >= day_at(now, -1, 0))
        return "Ystday %H:%M";
    if (when < midnight && when >= day_at(now, -6, 0))
        return "%a %H:%M";
    return when < midnight && when >= day_at(now, -330, 0) ? "%-d %b %H:%M" : "%-d %b %Y";
}

void acct_time_print(time_t when, time_t now, const char *format, char *text, size_t size)
{
    struct tm fields;
    if (!format || !*format || !strcasecmp(format, "standard"))
        format = "%Y-%m-%dT%H:%M:%S";
    else if (!strcasecmp(format, "relative"))
        format = relative_format(when, now);
    if (!localtime_r(&when, &fields) || strftime(text, size, format, &fields) == 0)
        snprintf(text, size, "%lld", (long long)when);
}
