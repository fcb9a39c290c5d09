/* acct-time.c: times in the syntax of Slurm's commands. */
#include "acct/acct.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parts read so far; -1: not given. Years since 1900 (so 1899 is none, as Slurm has it), months
 * from 0. */
struct moment {
    int year, month, day, hour, minute, second;
    bool exact; /* "now" plus or minus an offset: at is the result */
    time_t at;
};

/* Local time of the fields. A day beyond the end of its month runs into the next, as in Slurm.
 * Returns 0 or -1. */
static int make_time(const struct moment *moment, time_t *result)
{
    struct tm fields = {.tm_year = moment->year,
                        .tm_mon = moment->month,
                        .tm_mday = moment->day,
                        .tm_hour = moment->hour,
                        .tm_min = moment->minute,
                        .tm_sec = moment->second,
                        .tm_isdst = -1};
    *result = mktime(&fields);
    return *result == (time_t)-1 ? -1 : 0;
}

static void set_day(struct moment *moment, time_t when)
{
    struct tm fields;
    localtime_r(&when, &fields);
    moment->year = fields.tm_year;
    moment->month = fields.tm_mon;
    moment->day = fields.tm_mday;
}

static void set_clock(struct moment *moment, int hour, int minute, int second)
{
    moment->hour = hour;
    moment->minute = minute;
    moment->second = second;
}

time_t acct_midnight(time_t now)
{
    struct moment moment = {0};
    time_t midnight;
    set_day(&moment, now);
    return make_time(&moment, &midnight) == 0 ? midnight : now;
}

/* Each of these reads one part and moves *at past it. Returns 1 if it was there, 0 if not, -1 if it
 * is malformed. */

static int read_word(const char **at, time_t now, struct moment *moment)
{
    enum { NO_HOUR = -1, DAY = 86400 };
    static const struct {
        const char *word;
        int days, hour; /* days from today, or an hour */
    } words[] = {
        {"today", 0, NO_HOUR}, {"tomorrow", 1, NO_HOUR}, {"yesterday", -1, NO_HOUR},
        {"midnight", 0, 0},    {"noon", 0, 12},          {"fika", 0, 15},
        {"teatime", 0, 16},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i].word);
        if (strncasecmp(*at, words[i].word, length) != 0)
            continue;
        *at += length;
        if (words[i].hour == NO_HOUR)
            set_day(moment, now + words[i].days * DAY);
        else
            set_clock(moment, words[i].hour, 0, 0);
        return 1;
    }
    return 0;
}

