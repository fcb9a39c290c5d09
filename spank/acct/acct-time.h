/* acct-time.h: times in the syntax of Slurm's commands. */
#pragma once

#include <stddef.h>
#include <time.h>

#include "base/error.h"

/* Reads a time as sacct's -S and -E do: parts in any order, such as HH:MM[:SS] [AM|PM], MMDD[YY],
 * MM/DD[/YY], MM.DD[.YY], YYYY-MM-DD, today, tomorrow, midnight, noon, fika, teatime,
 * now[{+|-}count[seconds|minutes|hours|days|weeks]], with blanks, '-' or 'T' between them; or
 * utsSECONDS. Without a date it is today; a month without a year that is still to come is last
 * year's; a day beyond the end of its month runs into the next. Extensions: yesterday, any case,
 * abbreviated units. Returns 0, or -1 with err. */
int acct_time_parse(const char *text, time_t now, time_t *result, struct tccl_error *err);

/* Local midnight of the day of now. */
time_t acct_midnight(time_t now);

/* Writes a time in the format of SLURM_TIME_FORMAT: NULL or "standard", "relative" (to now), or a
 * format for strftime. */
void acct_time_print(time_t when, time_t now, const char *format, char *text, size_t size);
