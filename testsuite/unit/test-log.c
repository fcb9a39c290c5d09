/* Lines of tccld's log are UTF-8 without control characters, whatever texts from outside are in
 * them. */
#include "check.h"
#include "tccld/main/daemon.h"

TEST(lines)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"all is well: é … 😀", "tccl: all is well: é … 😀\n"},
        {"a\ntccl: b\x1b[1m\x7f", "tccl: a?tccl: b?[1m?\n"},
        {"a \u202eb\u200b", "tccl: a ???b???\n"},     /* from right to left; no width */
        {"\xb4 \xc2 \xe2\x80", "tccl: ? ? ??\n"},     /* no character, or a part of one */
        {"\xc2\x85 \xc2\xa0", "tccl: ?? \xc2\xa0\n"}, /* NEL is a control character */
        {"\xc0\xaf \xe0\x80\xaf", "tccl: ?? ???\n"},  /* longer than need be */
        {"\xed\xa0\x80 \xf4\x90\x80\x80",
         "tccl: ??? ????\n"}, /* half a pair, and beyond the last */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char line[256];
        /* What log_line writes of a text to standard error. */
        FILE *file = tmpfile();
        int old = dup(STDERR_FILENO);
        *line = '\0';
        if (file && old >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0) {
            log_line("%s", cases[i].text);
            dup2(old, STDERR_FILENO);
            rewind(file);
            line[fread(line, 1, 255, file)] = '\0';
        }
        close(old);
        if (file)
            fclose(file);
        CHECK_STR(line, cases[i].line);
    }
}