/* Seconds of the unit at *at, which may be abbreviated ("min"); 0 if there is none. */
static long read_unit(const char **at)
{
    static const struct {
        const char *name;
        long seconds;
    } units[] = {
        {"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}, {"weeks", 604800}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t same = 0;
        while (units[i].name[same] && tolower((unsigned char)(*at)[same]) == units[i].name[same])
            same++;
        if (same == 0)
            continue;
        *at += same;
        return units[i].seconds;
    }
    return 0;
}

/* What follows "now+" or "now-": a number, and a unit or the end. */
static int read_delta(const char **at, long *delta)
{
    const long most = 99999999999;
    bool digits = false;
    *delta = 0;
    for (;; ++*at) {
        if (isspace((unsigned char)**at))
            continue;
        if (!isdigit((unsigned char)**at))
            break;
        digits = true;
        *delta = *delta * 10 + (**at - '0');
        if (*delta > most)
            return -1;
    }
    long unit = **at ? read_unit(at) : 1;
    *delta *= unit;
    return digits && unit ? 1 : -1;
}

static int read_now(const char **at, time_t now, struct moment *moment)
{
    struct tm fields;
    long delta = 0;
    if (strncasecmp(*at, "now", 3) != 0)
        return 0;
    for (*at += 3; isblank((unsigned char)**at);)
        ++*at;
    if (**at) {
        int sign = **at == '-' ? -1 : **at == '+' ? 1 : 0;
        ++*at;
        if (!sign || read_delta(at, &delta) < 0)
            return -1;
        delta *= sign;
    }
    moment->at = now + delta;
    if (!localtime_r(&moment->at, &fields))
        return -1;
    set_day(moment, moment->at);
    set_clock(moment, fields.tm_hour, fields.tm_min, fields.tm_sec);
    moment->exact = true;
    return 1;
}

/* Reads numbers by a form: d is one of one or two digits, D of two, Y of four; '/' is that, '.' or
 * nothing; what stands behind '[' is there if its first character is. Returns 0, or -1. */
static int read_form(const char **at, const char *form, int *numbers)
{
    for (; *form; form++) {
        int most = *form == 'Y' ? 4 : 2, digits = 0;
        if (*form == '[' && (form[1] == ':' ? **at != ':' : !isdigit((unsigned char)**at)))
            break;
        if (*form == '[')
            continue;
        if (!isalpha((unsigned char)*form)) {
            bool there = **at == *form || (*form == '/' && **at == '.');
            if (!there && *form != '/')
                return -1;
            *at += there;
            continue;
        }
        for (*numbers = 0; digits < most && isdigit((unsigned char)**at); digits++)
            *numbers = *numbers * 10 + (*(*at)++ - '0');
        if (digits < (*form == 'd' ? 1 : most))
            return -1;
        numbers++;
    }
    return 0;
}

/* Applies AM or PM. Returns the hour from 0 to 23, or -1 if there is no such hour. */
static int read_half(const char **at, int hour)
{
    while (isspace((unsigned char)**at))
        ++*at;
    bool pm = !strncasecmp(*at, "pm", 2), am = !strncasecmp(*at, "am", 2);
    if (!pm && !am)
        return hour;
    *at += 2;
    if (hour > 12 || (pm && hour + 12 > 24))
        return -1;
    return hour % 12 + (pm ? 12 : 0);
}

/* HH:MM[:SS] [AM|PM]. */
static int read_clock(const char **at, struct moment *moment)
{
    size_t digits = strspn(*at, "0123456789");
    int clock[3] = {0}, hour;
    if (digits < 1 || digits > 2 || (*at)[digits] != ':')
        return 0;
    if (read_form(at, "d:D[:D", clock) != 0 || clock[0] > 23 || clock[1] > 59 || clock[2] > 59 ||
        (hour = read_half(at, clock[0])) < 0)
        return -1;
    set_clock(moment, hour, clock[1], clock[2]);
    return 1;
}

/* YYYY-MM-DD, or MMDD[YY], MM/DD[/YY], MM.DD[.YY], where the year 00 counts as not given. */
static int read_date(const char **at, struct moment *moment)
{
    bool whole = strnlen(*at, 8) == 8 && (*at)[4] == '-' && (*at)[7] == '-';
    int date[3] = {0}, *month = date + whole;
    if (read_form(at, whole ? "Y-D-d" : "d/d/[D", date) != 0 || month[0] < 1 || month[0] > 12 ||
        month[1] < 1 || month[1] > 31)
        return -1;
    moment->month = month[0] - 1;
    moment->day = month[1];
    if (whole || date[2])
        moment->year = whole ? date[0] - 1900 : date[2] + 100;
    return 1;
}

/* The parts of a text, in any order; the last of each kind counts. Returns 0 or -1. */
static int read_parts(const char *at, time_t now, struct moment *moment)
{
    while (*at) {
        int found = read_word(&at, now, moment);
        bool was_now = false;
        if (!found)
            was_now = (found = read_now(&at, now, moment)) > 0;
        if (!found && (isblank((unsigned char)*at) || *at == '-' || *at == 'T')) {
            at++;
            continue;
        }
        if (!found)
            found = read_clock(&at, moment);
        if (!found)
            found = isdigit((unsigned char)*at) ? read_date(&at, moment) : -1;
        if (found < 0)
            return -1;
        moment->exact = was_now;
    }
    return moment->hour < 0 && moment->month < 0 ? -1 : 0;
}

int acct_time_parse(const char *text, time_t now, time_t *result, struct tccl_error *err)
{
    struct moment moment = {.year = -1, .month = -1, .day = -1, .hour = -1, .minute = -1};
    bool seconds = !strncasecmp(text, "uts", 3), good;
    if (seconds) { /* since 1970 */
        char *end;
        errno = 0;
        *result = strtol(text + 3, &end, 10);
        good = *result >= 1000000 && !errno && !*end;
    } else if ((good = read_parts(text, now, &moment) == 0)) {
        /* Defaults: midnight, today, and the last year in which the month has begun. */
        struct tm today;
        localtime_r(&now, &today);
        if (moment.hour < 0)
            moment.hour = moment.minute = 0;
        if (moment.month < 0)
            set_day(&moment, now);
        if (moment.year == -1)
            moment.year = moment.month > today.tm_mon ? today.tm_year - 1 : today.tm_year;
        *result = moment.at;
        good = moment.exact || make_time(&moment, result) == 0;
    }
    return good ? 0
                : tccl_fail(err,
                            "'%.60s' is not a time: give YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], "
                            "MM/DD[/YY], HH:MM[:SS][AM|PM], "
                            "now[-N{seconds,minutes,hours,days,weeks}], today, noon or yesterday",
                            text);
}

/* Slurm's "relative" format: the nearer, the more exact. */
static const char *relative_format(const struct tm *when, time_t now)
{
    struct tm today;
    localtime_r(&now, &today);
    long long years = (long long)when->tm_year - today.tm_year;
    long long days = 1000 * years + when->tm_yday - today.tm_yday;
    if (days >= -1 && days <= 1)
        return days == 0 ? "%H:%M:%S" : days < 0 ? "Ystday %H:%M" : "Tomorr %H:%M";
    if (days < -365 || days > 365)
        return "%-d %b %Y";
    return days < 0 || days > 6 ? "%-d %b %H:%M" : "%a %H:%M";
}

void acct_time_print(time_t when, time_t now, const char *format, char *text, size_t size)
{
    struct tm fields;
    if (!format || !strchr(format, '%'))
        format = format && !strcmp(format, "relative") ? NULL : "%Y-%m-%dT%H:%M:%S";
    if (!localtime_r(&when, &fields) ||
        strftime(text, size, format ? format : relative_format(&fields, now), &fields) == 0)
        snprintf(text, size, "%lld", (long long)when);
}
