/* system.c: the kernel, driver and firmware that a machine runs now. */
#include "profile/cache.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const struct {
    const char *name;
    size_t offset;
} members[] = {{"kernel", offsetof(struct tccl_system, kernel)},
               {"driver", offsetof(struct tccl_system, driver)},
               {"firmware", offsetof(struct tccl_system, firmware)}};
enum { MEMBERS = sizeof(members) / sizeof(*members) };

/* Appends the one line of a file below /sys, as far as it is printable ASCII. */
static void add_line(const char *root, const char *path, char word[static TCCL_SYSTEM_WORD])
{
    char whole[PATH_MAX], line[TCCL_SYSTEM_WORD];
    size_t used = strlen(word);
    snprintf(whole, sizeof(whole), "%s%s", root ? root : "", path);
    cleanup_file FILE *file = fopen(whole, "re");
    if (!file || !fgets(line, sizeof(line), file))
        return;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; *at; at++)
        if (!isascii(*at) || !isprint((unsigned char)*at))
            *at = '?';
    snprintf(word + used, TCCL_SYSTEM_WORD - used, "%s%s", used ? " " : "", line);
}

void tccl_system_read(const char *root, struct tccl_system *system)
{
    struct utsname name;
    *system = (struct tccl_system){0};
    if (uname(&name) == 0)
        snprintf(system->kernel, sizeof(system->kernel), "%.*s", TCCL_SYSTEM_WORD - 1,
                 name.release);
    add_line(root, "/sys/module/nvidia/version", system->driver);
    add_line(root, "/sys/class/dmi/id/bios_version", system->firmware);
    add_line(root, "/sys/class/dmi/id/bios_date", system->firmware);
}

json_t *tccl_system_to_json(const struct tccl_system *system)
{
    json_t *json = json_object();
    for (int i = 0; json && i < MEMBERS; i++) {
        const char *word = (const char *)system + members[i].offset;
        if (*word)
            json_object_set_new(json, members[i].name, json_string(word));
    }
    return json;
}

void tccl_system_from_json(const json_t *json, struct tccl_system *system)
{
    for (int i = 0; i < MEMBERS; i++) {
        const char *word = json_string_value(json_object_get(json, members[i].name));
        char *to = (char *)system + members[i].offset;
        snprintf(to, TCCL_SYSTEM_WORD, "%s", word ? word : "");
        tccl_utf8_clean(to);
    }
}
