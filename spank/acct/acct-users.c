/* acct-users.c: the user name of each record, by its uid. */
#include "acct/acct-users.h"

#include <pwd.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "records/record.h"

/* Looks up a name once; known: {"uid": name or null}. Borrowed; NULL if there is none. */
static const char *name_of(json_t *known, json_int_t uid)
{
    char key[32];
    snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, uid);
    if (!json_object_get(known, key)) {
        const struct passwd *entry = getpwuid((uid_t)uid);
        json_t *name = entry ? json_string(entry->pw_name) : json_null();
        json_object_set_new(known, key, name ? name : json_null());
    }
    return json_string_value(json_object_get(known, key));
}

void acct_name_users(json_t *records)
{
    size_t i;
    json_t *record;
    cleanup_json json_t *known = json_object();
    json_array_foreach(records, i, record)
    {
        const char *name = name_of(known, json_integer_value(json_object_get(record, "uid")));
        tccl_put_text(record, "user", name ? name : "", TCCL_STEP_TEXT);
    }
}
