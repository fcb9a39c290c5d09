/* acct-time.h: times as Slurm's commands read and print them. */
#ifndef TCCL_ACCT_TIME_H
#define TCCL_ACCT_TIME_H

#include <stddef.h>
#include <time.h>

#include "error.h"

/* Reads HH:MM[:SS] [AM|PM], MMDD[YY], MM/DD[/YY], MM.DD[.YY] or YYYY-MM-DD, a date with -HH:MM[:SS]
 * or THH:MM[:SS] behind it, now[{+|-}count[seconds|minutes|hours|days|weeks]], today, tomorrow,
 * yesterday, midnight, noon, fika or teatime. What names no day is today's; a day without a year is
 * the last one that isn't in the future. Returns 0, or -1 with err. */
int acct_time_parse(const char *text, time_t now, time_t *result, struct tccl_error *err);

/* Local midnight of the day of now. */
time_t acct_midnight(time_t now);

/* Writes a time as format asks, which is SLURM_TIME_FORMAT: NULL or "standard", "relative" (to
 * now), or what strftime takes. */
void acct_time_print(time_t when, time_t now, const char *format, char *text, size_t size);

#endif
