/* test-options.c: command lines by a table: each kind of option, values and their bounds, and what
 * is refused, with the words for it. What is printed, test-completions and test-manuals look at. */
#include "base/options.h"

#include <getopt.h>
#include <stddef.h>

#include "check.h"

struct given {
    const char *file, *word;
    int count;
    double ratio;
    bool quiet, all;
};

static int set_word(const struct tccl_option *option, void *field, const char *text,
                    struct tccl_error *err)
{
    *(const char **)field = text ? text : "alone";
    return text && !*text ? tccl_fail(err, "--%s: give a word", option->name) : 0;
}

static const struct tccl_command commands[] = {{"", "", ""}, {"one", "", ""}, {"two", "", ""}};
enum { ONE = 1, TWO, IN_ONE = 1 << ONE, IN_TWO = 1 << TWO };

static const struct tccl_option rows[] = {
    {"file", 'f', 0, TCCL_OPTION_TEXT, offsetof(struct given, file)},
    {"count", 'n', IN_ONE, TCCL_OPTION_COUNT, offsetof(struct given, count), NULL, NULL, 1, 9},
    {"count", 'n', IN_TWO, TCCL_OPTION_COUNT, offsetof(struct given, count), NULL, NULL, 1, 99},
    {"ratio", 0, IN_ONE, TCCL_OPTION_RATIO, offsetof(struct given, ratio), NULL, NULL, 0, 1},
    {"quiet", 'q', 0, TCCL_OPTION_FLAG, offsetof(struct given, quiet)},
    {"all", 'a', 0, TCCL_OPTION_FLAG, offsetof(struct given, all)},
    {"word", 'w', 0, TCCL_OPTION_OWN, offsetof(struct given, word), .set = set_word},
    {"maybe", 0, IN_TWO, TCCL_OPTION_OWN_MAYBE, offsetof(struct given, word), .set = set_word},
};
static const struct tccl_program program = {"tool", commands, 3, rows,
                                            sizeof(rows) / sizeof(*rows)};

/* The words of a line, "one -q"; the struct that they fill. Returns what tccl_options_read does. */
static int read_line(const char *line, struct given *given, struct tccl_error *err)
{
    static char text[256];
    char *argv[16] = {(char *)"tool"}, *rest = text;
    int argc = 1;
    snprintf(text, sizeof(text), "%s", line);
    for (char *word; (word = strsep(&rest, " "));)
        argv[argc++] = word;
    *given = (struct given){.count = -1};
    *err = (struct tccl_error){""};
    return tccl_options_read(&program, tccl_command_of(&program, argc, argv), argc, argv, given,
                             err);
}

TEST(taken)
{
    struct given given;
    CHECK_INT(read_line("one x -qaf a --count=9 y --ratio 3% -w b --file c", &given, ERR), 0);
    CHECK(given.quiet && given.all && given.count == 9 && fabs(given.ratio - 0.03) < 1e-9);
    CHECK_STR(given.file, "c");
    CHECK_STR(given.word, "b");
    CHECK_INT(optind, 11); /* of the caller's words: operands have gone to the end */
    CHECK_INT(read_line("two --count 99 --maybe --qui", &given, ERR), 0);
    CHECK(given.quiet && given.count == 99);
    CHECK_STR(given.word, "alone");
    CHECK_INT(read_line("two --maybe=b", &given, ERR), 0);
    CHECK_STR(given.word, "b");
    CHECK_INT(read_line("-q one", &given, ERR), 0);
    CHECK_INT(optind, 2); /* which is no command there */
}

TEST(refused)
{
    static const char *const cases[][2] = {
        {"one --count 10", "--count 10: give a whole number from 1 to 9"},
        {"one --count 0", "--count 0: give a whole number from 1 to 9"},
        {"one --count -3", "--count -3: give a whole"},
        {"one --count 5x", "--count 5x: give a whole"},
        {"one --count 0x5", "--count 0x5: give a whole"},
        {"two --count 100", "from 1 to 99"},
        {"one --ratio nan", "--ratio nan: give a number from 0 to 1"},
        {"one --ratio 101%", "--ratio 101%: give a number from 0 to 1"},
        {"one --ratio", "--ratio: a value is missing; see tool one --help"},
        {"one --word", "--word: give a word"},
        {"one --fly", "--fly: unknown option; see tool one --help"},
        {"one -qz", "-z: unknown option"},
        {"one --quiet=1", "--quiet=1: this option takes no value"},
        {"one --maybe", "--maybe: not an option of this command; see tool one --help"},
        {"--count 3", "--count: not an option of this command; see tool --help"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct given given;
        CHECK_SAYS(read_line(cases[i][0], &given, ERR) == -1, cases[i][1]);
    }
}
