/* measured.c: all that a profile has measured, in memory, to be asked for sets. */
#include "profile/measured.h"

static int take(void *context, const struct tccl_set *set, const struct tccl_measurement *value)
{
    struct tccl_measured *measured = context;
    if (tccl_set_repeats(set))
        return 0;
    return tccl_setmap_note(&measured->sets, set, value) ? 0 : -1;
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
    *measured = (struct tccl_measured){0};
}

enum tccl_answer tccl_measured_ask(const struct tccl_measured *measured, const struct tccl_set *set,
                                   struct tccl_measurement *value)
{
    const struct tccl_setmap_entry *entry = tccl_setmap_find(&measured->sets, set);
    *value = (struct tccl_measurement){0};
    if (entry) {
        *value = entry->best;
        return TCCL_ANSWER_MEASURED;
    }
    if (measured->model &&
        tccl_model_measure(measured->model, set, &value->gbps, NULL, NULL, NULL) == 0)
        return TCCL_ANSWER_MODEL;
    return TCCL_NO_ANSWER;
}
