/* Facts as lines: what is written is read, and what is cut, damaged or doubled is not. */
#include "base/lines.h"

#include <locale.h>

#include "each-text.h"

static const char good[] =
    "test 3\nname a b  c\nnumber -20\nrate 12.0625\nyes yes\nno no\nnic a 1\n"
    "empty \nnic b 2\nend\n";

TEST(values)
{
    struct tccl_lines lines;
    char text[8];
    const char *at = NULL;
    int64_t number;
    double rate;
    bool truth = false;
    CHECK_INT(tccl_lines_open(good, strlen(good), &lines, NULL), 0);
    CHECK(tccl_lines_are(&lines, "test", 3) && !tccl_lines_are(&lines, "test", 2) &&
          !tccl_lines_are(&lines, "tes", 3));
    CHECK_INT(tccl_line_text(&lines, "name", text, sizeof(text)), 6);
    CHECK_STR(text, "a b  c");
    CHECK_INT(tccl_line_text(&lines, "name", text, 6), -1); /* too long */
    CHECK_STR(text, "");
    CHECK_INT(tccl_line_text(&lines, "empty", text, sizeof(text)), 0);
    CHECK_INT(tccl_line_text(&lines, "nam", text, sizeof(text)), -1);
    CHECK_INT(tccl_line_text(&lines, "end", text, sizeof(text)), -1);
    CHECK_INT(tccl_line_text(&lines, "test", text, sizeof(text)), -1);
    CHECK_INT(tccl_line_text(&lines, "nic", text, sizeof(text)), -1); /* twice */
    CHECK_INT(tccl_line_next(&lines, "nic", &at, text, sizeof(text)), 3);
    CHECK_STR(text, "a 1");
    CHECK_INT(tccl_line_next(&lines, "nic", &at, text, sizeof(text)), 3);
    CHECK_STR(text, "b 2");
    CHECK_INT(tccl_line_next(&lines, "nic", &at, text, sizeof(text)), -1);
    CHECK(tccl_line_integer(&lines, "number", -20, 0, &number) == 0 && number == -20);
    CHECK_INT(tccl_line_integer(&lines, "number", -19, 0, &number), -1);
    CHECK_INT(tccl_line_integer(&lines, "rate", 0, 100, &number), -1);
    CHECK_INT(tccl_line_integer(&lines, "empty", 0, 100, &number), -1);
    CHECK(tccl_line_number(&lines, "rate", 0, 13, &rate) == 0 && rate == 12.0625);
    CHECK_INT(tccl_line_number(&lines, "rate", 0, 12, &rate), -1);
    CHECK_INT(tccl_line_number(&lines, "number", -100, 12, &rate), -1);
    CHECK(tccl_line_bool(&lines, "yes", &truth) == 0 && truth);
    CHECK(tccl_line_bool(&lines, "no", &truth) == 0 && !truth);
    CHECK_INT(tccl_line_bool(&lines, "name", &truth), -1);
}

TEST(numbers)
{
    static const struct {
        const char *text;
        bool integer, number;
    } cases[] = {
        {"0", true, true},       {"007", true, true},   {"1.5", false, true},
        {"1.", false, false},    {".5", false, false},  {"1e3", false, false},
        {"1.2.3", false, false}, {"-1", true, false},   {"-", false, false},
        {" 1", false, false},    {"1 ", false, false},  {"+1", false, false},
        {"0x1", false, false},   {"nan", false, false}, {"99999999999999999999", false, true}};
    char text[64];
    struct tccl_lines lines;
    int64_t integer;
    double number;
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(text, sizeof(text), "t 1\na %s\nend\n", cases[i].text);
        CHECK_INT(tccl_lines_open(text, strlen(text), &lines, NULL), 0);
        CHECK_INT(tccl_line_integer(&lines, "a", INT64_MIN, INT64_MAX, &integer) == 0,
                  cases[i].integer);
        CHECK_INT(tccl_line_number(&lines, "a", -1e30, 1e30, &number) == 0, cases[i].number);
    }
}

