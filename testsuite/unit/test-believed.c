/* test-believed.c: the time by which records get old, under clocks that are wrong. */
#include "check.h"
#include "tccld/journal/journal-internal.h"

#define DAY ((int64_t)BELIEVED_DAY)
#define NOON ((int64_t)1764000000)
enum { HOUR_MS = 3600 * 1000, KEEP = 30 };

/* Hours go by, with the clock off by so much, a record an hour. Returns the oldest time that was
 * kept at any moment, as days before the real one. */
static double keep_for(struct believed *believed, int hours, int64_t off, int64_t *real,
                       int64_t *ms)
{
    double least = 1e9;
    for (int i = 0; i < hours; i++) {
        *real += 3600;
        *ms += HOUR_MS;
        believed_look(believed, *real + off, *real + off, *ms);
        int64_t before = believed_oldest(believed, KEEP, *real + off, *ms);
        double days = (double)(*real - before) / (double)DAY;
        if (before && days < least)
            least = days;
    }
    return least;
}

TEST(right_clock)
{
    struct believed believed;
    int64_t real = NOON, ms = 5000;
    believed_begin(&believed, 0, 0, real, ms);
    CHECK_INT(believed_oldest(&believed, KEEP, real, ms), 0); /* there are no records */
    double least = keep_for(&believed, 1000, 0, &real, &ms);
    CHECK(least > KEEP - 0.01 && least < KEEP + 0.1);
    CHECK_INT(believed_oldest(&believed, 0, real, ms), 0);
    CHECK_INT(believed_oldest(&believed, KEEP, real, ms), real - KEEP * DAY);
    /* No steps for 100 days: the last ones stay. */
    believed_look(&believed, real, real + 100 * DAY, ms + 100 * 24 * (int64_t)HOUR_MS);
    CHECK_INT(believed_oldest(&believed, KEEP, real + 100 * DAY, ms + 100 * 24 * (int64_t)HOUR_MS),
              real - KEEP * DAY);
}

TEST(wrong_clock)
{
    static const int64_t offs[] = {810 * DAY, -810 * DAY, -20000 * DAY};
    for (int i = 0; i < 3; i++) {
        struct believed believed;
        int64_t real = NOON, ms = 5000;
        believed_begin(&believed, real, real - 60, real, ms);
        CHECK(keep_for(&believed, 24, offs[i], &real, &ms) > KEEP - 3.1);
        /* Set right after a day, it is what it was after two. */
        keep_for(&believed, 48, 0, &real, &ms);
        CHECK_INT(believed_oldest(&believed, KEEP, real, ms), real - KEEP * DAY);
        CHECK(!believed_misdated(&believed, real, KEEP, ms));
    }
}

/* A machine that has never known the time: all is right once the clock is. */
TEST(first_start)
{
    struct believed believed;
    believed_begin(&believed, 0, 0, 0, 5000);
    believed_look(&believed, 0, NOON, 6000);
    CHECK(!believed_misdated(&believed, NOON, KEEP, 6000));
    believed_begin(&believed, 3600, 0, NOON, 7000); /* what was believed was the wrong clock's */
    CHECK(!believed_misdated(&believed, NOON, KEEP, 7000));
    CHECK_INT(believed_oldest(&believed, KEEP, NOON, 7000), 0);
}

/* The first look, after a start with a clock that is wrong already. */
TEST(start)
{
    struct believed believed;
    believed_begin(&believed, NOON, NOON - 60, NOON + 810 * DAY, 5000);
    CHECK_INT(believed_oldest(&believed, KEEP, NOON + 810 * DAY, 7000), NOON - 60 - KEEP * DAY);
    believed_begin(&believed, 0, NOON - 60, NOON + 810 * DAY, 5000); /* nothing is known */
    CHECK_INT(believed_oldest(&believed, KEEP, NOON + 810 * DAY, 7000), NOON - 60 - KEEP * DAY);
    CHECK(believed_misdated(&believed, NOON + 810 * DAY, KEEP, 7000));
    CHECK(!believed_misdated(&believed, NOON, KEEP, 7000));
    /* Down for 100 days: it comes up, however slowly. */
    int64_t real = NOON + 100 * DAY, ms = 5000;
    believed_begin(&believed, NOON, NOON - 60, real, ms);
    keep_for(&believed, 24 * 40, 0, &real, &ms);
    CHECK_INT(believed_oldest(&believed, KEEP, real, ms), real - KEEP * DAY);
}

TEST(misdated)
{
    struct believed believed;
    believed_begin(&believed, NOON, NOON, NOON, 0);
    CHECK(!believed_misdated(&believed, NOON + 29 * DAY, KEEP, 0));
    CHECK(believed_misdated(&believed, NOON + 31 * DAY, KEEP, 0));
    CHECK(!believed_misdated(&believed, NOON - 390 * DAY, KEEP, 0));
    CHECK(believed_misdated(&believed, NOON - 400 * DAY, KEEP, 0));
    CHECK(believed_misdated(&believed, 0, KEEP, 0));
    CHECK(!believed_misdated(&believed, NOON, KEEP, 0));
}
