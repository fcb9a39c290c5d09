/* Records are removed by their age, so a clock that is wrong must not make them old. The time that
 * is believed goes on by the monotonic clock, also from one start to the next, and comes up with
 * the clock, or back to it, by at most three seconds a second: whoever sets a clock right within
 * hours has lost nothing. While there are no records it is the clock's: a machine may start for the
 * first time without one. What is removed goes by the newest records besides: where no records
 * come, or all of them are misdated, nothing gets too old. */
#include "tccld/journal/journal-internal.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void believed_begin(struct believed *believed, int64_t last, int64_t newest, int64_t clock,
                    int64_t now_ms)
{
    int64_t first = last ? last : least(newest, clock);
    *believed = (struct believed){.now = newest ? first : clock, .at_ms = now_ms, .newest = newest};
}

int64_t believed_now(const struct believed *believed, int64_t now_ms)
{
    return believed->now + (now_ms - believed->at_ms) / 1000;
}

void believed_look(struct believed *believed, int64_t newest, int64_t clock, int64_t now_ms)
{
    int64_t passed = (now_ms - believed->at_ms) / 1000, now = believed->now + passed;
    int64_t off = clock - now, most = newest ? BELIEVED_RATE * passed : INT64_MAX;
    believed->now = now + (off > most ? most : off < -most ? -most : off);
    believed->at_ms += 1000 * passed;
    believed->newest = newest;
}

int64_t believed_oldest(const struct believed *believed, int days, int64_t clock, int64_t now_ms)
{
    int64_t now = least(least(believed_now(believed, now_ms), clock), believed->newest);
    return days && now > (int64_t)days * BELIEVED_DAY ? now - (int64_t)days * BELIEVED_DAY : 0;
}

bool believed_misdated(const struct believed *believed, int64_t start, int days, int64_t now_ms)
{
    int64_t now = believed_now(believed, now_ms);
    return start > now + BELIEVED_FAR || start < now - (int64_t)days * BELIEVED_DAY - BELIEVED_LONG;
}
