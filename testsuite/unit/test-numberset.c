/* test-numberset.c: "0-3,6" and masks. */
#include "base/numberset.h"
#include "check.h"

static void check_parse(const char *text, int limit, uint32_t expected)
{
    uint32_t mask = 0;
    CHECK_INT(tccl_numberset_parse(text, limit, &mask, ERR), 0);
    CHECK_INT(mask, expected);
}

static void check_refused(const char *text, int limit, const char *why)
{
    uint32_t mask = 77;
    CHECK_INT(tccl_numberset_parse(text, limit, &mask, ERR), -1);
    CHECK_INT(mask, 77);
    CHECK_STR(check_err.text, why);
}

TEST(numberset)
{
    char text[128], small[4];
    check_parse("0", 1, 1);
    check_parse("0-3,6", 8, 0x4f);
    check_parse("6,0-3", 8, 0x4f);
    check_parse("0-31", 32, 0xffffffff);
    check_parse("5-5", 8, 0x20);
    check_refused("", 8, "\"\": column 1: no number or range below 8");
    check_refused("8", 8, "\"8\": column 1: no number or range below 8");
    check_refused("99999999999999999999", 32,
                  "\"99999999999999999999\": column 1: no number or range below 32");
    check_refused("0,,1", 8, "\"0,,1\": column 3: no number or range below 8");
    check_refused("0,", 8, "\"0,\": column 3: no number or range below 8");
    check_refused("3-1", 8, "\"3-1\": column 1: no number or range below 8");
    check_refused("-1", 8, "\"-1\": column 1: no number or range below 8");
    check_refused("0-3,2", 8, "\"0-3,2\": 2 is listed twice");
    check_refused("1 2", 8, "\"1 2\": column 2: a comma was expected");
    CHECK_INT(tccl_numberset_format(0, text, sizeof(text)), 0);
    CHECK_STR(text, "");
    CHECK_INT(tccl_numberset_format(0x4f, text, sizeof(text)), 5);
    CHECK_STR(text, "0-3,6");
    CHECK_INT(tccl_numberset_format(0xffffffff, text, sizeof(text)), 4);
    CHECK_INT(tccl_numberset_format(0x4f, small, sizeof(small)), -1);
    CHECK_INT(tccl_numberset_format(1, small, 0), -1);
    for (int i = 0; i < 2000; i++) {
        uint32_t mask = (uint32_t)rand() ^ (uint32_t)rand() << 16, back = 0;
        if (mask == 0)
            continue;
        CHECK(tccl_numberset_format(mask, text, sizeof(text)) > 0);
        CHECK_INT(tccl_numberset_parse(text, 32, &back, NULL), 0);
        CHECK_INT(back, mask);
    }
}
