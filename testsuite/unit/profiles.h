/* profiles.h: small profiles in caches of a test's own. */
#pragma once

#include "machines.h"
#include "owned.h"
#include "profile/cache.h"
#include "profile/measured.h"
#include "sample.h"

OWNED(profile, struct tccl_profile, tccl_profile_close)

static inline void know(struct tccl_measured *measured, const char *text,
                        struct tccl_measurement value)
{
    struct tccl_set set = parse_set(text);
    CHECK(tccl_setmap_note(&measured->sets, &set, &value));
}

/* A profile of the machine with so many measured sets, and chains for each set of its first GPUs
 * below mask. */
static inline struct tccl_profile *
make_profile(const char *cache, const struct tccl_machine *machine, int sets, uint32_t masks)
{
    struct tccl_profile *profile;
    MUST(tccl_profile_create(cache, machine, "host", NULL, &profile, ERR));
    for (int i = 0; i < sets; i++) {
        struct tccl_set set = {0};
        struct tccl_measurement value = random_measurement();
        for (int j = rand() % 6; j >= 0; j--)
            tccl_set_add(&set, random_transfer(machine));
        CHECK_OK(tccl_profile_append(profile, &set, &value, ERR));
    }
    for (uint32_t mask = 1; mask < masks; mask++) {
        owned(table) struct tccl_table *table = sample_table(machine, mask);
        snprintf(table->source, sizeof(table->source), "host");
        CHECK_OK(tccl_profile_put(profile, table, ERR));
    }
    CHECK_STR(check_err.text, "");
    return profile;
}
