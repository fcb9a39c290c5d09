/* The line that says how far a run is: what it tells, and that it fits the terminal. */
#include "fill/fill.h"

#include "check.h"

static struct tccl_fill_progress sample(void)
{
    return (struct tccl_fill_progress){.phase = TCCL_FILL_CHAINS,
                                       .gpus = 0xff,
                                       .measured = 312,
                                       .shared = 1204,
                                       .pruned = 15220,
                                       .done = 2,
                                       .total = 255,
                                       .fraction = 0.42,
                                       .left = -1};
}

static const char *drawn(bool terminal, const struct tccl_fill_progress *progress, double elapsed,
                         int width)
{
    static char text[TCCL_PROGRESS_TEXT];
    struct tccl_progress_line line = {.machine = "big-node", .terminal = terminal};
    tccl_progress_format(&line, progress, elapsed, width, text);
    return text;
}

TEST(words)
{
    struct tccl_fill_progress progress = sample();
    CHECK_STR(drawn(true, &progress, 42, 120),
              "tccl: big-node [########            ] 42 % 0-7: 312 measured (7.4/s), 1,204 by "
              "symmetry, 15,220 pruned, 0:58 left");
    CHECK_STR(drawn(true, &progress, 42, 79),
              "tccl: [######          ] 42 % 0-7: 312 (7.4/s), 1204 sym, 15k pruned, 0:58 left");
    CHECK_STR(drawn(false, &progress, 42, 0),
              "tccl: big-node: 42 %, 2 of 255 GPU sets done, now 0-7: 312 measured (7.4/s), 1,204 "
              "by symmetry, 15,220 pruned, 0:58 left");
    progress.phase = TCCL_FILL_MATRIX;
    progress.step = 31;
    progress.steps = 120;
    CHECK(strstr(drawn(false, &progress, 42, 0), "now matrix 31/120: "));
}

/* Where time is limited it is what is left, if the work would take longer; a budget alone says
 * nothing of what is likely. */
TEST(left)
{
    struct tccl_fill_progress progress = sample();
    progress.left = 30;
    CHECK(strstr(drawn(false, &progress, 30, 0), ": 50 %"));
    CHECK(strstr(drawn(false, &progress, 30, 0), "0:30 left"));
    progress.left = 3000;
    CHECK(strstr(drawn(false, &progress, 30, 0), ": 42 %"));
    CHECK(strstr(drawn(false, &progress, 30, 0), "0:41 left"));
    progress.fraction = 0;
    CHECK(!strstr(drawn(false, &progress, 30, 0), "left"));
    progress.fraction = 0.001;
    CHECK(!strstr(drawn(false, &progress, 3, 0), "left"));
    CHECK(strstr(drawn(false, &progress, 30, 0), "50:00 left"));
    progress.fraction = 0;
    progress.left = -1;
    CHECK(!strstr(drawn(false, &progress, 30, 0), "left"));
}

/* What comes before the chains takes its time once: it is not multiplied with the work. */
TEST(prepared)
{
    struct tccl_fill_progress progress = sample();
    struct tccl_progress_line line = {.machine = "big-node"};
    char text[TCCL_PROGRESS_TEXT];
    progress.phase = TCCL_FILL_MATRIX;
    progress.fraction = 0;
    tccl_progress_format(&line, &progress, 100, 0, text);
    CHECK(!strstr(text, "left"));
    progress.phase = TCCL_FILL_CHAINS;
    progress.fraction = 0.5;
    tccl_progress_format(&line, &progress, 110, 0, text);
    CHECK(strstr(text, "0:10 left"));
}

TEST(fits)
{
    for (int i = 0; i < 2000; i++) {
        struct tccl_fill_progress progress = sample();
        int width = 20 + rand() % 180;
        progress.gpus = (uint32_t)rand() & 0xffff;
        progress.measured = rand() >> rand() % 31;
        progress.shared = rand() >> rand() % 31;
        progress.pruned = (long)rand() << rand() % 12;
        progress.failed = rand() % 2 ? rand() >> rand() % 31 : 0;
        progress.fraction = rand() / (double)RAND_MAX;
        const char *text = drawn(true, &progress, rand() % 100000, width);
        CHECK((int)strlen(text) <= width && strncmp(text, "tccl: ", 6) == 0);
    }
}

TEST(never_back)
{
    struct tccl_progress_line line = {.machine = "x"};
    struct tccl_fill_progress progress = sample();
    char text[TCCL_PROGRESS_TEXT];
    tccl_progress_format(&line, &progress, 10, 0, text);
    progress.fraction = 0.1;
    tccl_progress_format(&line, &progress, 11, 0, text);
    CHECK(strstr(text, "x: 42 %"));
}
