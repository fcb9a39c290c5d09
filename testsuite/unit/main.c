/* main.c: runs the tests that a program has registered. */
#include "check.h"

static struct check_step *first, **last = &first;
static char skipped[256];

void check_add(struct check_step *step)
{
    *last = step;
    last = &step->next;
}

void check_skip(const char *why, ...)
{
    va_list args;
    va_start(args, why);
    vsnprintf(skipped, sizeof(skipped), why, args);
    va_end(args);
}

static void run_all(enum check_part part)
{
    for (struct check_step *step = first; step; step = step->next)
        if (step->part == part)
            step->run();
}

static void run_test(const struct check_step *test)
{
    const char *only = getenv("TCCL_TEST");
    long before = check_counted;
    if (only && strcmp(only, test->name) != 0)
        return;
    check_seed_anew();
    run_all(CHECK_BEFORE);
    test->run();
    run_all(CHECK_AFTER);
    if (getenv("TCCL_VERBOSE"))
        fprintf(stderr, "%s: %ld checks\n", test->name, check_counted - before);
}

int main(int argc, char **argv)
{
    check_args = argv;
    check_seed();
    run_all(CHECK_SETUP);
    for (struct check_step *step = first; step && !skipped[0]; step = step->next)
        if (step->part == CHECK_TEST)
            run_test(step);
    run_all(CHECK_TEARDOWN);
    check_clear();
    if (getenv("TCCL_VERBOSE"))
        fprintf(stderr, "%ld checks\n", check_counted);
    if (check_result() != 0)
        return 1;
    if (skipped[0])
        printf("skipped: %s\n", skipped);
    return skipped[0] ? 77 : 0;
}
