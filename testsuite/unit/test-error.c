/* test-error.c: the error text: first error wins, places in front, nothing overruns. */
#include "base/error.h"
#include "check.h"

TEST(error)
{
    struct tccl_error err = {0};
    char big[2 * sizeof(err.text)];
    CHECK_INT(tccl_fail(&err, "bad %s %d", "thing", 3), -1);
    CHECK_STR(err.text, "bad thing 3");
    CHECK_INT(tccl_fail(&err, "later"), -1);
    CHECK_STR(err.text, "bad thing 3");
    CHECK_INT(tccl_fail_in(&err, "file %s", "x"), -1);
    CHECK_STR(err.text, "file x: bad thing 3");
    CHECK_INT(tccl_fail(NULL, "nobody listens"), -1);
    CHECK_INT(tccl_fail_in(NULL, "nobody listens"), -1);
    err.text[0] = '\0';
    tccl_fail(&err, "two\nlines, \033[31mred");
    CHECK_STR(err.text, "two?lines, ?[31mred");
    tccl_fail_in(&err, "a\tb");
    CHECK_STR(err.text, "a?b: two?lines, ?[31mred");
    /* A raw CSI, the same as a character, a direction of writing, a part of a character; no é. */
    err.text[0] = '\0';
    tccl_fail(&err, "\x9b%s \xc2\x9b%s \u202ex \xe2\x80 é", "31m", "31m");
    CHECK_STR(err.text, "?31m ??31m ???x ?? é");
    tccl_fail_in(&err, "\u200b");
    CHECK_STR(err.text, "???: ?31m ??31m ???x ?? é");
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    err.text[0] = '\0';
    tccl_fail(&err, "%s", big);
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
    tccl_fail_in(&err, "where");
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
    CHECK(strncmp(err.text, "where: aaa", 10) == 0);
    tccl_fail_in(&err, "%s", big);
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
}
