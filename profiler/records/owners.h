/* owners.h: whose job an id is, for steps that name another job as their array or as the leader of
 * their heterogeneous job. Private to this folder. */
#pragma once

#include <sqlite3.h>

struct tccl_owners;

/* What is known of owners in a store; nothing yet. NULL without memory. The caller frees it before
 * the database is closed. */
struct tccl_owners *tccl_owners_new(sqlite3 *db);
void tccl_owners_free(struct tccl_owners *owners); /* NULL is fine */

/* Forgets all: records may have been added. Before each question. */
void tccl_owners_forget(struct tccl_owners *owners);

/* Registers the SQL function tccl_anothers(id, cluster, uid, start): does the job of that id belong
 * to another user, within 30 days of that time? Each id is looked up once, by an index. owners must
 * live as long as the database. Returns SQLite's code. */
int tccl_owners_function(struct tccl_owners *owners);
