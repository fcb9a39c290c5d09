/* tccl-profile import. */
#include "base/cleanup.h"
#include "command/profile-command.h"
#include "profile/exchange.h"

static int say(const struct profile_options *options, const struct tccl_exchanged *made)
{
    if (options->json)
        return profile_print(json_pack("{s:s, s:s, s:I, s:i, s:b}", "id", made->id, "source",
                                       made->source, "sets", (json_int_t)made->sets, "tables",
                                       made->tables, "replaced", made->replaced));
    if (!options->quiet)
        printf("%s: %ld sets, %d tables, source %s%s\n", made->id, made->sets, made->tables,
               made->source, made->replaced ? "; replaces the one that was there" : "");
    return 0;
}

int profile_import(const struct profile_options *options)
{
    struct tccl_exchanged made = {.sets = 0};
    struct tccl_error err = {0};
    cleanup_free char *text = NULL;
    size_t size = 0;

    if (tccl_exchange_load(options->profile, &text, &size, &err) < 0)
        return profile_complain(&err);
    if (tccl_exchange_import(text, size, options->cache, options->force, &made, &err) == 0)
        return say(options, &made);
    tccl_fail_in(&err, "%s", options->profile);
    return profile_complain(&err);
}
