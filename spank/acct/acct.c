/* acct.c: what the commands of tcclacct share: users' names, output and exit status, the end of a
 * page. */
#include "acct/acct.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "client/message.h"
#include "draw/html.h"
#include "records/record.h"

void acct_name_users(json_t *records)
{
    size_t i;
    json_t *record;
    cleanup_json json_t *known = json_object();
    json_array_foreach(records, i, record)
    {
        /* Each is looked up once; known: {"uid": name or null}. */
        json_int_t uid = tccl_number_of(record, "uid");
        char key[32];
        snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, uid);
        if (!json_object_get(known, key)) {
            const struct passwd *entry = getpwuid((uid_t)uid);
            json_t *name = entry ? json_string(entry->pw_name) : json_null();
            json_object_set_new(known, key, name ? name : json_null());
        }
        tccl_put_text(record, "user", tccl_text_of(known, key), TCCL_STEP_TEXT);
    }
}

int acct_print_json(const json_t *json, struct tccl_error *err)
{
    if (!json ||
        json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | TCCL_JSON_SHOWN) != 0)
        return ferror(stdout) ? 0 : tccl_fail(err, "can't write the answer as JSON");
    putchar('\n');
    return 0;
}

int acct_end(int rc, struct tccl_error *err)
{
    errno = 0;
    bool unwritten = fflush(stdout) != 0 || ferror(stdout);
    int error = errno;
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (unwritten && (error == EPIPE || (poll(&out, 1, 0) == 1 && (out.revents & POLLERR))))
        return EXIT_FAILURE; /* its reader has gone */
    if (rc == 0 && unwritten)
        rc = tccl_fail(err, "can't write the output: %s",
                       error ? strerror(error) : "part of it was lost");
    if (rc != 0)
        fprintf(stderr, "tccl: %s\n", err->text);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- pages ---- */

void acct_html_asked(const struct acct_asked *asked, FILE *out)
{
    enum { WORDS = 40, COLUMNS = 400 };
    char when[64] = "?";
    time_t now = time(NULL);
    struct tm fields;
    const struct passwd *user = getpwuid(geteuid());
    if (localtime_r(&now, &fields))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", &fields);
    fputs("<h2>About this page</h2>\n<div class=\"card\">\n<p><code>tcclacct", out);
    for (int i = 0; i < asked->argc && i < WORDS; i++) {
        fputc(' ', out);
        tccl_html_text(asked->argv[i], COLUMNS, out);
    }
    fprintf(out, "%s</code></p>\n<p>Created %s from the records that user ",
            asked->argc > WORDS ? " …" : "", when);
    tccl_html_text(user ? user->pw_name : "?", 64, out);
    fprintf(out,
            " may see%s. Bandwidths come from the profiles, in GB/s (1e9 bytes per second). Gains "
            "compare them with the baseline, NCCL's own rings, on the same profiles. What is "
            "called achieved was measured by the jobs; all else is predicted.</p>\n",
            asked->complete ? "" : " on this node only: AccountingHost is not set in tccl.conf");
    if (asked->lost) {
        fputs("<p>Not complete: ", out);
        tccl_html_text(asked->lost, 256, out);
        fputs(".</p>\n", out);
    }
    fputs("</div>\n", out);
}
