/* cache-tables.c: the chain tables of a profile: read on demand, the least recently used
 * dropped. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "profile/cache-internal.h"

void tccl_table_path(const char *folder, uint32_t gpus, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.*s/chains/%08" PRIx32 ".chains", FOLDER_MAX, folder, gpus);
}

static int find(const struct tccl_profile *profile, uint32_t gpus)
{
    for (int i = 0; i < profile->n_loaded; i++)
        if (profile->loaded[i].table->gpus == gpus)
            return i;
    return -1;
}

static void drop(struct tccl_profile *profile, int i)
{
    tccl_table_free(profile->loaded[i].table);
    profile->loaded[i] = profile->loaded[--profile->n_loaded];
}

void tccl_profile_drop_tables(struct tccl_profile *profile)
{
    while (profile->n_loaded > 0)
        drop(profile, profile->n_loaded - 1);
}

size_t tccl_profile_memory(const struct tccl_profile *profile)
{
    size_t sum = 0;
    for (int i = 0; i < profile->n_loaded; i++)
        sum += profile->loaded[i].bytes;
    return sum;
}

/* Drops tables, the one not asked for longest first, until the new one has room. */
static void make_room(struct tccl_profile *profile, size_t bytes)
{
    while (profile->n_loaded > 0) {
        int oldest = 0;
        if (tccl_profile_memory(profile) + bytes <= TABLES_BYTES &&
            profile->n_loaded < TABLES_COUNT)
            return;
        for (int i = 1; i < profile->n_loaded; i++)
            if (profile->loaded[i].used < profile->loaded[oldest].used)
                oldest = i;
        drop(profile, oldest);
    }
}

static int check_gpus(const struct tccl_profile *profile, uint32_t gpus, struct tccl_error *err)
{
    uint32_t all = (UINT32_C(1) << profile->machine.n_gpus) - 1;
    char extra[128];
    if (gpus == 0)
        return tccl_fail(err, "no GPUs are named");
    if (!(gpus & ~all))
        return 0;
    tccl_numberset_format(gpus & ~all, extra, sizeof(extra));
    return tccl_fail_as(err, TCCL_REASON_UNKNOWN_GPU, "the machine has %d GPUs, and no GPU %s",
                        profile->machine.n_gpus, extra);
}

/* Of that GPU set, and of the profile. */
static struct tccl_table *read_file(const struct tccl_profile *profile, const char *path,
                                    uint32_t gpus, struct tccl_error *err)
{
    cleanup_table struct tccl_table *table = NULL;
    if (tccl_table_read(path, &profile->machine, &table, err) != 0)
        return NULL;
    if (table->gpus != gpus)
        return tccl_fail_null(err, "%s: is of another GPU set (mask %08" PRIx32 ")", path,
                              table->gpus);
    if (strcmp(table->source, profile->from.source) != 0)
        return tccl_fail_null(err, "%s: comes from \"%s\", the profile from \"%s\"", path,
                              table->source, profile->from.source);
    return tccl_steal(table);
}

uint32_t tccl_profile_first(const struct tccl_profile *profile, uint32_t gpus)
{
    struct tccl_exchange move;
    return tccl_alike_first(&profile->from.alike, gpus, &move);
}

/* Where the chains of a set are: in its own file, or in that of its first one, with the move from
 * there. */
struct place {
    struct tccl_stamp stamp;
    uint32_t first;
    struct tccl_exchange move;
    char path[PATH_MAX];
};

/* A run of tccl-profile looks for the own ones. */
static void find_file(const struct tccl_profile *profile, uint32_t gpus, struct place *place)
{
    tccl_table_path(profile->folder, gpus, place->path);
    place->stamp = tccl_stamp_take(place->path);
    place->first = gpus;
    if (tccl_stamp_exists(&place->stamp) || profile->log)
        return;
    place->first = tccl_alike_first(&profile->from.alike, gpus, &place->move);
    tccl_table_path(profile->folder, place->first, place->path);
    if (place->first != gpus)
        place->stamp = tccl_stamp_take(place->path);
}

