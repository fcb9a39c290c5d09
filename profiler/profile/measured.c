/* All that a profile has measured. */
#include "profile/measured.h"

#include <stdlib.h>
#include <string.h>

int tccl_measured_add(struct tccl_measured *measured, const struct tccl_set *set,
                      const struct tccl_measurement *value)
{
    int fresh = tccl_setmap_add(&measured->sets, set, value->gbps);

    if (fresh < 0 || tccl_grow((void **)&measured->values, measured->sets.count - 1,
                               &measured->room, sizeof(*measured->values)) < 0)
        return -1;
    struct tccl_setmap_entry *entry = tccl_setmap_find(&measured->sets, set);
    bool known = fresh == 0 && !measured->values[entry - measured->sets.entries].failed;
    if (known && (value->failed || value->gbps <= entry->gbps))
        return 0;
    entry->gbps = value->gbps;
    measured->values[entry - measured->sets.entries] = *value;
    return 0;
}

static int take(void *context, const struct tccl_set *set, const struct tccl_measurement *value)
{
    return tccl_measured_add(context, set, value);
}

int tccl_measured_load(struct tccl_profile *profile, struct tccl_measured *measured,
                       struct tccl_error *err)
{
    struct tccl_error why = {""};

    measured->model = tccl_profile_model(profile, &why);
    if (why.text[0])
        return tccl_fail(err, "%s", why.text);
    measured->lines = tccl_profile_sets(profile, take, measured, &measured->dropped, err);
    return measured->lines < 0 ? -1 : 0;
}

void tccl_measured_clear(struct tccl_measured *measured)
{
    tccl_setmap_clear(&measured->sets);
    free(measured->values);
    *measured = (struct tccl_measured){0};
}

enum tccl_answer tccl_measured_ask(const struct tccl_measured *measured, const struct tccl_set *set,
                                   struct tccl_measurement *value)
{
    const struct tccl_setmap_entry *entry = tccl_setmap_find(&measured->sets, set);

    *value = (struct tccl_measurement){0};
    if (entry) {
        *value = measured->values[entry - measured->sets.entries];
        return TCCL_ANSWER_MEASURED;
    }
    if (measured->model &&
        tccl_model_measure(measured->model, set, &value->gbps, NULL, NULL, NULL) == 0)
        return TCCL_ANSWER_MODEL;
    return TCCL_NO_ANSWER;
}
