/* acct-html.c: the parts that all pages of tcclacct share. */
#include "acct/acct-html.h"

#include <pwd.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "acct/acct-request.h"
#include "acct/acct-text.h"
#include "base/cleanup.h"
#include "draw/html.h"
#include "draw/svg.h"

void acct_html_text(const char *text, int columns, FILE *out)
{
    int used;
    cleanup_free char *escaped = acct_escape(text, NULL);
    if (!escaped)
        return;
    int bytes = acct_bytes_within(escaped, columns, &used);
    bool cut = escaped[bytes] != '\0';
    escaped[bytes] = '\0';
    fputs("<bdi>", out);
    tccl_svg_escape(escaped, out);
    fprintf(out, "%s</bdi>", cut ? "…" : "");
}

static void put_command(const struct acct_asked *asked, FILE *out)
{
    enum { WORDS = 40, COLUMNS = 400 };
    fputs("<p><code>tcclacct", out);
    for (int i = 0; i < asked->argc && i < WORDS; i++) {
        fputc(' ', out);
        acct_html_text(asked->argv[i], COLUMNS, out);
    }
    fprintf(out, "%s</code></p>\n", asked->argc > WORDS ? " …" : "");
}

void acct_html_asked(const struct acct_asked *asked, FILE *out)
{
    char when[64] = "?";
    time_t now = time(NULL);
    struct tm fields;
    const struct passwd *user = getpwuid(geteuid());
    if (localtime_r(&now, &fields))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", &fields);
    fputs("<h2>About this page</h2>\n<div class=\"card\">\n", out);
    put_command(asked, out);
    fprintf(out, "<p>Created %s from the records that user ", when);
    acct_html_text(user ? user->pw_name : "?", 64, out);
    fprintf(out,
            " may see%s. Bandwidths come from the profiles, in GB/s (1e9 bytes per second). Gains "
            "compare them with the baseline, NCCL's own rings, on the same profiles. Nothing here "
            "was measured by the jobs.</p>\n",
            asked->complete ? "" : " on this node only: AccountingHost is not set in tccl.conf");
    if (asked->lost) {
        fputs("<p>Not complete: ", out);
        acct_html_text(asked->lost, ACCT_LOST_TEXT, out);
        fputs(".</p>\n", out);
    }
    fputs("</div>\n", out);
}
