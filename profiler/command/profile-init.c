/* profile-init.c: tccl-profile init: writes what this node is. */
#include <libgen.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "command/profile-command.h"
#include "discover/machine-text.h"

static int write_machine(const struct tccl_machine *machine, const char *path,
                         struct tccl_error *err)
{
    cleanup_json json_t *json = tccl_machine_to_json(machine);
    cleanup_free char *copy = strdup(path);

    if (!json || !copy)
        return tccl_fail(err, "out of memory");
    if (tccl_make_folder(dirname(copy), 0755, err) != 0)
        return -1;
    return tccl_write_json(path, 0644, json, err);
}

static int say(const struct profile_options *options, const struct tccl_found *found,
               const char *path)
{
    char id[TCCL_HASH_HEX];

    tccl_machine_id(&found->site.machine, id);
    if (options->json) {
        json_t *json = tccl_found_to_json(found);
        json_object_set_new(json, "machine", json_string(path));
        return profile_print(json);
    }
    if (options->quiet)
        return 0;
    for (int i = 0; i < found->n_notes; i++)
        fprintf(stderr, "tccl: note: %s\n", found->notes[i]);
    fprintf(stderr, "tccl: %s: this node is a machine %s\n", path, id);
    return 0;
}

int profile_init(const struct profile_options *options)
{
    const char *path = options->machine ? options->machine : options->node;
    struct tccl_error err = {0};
    struct tccl_found found;

    if (profile_machine(options, &found, &err) < 0 ||
        write_machine(&found.site.machine, path, &err) != 0)
        return profile_complain(&err);
    return say(options, &found, path);
}