static struct tccl_table *read_place(const struct tccl_profile *profile, uint32_t gpus,
                                     const struct place *place, struct tccl_error *err)
{
    char text[128];
    errno = EINVAL;
    if (check_gpus(profile, gpus, err) != 0)
        return NULL;
    if (!tccl_stamp_exists(&place->stamp)) {
        tccl_numberset_format(gpus, text, sizeof(text));
        tccl_fail_as(err, TCCL_REASON_NO_PROFILE,
                     "no chains for GPUs %s: run tccl-profile run --gpus %s", text, text);
        errno = ENOENT;
        return NULL;
    }
    struct tccl_table *table = read_file(profile, place->path, place->first, err);
    if (table && place->first != gpus) {
        /* What sets that are alike may differ by counts as noise. */
        struct tccl_table *moved = tccl_alike_table(table, &profile->machine, &place->move, err);
        tccl_table_free(table);
        table = moved;
        if (table)
            table->noise = fmax(table->noise, profile->from.alike.noise);
    }
    errno = EINVAL;
    return table;
}

struct tccl_table *tccl_profile_read_table(const struct tccl_profile *profile, uint32_t gpus,
                                           struct tccl_error *err)
{
    struct place place;
    find_file(profile, gpus, &place);
    return read_place(profile, gpus, &place, err);
}

const struct tccl_table *tccl_profile_table(struct tccl_profile *profile, uint32_t gpus,
                                            struct tccl_error *err)
{
    struct place place;
    find_file(profile, gpus, &place);
    int known = find(profile, gpus);
    if (known >= 0 && tccl_stamp_equal(&place.stamp, &profile->loaded[known].stamp)) {
        profile->loaded[known].used = ++profile->calls;
        return profile->loaded[known].table;
    }
    if (known >= 0)
        drop(profile, known);
    struct tccl_table *table = read_place(profile, gpus, &place, err);
    if (!table)
        return NULL;
    make_room(profile, tccl_table_bytes(table));
    profile->loaded[profile->n_loaded++] = (struct tccl_loaded){.table = table,
                                                                .stamp = place.stamp,
                                                                .bytes = tccl_table_bytes(table),
                                                                .used = ++profile->calls};
    return table;
}

static bool moved(const struct tccl_profile *profile, enum tccl_profile_file file,
                  const struct tccl_stamp *then)
{
    struct tccl_stamp now = tccl_profile_stamp(profile->folder, file);
    return !tccl_stamp_equal(&now, then);
}

bool tccl_profile_changed(const struct tccl_profile *profile)
{
    return moved(profile, CHAINS, &profile->chains) || moved(profile, ABOUT, &profile->about) ||
           moved(profile, MACHINE, &profile->description);
}

bool tccl_profile_table_changed(const struct tccl_profile *profile, uint32_t gpus)
{
    struct place now;
    int known = find(profile, gpus);
    find_file(profile, gpus, &now);
    return known >= 0 && !tccl_stamp_equal(&now.stamp, &profile->loaded[known].stamp);
}

/* "0000000f.chains" -> 0xf; 0: not the name of a chain table. */
static uint32_t mask_in_name(const char *name)
{
    if (strspn(name, "0123456789abcdef") != 8 || strcmp(name + 8, ".chains") != 0)
        return 0;
    return (uint32_t)strtoul(name, NULL, 16);
}

static int is_table(const struct dirent *entry)
{
    return mask_in_name(entry->d_name) != 0;
}

int tccl_profile_tables(const struct tccl_profile *profile, uint32_t **masks,
                        struct tccl_error *err)
{
    struct dirent **names = NULL;
    char path[PATH_MAX];
    *masks = NULL;
    tccl_profile_path(profile->folder, CHAINS, path);
    int count = scandir(path, &names, is_table, alphasort);
    if (count < 0)
        return errno == ENOENT ? 0 : tccl_fail(err, "%s: %s", path, strerror(errno));
    *masks = calloc((size_t)count + 1, sizeof(**masks));
    for (int i = 0; i < count; i++) {
        if (*masks)
            (*masks)[i] = mask_in_name(names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return *masks ? count : tccl_fail(err, "out of memory");
}
