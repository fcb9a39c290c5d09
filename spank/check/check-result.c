/* check-result.c: collects what an item found out, worst level first, and prints it. */
#include "check/check-items.h"

#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "client/message.h"

enum { USUAL_MS = 10000 /* for all items */ };

static const char *const names[] = {"ok", "warn", "fail"};
static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};

void check_say(struct check_result *result, enum check_level level, const char *format, ...)
{
    char *text = result->text[level];
    size_t used = strlen(text);
    va_list args;
    if (used && used + 3 < CHECK_TEXT) {
        strcpy(text + used, "; ");
        used += 2;
    }
    va_start(args, format);
    vsnprintf(text + used, CHECK_TEXT - used, format, args);
    va_end(args);
    tccl_utf8_clean(text + used);
    if (level > result->level)
        result->level = level;
}

const char *check_level_name(enum check_level level)
{
    return names[level];
}

const char *check_text(const struct check_result *result)
{
    return result->text[result->level];
}

void check_print(FILE *out, const char *item, const struct check_result *result, bool colour)
{
    fprintf(out, "%s%-4s%s  %-10s  %s\n", colour ? colours[result->level] : "",
            names[result->level], colour ? "\033[0m" : "", item, check_text(result));
}

json_t *check_to_json(const char *item, const struct check_result *result)
{
    json_t *json = json_pack("{s:s, s:s}", "item", item, "level", names[result->level]);
    if (json)
        tccl_put_text(json, "text", check_text(result), CHECK_TEXT);
    return json;
}

int64_t check_run_until(int64_t deadline, int ms)
{
    int64_t now = tccl_now_ms(), left = deadline - now, share = left * ms / USUAL_MS;
    if (share < ms)
        share = ms;
    return share < left ? now + share : deadline;
}
