/* believed.h: what time it is, as far as records go by it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct believed {
    int64_t now;    /* unix time; 0: not known yet */
    int64_t at_ms;  /* of CLOCK_MONOTONIC: when that was so */
    int64_t newest; /* start of the newest record whose time is believed; 0: there is none */
};

enum {
    BELIEVED_DAY = 24 * 3600,
    BELIEVED_FAR = 30 * BELIEVED_DAY,   /* a record of that long after now, */
    BELIEVED_LONG = 366 * BELIEVED_DAY, /* or so long before KeepRecords=, is misdated */
    BELIEVED_RATE = 3,                  /* seconds a second by which it comes up with the clock */
};

/* What is known at the start: what was believed last (0: nothing yet), the newest record, the
 * clock's time. */
void believed_begin(struct believed *believed, int64_t last, int64_t newest, int64_t clock,
                    int64_t now_ms);
/* A look at the clock and at the newest record. */
void believed_look(struct believed *believed, int64_t newest, int64_t clock, int64_t now_ms);
/* The time now, without a look. */
int64_t believed_now(const struct believed *believed, int64_t now_ms);

/* Records of steps that started before that are too old for so many days of keeping them; 0: none
 * is (days is 0, or there are no records). */
int64_t believed_oldest(const struct believed *believed, int days, int64_t clock, int64_t now_ms);
/* Is a record that comes now dated so far off that its time can't be right? */
bool believed_misdated(const struct believed *believed, int64_t start, int days, int64_t now_ms);
