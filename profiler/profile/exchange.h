/* exchange.h: a whole profile as one JSON document, to be carried to another site or kept:
 *   {"format":"tccl-profile","version":1,"profile":{…},"machine":{…},"model":{…},"sets":[…],
 *    "tables":[…]}
 * profile, machine and model are the files of these names; sets the lines of sets.jsonl, in order;
 * tables the chains, as tccl_table_to_json has them. model: only where the source is one. */
#ifndef TCCL_EXCHANGE_H
#define TCCL_EXCHANGE_H

#include "profile/cache.h"

enum { TCCL_EXCHANGE_BYTES = 512 << 20 };

/* Writes the document. The same profile gives the same text. *dropped: a torn last line of the log
 * was left out. Returns 0, or -1 with err. */
int tccl_exchange_write(struct tccl_profile *profile, FILE *out, int *dropped,
                        struct tccl_error *err);

struct tccl_exchanged {
    char id[TCCL_HASH_HEX];
    char source[TCCL_NAME];
    long sets;
    int tables;
    bool replaced;
};

/* Makes the files of the profile in a folder that is there and empty, and checks all of them as
 * their readers do: identity, model, every set and every chain possible on the machine. What is
 * there after a failure is the caller's to remove. Returns 0, or -1 with err. */
int tccl_exchange_unpack(const char *text, size_t size, const char *folder,
                         struct tccl_exchanged *made, struct tccl_error *err);

/* Puts the document into the cache, in one step at the end: before, and after a failure, the cache
 * is as it was. A profile of the machine that is there is refused; with force it is replaced,
 * unless something is being measured into it. Returns 0, or -1 with err. */
int tccl_exchange_import(const char *text, size_t size, const char *cache_dir, bool force,
                         struct tccl_exchanged *made, struct tccl_error *err);

/* Reads a document (path "-": standard input) of at most TCCL_EXCHANGE_BYTES. *text is the
 * caller's. Returns 0, or -1 with err. */
int tccl_exchange_load(const char *path, char **text, size_t *size, struct tccl_error *err);

/* Removes a folder that unpack filled. */
void tccl_exchange_remove(const char *folder);

#endif
