/* acct-output.c: writes JSON, reports errors, and says what the terminal can show. */
#include "acct/acct-output.h"
#include "base/fields.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int acct_print_json(const json_t *json, struct tccl_error *err)
{
    if (!json ||
        json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | TCCL_JSON_SHOWN) != 0)
        return ferror(stdout) ? 0 : tccl_fail(err, "can't write the answer as JSON");
    putchar('\n');
    return 0;
}

/* Has the reader of stdout gone (EPIPE)? */
static bool is_unread(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

int acct_end(int rc, struct tccl_error *err)
{
    errno = 0;
    bool unwritten = fflush(stdout) != 0 || ferror(stdout);
    int error = errno;
    if (unwritten && (error == EPIPE || is_unread()))
        return EXIT_FAILURE;
    if (rc == 0 && unwritten)
        rc = tccl_fail(err, "can't write the output: %s",
                       error ? strerror(error) : "part of it was lost");
    if (rc != 0)
        fprintf(stderr, "tccl: %s\n", err->text);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int acct_terminal_columns(void)
{
    struct winsize size;
    const char *text = getenv("COLUMNS");
    int columns = text ? atoi(text) : 0;
    if (columns > 0 && columns < 10000)
        return columns;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool acct_terminal_colour(void)
{
    const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0 && !(none && *none);
}

bool acct_terminal_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}