TEST(wrong)
{
    struct tccl_lines lines;
    EACH_TEXT(wrong, "|\n|end\n|t\nend\n|t 1|t 1\n|t 1\nend|t 1\na b\n|t 1\na\nend\n|t x\nend\n|"
                     "t -1\nend\n|t 1\n\nend\n|t 1\n a\nend\n|t 1\nA b\nend\n|t 1\na\tb\nend\n|"
                     "t 1\na b\r\nend\n|t 1\na \x7f\nend\n|t 1\nend\nend\n|t 1\nend\na b\n|"
                     "t 1\nend \n|GIF89a|{\"v\":1}\n|t 1 2\nend\n|t 99999999999\nend\n|"
                     "a-name-that-is-longer-than-a-name-can-be 1\nend\n") {
        struct tccl_error err = {0};
        CHECK_NO(tccl_lines_open(wrong, strlen(wrong), &lines, &err) == 0 || !err.text[0],
                 "accepted: %s\n", wrong);
    }
    for (size_t size = 0; size < strlen(good); size++)
        CHECK_INT(tccl_lines_open(good, size, &lines, NULL), -1);
    cleanup_free char *big = calloc(1, TCCL_LINES_SIZE + 1);
    memset(big, 'x', TCCL_LINES_SIZE);
    memcpy(big, "t 1\na ", 6);
    memcpy(big + TCCL_LINES_SIZE - 4, "\nend\n", 5);
    CHECK_INT(tccl_lines_open(big, TCCL_LINES_SIZE + 1, &lines, NULL), -1);
    memcpy(big + TCCL_LINES_SIZE - 5, "\nend\n", 5);
    CHECK_INT(tccl_lines_open(big, TCCL_LINES_SIZE, &lines, NULL), 0);
    CHECK_INT(tccl_lines_open("t 1\na b\0c\nend\n", 14, &lines, NULL), -1);
    CHECK_INT(tccl_lines_length("t 1\nend 2\nend\n{\nend\n", 22), 14);
    CHECK_INT(tccl_lines_length("t 1\nend", 7), 0);
    CHECK_INT(tccl_lines_length("", 0), 0);
}

/* Random texts, numbers and words come back as they were. */
TEST(random)
{
    unsigned seed = (unsigned)check_seed();
    for (int round = 0; round < 2000; round++) {
        char buffer[TCCL_LINES_SIZE], text[100], read[100];
        int64_t numbers[20], number;
        double rates[20], rate;
        struct tccl_line_writer writer;
        struct tccl_lines lines;
        bool truth;
        int count = rand_r(&seed) % 20;
        tccl_lines_begin(&writer, buffer, sizeof(buffer), "random", round);
        for (int i = 0; i < count; i++) {
            numbers[i] = ((int64_t)rand_r(&seed) << 20) - ((int64_t)rand_r(&seed) << 20);
            rates[i] = rand_r(&seed) % 1000000 / 64.0;
            tccl_line_put(&writer, check_printf("n%d", i), "%lld", (long long)numbers[i]);
            tccl_line_put_number(&writer, check_printf("r%d", i), rates[i]);
            tccl_line_put_bool(&writer, check_printf("b%d", i), numbers[i] & 1);
        }
        size_t length = (size_t)rand_r(&seed) % (sizeof(text) - 1);
        for (size_t i = 0; i < length; i++)
            text[i] = (char)(1 + rand_r(&seed) % 255);
        text[length] = '\0';
        tccl_line_put(&writer, "text", "%s", text);
        CHECK_INT(tccl_lines_end(&writer), 0);
        CHECK_INT(tccl_lines_open(buffer, writer.length, &lines, NULL), 0);
        CHECK(tccl_lines_are(&lines, "random", round));
        for (int i = 0; i < count; i++) {
            CHECK_INT(
                tccl_line_integer(&lines, check_printf("n%d", i), INT64_MIN, INT64_MAX, &number),
                0);
            CHECK(number == numbers[i]);
            CHECK_INT(tccl_line_number(&lines, check_printf("r%d", i), 0, 1e9, &rate), 0);
            CHECK(rate - rates[i] < 1e-4 && rates[i] - rate < 1e-4);
            CHECK(tccl_line_bool(&lines, check_printf("b%d", i), &truth) == 0 &&
                  truth == (numbers[i] & 1));
        }
        CHECK_INT(tccl_line_text(&lines, "text", read, sizeof(read)), (long)length);
        for (size_t i = 0; i < length; i++)
            CHECK_INT(read[i], (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i]);
        CHECK_INT(tccl_lines_open(buffer, (size_t)rand_r(&seed) % writer.length, &lines, NULL), -1);
    }
}

/* A buffer that is too small is never written beyond, and never taken for whole. */
TEST(small)
{
    for (size_t size = 1; size < 40; size++) {
        cleanup_free char *buffer = malloc(size);
        struct tccl_line_writer writer;
        tccl_lines_begin(&writer, buffer, size, "t", 1);
        tccl_line_put(&writer, "key", "%s", "value");
        tccl_line_put_number(&writer, "n", 1e12);
        CHECK_INT(tccl_lines_end(&writer),
                  size > strlen("t 1\nkey value\nn 1000000000000.0000\nend\n") ? 0 : -1);
        CHECK(memchr(buffer, '\0', size) != NULL);
    }
}

/* What is no number, or too large, is 0. */
TEST(odd_numbers)
{
    const double odd[] = {-1, -0.0, 2e12, __builtin_inf(), __builtin_nan("")};
    for (size_t i = 0; i < COUNT(odd); i++) {
        char buffer[64];
        struct tccl_line_writer writer;
        tccl_lines_begin(&writer, buffer, sizeof(buffer), "t", 1);
        tccl_line_put_number(&writer, "n", odd[i]);
        CHECK_INT(tccl_lines_end(&writer), 0);
        CHECK_STR(buffer, "t 1\nn 0.0000\nend\n");
    }
}
