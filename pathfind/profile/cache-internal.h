/* cache-internal.h: what the files of the profile cache share. Formats: pathfind/profile/README.md.
 */
#pragma once

#include <limits.h>

#include "base/fileio.h"
#include "profile/cache.h"
#include "profile/stamp.h"
#include "search/alike.h"
#include "search/setlog.h"

enum {
    PROFILE_FORMAT = 1,
    PROFILE_BYTES = 32 << 10,
    MACHINE_BYTES = 256 << 10,
    MODEL_BYTES = 4 << 20,
    FOLDER_MAX = PATH_MAX - 64, /* room for the names of the files in it */
    TABLES_BYTES = 4 << 20,     /* tables kept in memory */
    TABLES_COUNT = 256,
};

/* What profile.json says. */
struct tccl_provenance {
    char machine[TCCL_HASH_HEX];
    char source[TCCL_NAME];
    char model[TCCL_JSON_HASH]; /* hash of the model's JSON; "" without a model */
    char conditions[TCCL_CONDITIONS];
    struct tccl_system system;       /* under which it was last measured */
    struct tccl_trained_links links; /* likewise */
    struct tccl_alike alike;         /* sets that have their tables from others */
};

struct tccl_loaded {
    struct tccl_table *table;
    struct tccl_stamp stamp;
    size_t bytes;
    unsigned long used; /* when last asked for, in calls */
};

struct tccl_profile {
    char folder[FOLDER_MAX];
    struct tccl_provenance from;
    struct tccl_machine machine;
    struct tccl_model *model;
    struct tccl_stamp about, description, chains; /* profile.json, machine.json, chains/ */
    struct tccl_loaded loaded[TABLES_COUNT];
    int n_loaded;
    unsigned long calls;
    struct tccl_setlog *log;    /* NULL: not open for writing */
    struct tccl_setlog *joints; /* the same, of what is measured together; opened when needed */
    struct tccl_together *together;
    struct tccl_stamp together_stamp; /* of the file that was read */
};

enum tccl_profile_file { ABOUT, MACHINE, MODEL, SETS, CHAINS, TOGETHER };

/* Path of a file of the profile. */
void tccl_profile_path(const char *folder, enum tccl_profile_file file, char path[static PATH_MAX]);
struct tccl_stamp tccl_profile_stamp(const char *folder, enum tccl_profile_file file);
void tccl_table_path(const char *folder, uint32_t gpus, char path[static PATH_MAX]);

/* Reads profile.json, of this machine; NULL: what is alike there is left out. Returns 0, or -1 with
 * err, errno ENOENT where there is none. */
int tccl_provenance_read(const char *folder, const struct tccl_machine *machine,
                         struct tccl_provenance *from, struct tccl_error *err);
int tccl_provenance_write(const char *folder, const struct tccl_provenance *from,
                          struct tccl_error *err);

void tccl_profile_drop_tables(struct tccl_profile *profile);
