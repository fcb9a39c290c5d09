/* nccl-version.c: the table of releases. */
#include "chain/nccl-version.h"

#include <stdio.h>

/* What came to stay. */
enum {
    SINCE_2_22 = TCCL_FACT_OWN_GPU | TCCL_FACT_QUIET_LOG,
    SINCE_2_23 = SINCE_2_22 | TCCL_FACT_CAN_HOST_CUMEM,
    SINCE_2_24 = SINCE_2_23 | TCCL_FACT_HOST_CUMEM | TCCL_FACT_SAME_MAKER,
    SINCE_2_27 = SINCE_2_24 | TCCL_FACT_DATA_DIRECT,
    SINCE_2_28_7 = SINCE_2_27 | TCCL_FACT_ENV_PLUGIN,
    SINCE_2_29_7 = SINCE_2_28_7 | TCCL_FACT_NICS_BY_BUS | TCCL_FACT_BIG_GRAPH,
    SINCE_2_30_3 = SINCE_2_29_7 | TCCL_FACT_GRAPH_RANKS,
};

static const struct tccl_release releases[] = {
    {22100, 22199, "2.21", TCCL_NCCL_2_21, TCCL_FACT_FAR_P2P | TCCL_FACT_ALL_CPUS},
    {22200, 22299, "2.22", TCCL_NCCL_2_22,
     SINCE_2_22 | TCCL_FACT_FAR_P2P | TCCL_FACT_ALL_CPUS | TCCL_FACT_PAIR_WAYS |
         TCCL_FACT_LATE_BUFFERS},
    {22300, 22399, "2.23", TCCL_NCCL_2_23, SINCE_2_23 | TCCL_FACT_ALL_CPUS | TCCL_FACT_PAIR_WAYS},
    {22400, 22499, "2.24", TCCL_NCCL_2_23,
     SINCE_2_24 | TCCL_FACT_ALL_CPUS | TCCL_FACT_PAIR_WAYS | TCCL_FACT_VIRTUAL_NICS},
    {22500, 22599, "2.25", TCCL_NCCL_2_25,
     SINCE_2_24 | TCCL_FACT_ALL_CPUS | TCCL_FACT_PAIR_WAYS | TCCL_FACT_VIRTUAL_NICS},
    {22600, 22699, "2.26", TCCL_NCCL_2_26,
     SINCE_2_24 | TCCL_FACT_ALL_CPUS | TCCL_FACT_PAIR_WAYS | TCCL_FACT_VIRTUAL_NICS},
    {22700, 22702, "2.27", TCCL_NCCL_2_27, SINCE_2_27 | TCCL_FACT_ALL_CPUS | TCCL_FACT_PAIR_WAYS},
    {22703, 22799, "2.27.3", TCCL_NCCL_2_27, SINCE_2_27 | TCCL_FACT_PAIR_WAYS},
    {22800, 22806, "2.28", TCCL_NCCL_2_28, SINCE_2_27 | TCCL_FACT_PAIR_WAYS},
    {22807, 22899, "2.28.7", TCCL_NCCL_2_28, SINCE_2_28_7 | TCCL_FACT_PAIR_WAYS},
    {22900, 22906, "2.29", TCCL_NCCL_2_29, SINCE_2_28_7 | TCCL_FACT_PAIR_WAYS},
    {22907, 22999, "2.29.7", TCCL_NCCL_2_29, SINCE_2_29_7 | TCCL_FACT_PAIR_WAYS},
    {23000, 23002, "2.30", TCCL_NCCL_2_30, SINCE_2_29_7 | TCCL_FACT_PAIR_WAYS},
    {23003, 23004, "2.30.3", TCCL_NCCL_2_30, SINCE_2_30_3 | TCCL_FACT_PAIR_WAYS},
    {23005, 23099, "2.30.5", TCCL_NCCL_2_30, SINCE_2_30_3},
    /* Of these there is no source but of the rates between AMD's CPUs (NVIDIA/nccl issue 2441):
     * they are taken to do as 2.30.7 does in all else. */
    {23100, 23199, "2.31", TCCL_NCCL_2_31, SINCE_2_30_3},
    {23200, 23299, "2.32", TCCL_NCCL_2_31, SINCE_2_30_3},
};
enum { RELEASES = sizeof(releases) / sizeof(*releases) };

const struct tccl_release *tccl_release_of(int64_t version)
{
    for (int i = 0; i < RELEASES; i++)
        if (version >= releases[i].first && version <= releases[i].last)
            return &releases[i];
    return NULL;
}

bool tccl_release_does(int64_t version, enum tccl_fact fact)
{
    const struct tccl_release *release = tccl_release_of(version);
    return release && release->facts & fact;
}

int tccl_generation_of(int64_t version)
{
    int generation = 0;
    for (int i = 0; i < RELEASES && releases[i].first <= version; i++)
        generation = (int)releases[i].search;
    return generation;
}

const struct tccl_release *tccl_generation(int generation)
{
    int i = 0;
    while (i < RELEASES - 1 && (int)releases[i].search < generation)
        i++;
    return &releases[i];
}

bool tccl_nccl_known(int64_t version)
{
    return tccl_release_of(version) != NULL;
}

void tccl_nccl_format(int64_t version, char text[static TCCL_NCCL_TEXT])
{
    if (version <= 0 || version > INT32_MAX)
        snprintf(text, TCCL_NCCL_TEXT, "NCCL of an unknown version");
    else
        snprintf(text, TCCL_NCCL_TEXT, "NCCL %d.%d.%d", (int)version / 10000,
                 (int)version / 100 % 100, (int)version % 100);
}

void tccl_nccl_not_known(int64_t version, char text[static TCCL_NCCL_TEXT])
{
    char name[TCCL_NCCL_TEXT];
    int newest = releases[RELEASES - 1].last;
    tccl_nccl_format(version, name);
    snprintf(text, TCCL_NCCL_TEXT, "%.40s: not known (%s to %d.%d are)", name, releases[0].name,
             newest / 10000, newest / 100 % 100);
}
