/* sysfs.c: the small texts of /sys and /proc. */
#include "discover/sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LINE = 256, MAX_LINES = 64 };

void tccl_sys_clean(char *to, size_t size, const char *from)
{
    size_t used = 0;
    from = from ? from : "";
    from += strspn(from, " \t\r\n");
    for (; *from && *from != '\n' && used + 1 < size; from++)
        to[used++] = *from >= ' ' && *from <= '~' ? *from : *from == '\t' ? ' ' : '?';
    while (used > 0 && to[used - 1] == ' ')
        used--;
    to[used] = '\0';
}

void tccl_nic_rename(char *name)
{
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != '.')
            *at = '_';
    if (!isalpha((unsigned char)name[0]))
        name[0] = 'n';
}

/* Returns false where the path is too long. */
static bool make_path(char path[static PATH_MAX], const char *root, const char *format,
                      va_list arguments)
{
    int length = snprintf(path, PATH_MAX, "%s", root ? root : "");
    if (length < 0 || length >= PATH_MAX)
        return false;
    int rest = vsnprintf(path + length, (size_t)(PATH_MAX - length), format, arguments);
    return rest > 0 && rest < PATH_MAX - length;
}

#define OPEN_PATH(file, root, format)                                                              \
    char path_[PATH_MAX];                                                                          \
    va_list arguments_;                                                                            \
    va_start(arguments_, format);                                                                  \
    bool fits_ = make_path(path_, root, format, arguments_);                                       \
    va_end(arguments_);                                                                            \
    cleanup_file FILE *file = fits_ ? fopen(path_, "re") : NULL

bool tccl_sys_text(const char *root, char *text, size_t size, const char *path, ...)
{
    OPEN_PATH(file, root, path);
    char line[LINE];
    text[0] = '\0';
    if (!file || !fgets(line, sizeof(line), file))
        return false;
    tccl_sys_clean(text, size, line);
    return text[0] != '\0';
}

bool tccl_sys_number(const char *root, long *value, const char *path, ...)
{
    OPEN_PATH(file, root, path);
    char line[LINE], *end;
    if (!file || !fgets(line, sizeof(line), file))
        return false;
    errno = 0;
    long number = strtol(line, &end, 10);
    if (errno != 0 || end == line)
        return false;
    *value = number;
    return true;
}

bool tccl_sys_member(const char *root, const char *name, char *text, size_t size, const char *path,
                     ...)
{
    OPEN_PATH(file, root, path);
    char line[LINE];
    size_t length = strlen(name);
    text[0] = '\0';
    for (int i = 0; file && i < MAX_LINES && fgets(line, sizeof(line), file); i++)
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            tccl_sys_clean(text, size, line + length + 1);
            return text[0] != '\0';
        }
    return false;
}

bool tccl_sys_exists(const char *root, const char *path, ...)
{
    char full[PATH_MAX];
    va_list arguments;
    va_start(arguments, path);
    bool fits = make_path(full, root, path, arguments);
    va_end(arguments);
    return fits && access(full, F_OK) == 0;
}

enum tccl_sys_link tccl_sys_port_link(const char *root, const char *device, int port)
{
    long state;
    if (!tccl_sys_number(root, &state, "/sys/class/infiniband/%s/ports/%d/state", device, port))
        return TCCL_LINK_UNKNOWN;
    return state == TCCL_PORT_ACTIVE ? TCCL_LINK_UP : TCCL_LINK_DOWN;
}

enum tccl_sys_link tccl_sys_net_link(const char *root, const char *interface)
{
    char state[32];
    if (!tccl_sys_text(root, state, sizeof(state), "/sys/class/net/%s/operstate", interface))
        return TCCL_LINK_UNKNOWN;
    bool up = strcmp(state, "up") == 0 || strcmp(state, "unknown") == 0;
    return up ? TCCL_LINK_UP : TCCL_LINK_DOWN;
}

bool tccl_sys_gpudirect(const char *root)
{
    static const char *const modules[] = {"nvidia_peermem", "nv_peer_mem"};
    char version[128] = "", release[64] = "";
    int major = 0, minor = 0;
    for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++)
        if (tccl_sys_exists(root, "/sys/module/%s", modules[i]))
            return true;
    tccl_sys_text(root, version, sizeof(version), "/proc/driver/nvidia/version");
    tccl_sys_text(root, release, sizeof(release), "/proc/sys/kernel/osrelease");
    return strstr(version, "Open Kernel Module") && sscanf(release, "%d.%d", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 12));
}
