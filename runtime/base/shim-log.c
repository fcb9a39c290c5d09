/* shim-log.c: TCCL_DEBUG and TCCL_DEBUG_FILE. One write a line, so that lines of several ranks
 * don't mix. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LINE = 6144 }; /* a line has room for a ring set */

static void host_name(char name[static 65])
{
    name[0] = '\0';
    gethostname(name, 64);
    name[64] = '\0';
    name[strcspn(name, ".")] = '\0';
}

void shim_text_expand(struct shim_text *text, const char *pattern)
{
    char host[65];
    host_name(host);
    for (const char *at = pattern; *at; at++) {
        if (at[0] == '%' && at[1] == 'h')
            shim_text_add(text, "%s", host), at++;
        else if (at[0] == '%' && at[1] == 'p')
            shim_text_add(text, "%d", (int)getpid()), at++;
        else if (at[0] == '%' && at[1] == '%')
            shim_text_add(text, "%%"), at++;
        else
            shim_text_add(text, "%c", *at);
    }
}

/* Where to write: a descriptor to be closed, or stderr's. */
static int open_log(void)
{
    const char *pattern = shim_env("TCCL_DEBUG_FILE");
    if (!pattern || !pattern[0])
        return STDERR_FILENO;
    char path[SHIM_PATH];
    struct shim_text text = {path, sizeof(path), 0, false};
    shim_text_expand(&text, pattern);
    int fd =
        text.full
            ? -1
            : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    return fd < 0 ? STDERR_FILENO : fd;
}

void shim_log(enum shim_level level, const char *format, ...)
{
    const char *word = shim_env("TCCL_DEBUG");
    if (!word || (strcasecmp(word, "INFO") && strcasecmp(word, "TRACE") &&
                  (level != SHIM_LOG_WARN || strcasecmp(word, "WARN"))))
        return;
    int before = errno;
    char host[65], line[LINE];
    host_name(host);
    struct shim_text text = {line, sizeof(line) - 1, 0, false};
    shim_text_add(&text, "%s:%d:%d TCCL %s ", host, (int)getpid(), shim_tid(),
                  level == SHIM_LOG_WARN ? "WARN" : "INFO");
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line + text.length, text.size - text.length, format, list);
    va_end(list);
    size_t length = text.length + (n > 0 ? (size_t)n : 0);
    if (length >= text.size)
        length = text.size - 1;
    line[length++] = '\n';
    int fd = open_log();
    shim_write_all(fd, line, length);
    if (fd != STDERR_FILENO)
        close(fd);
    errno = before;
}
