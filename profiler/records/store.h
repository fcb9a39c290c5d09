/* store.h: the SQLite file behind records.h, and what is asked of it. Private to this folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <sqlite3.h>

#include "base/error.h"
#include "records/records.h"

/* ---- facts: the members of a record that filters and summaries look at: columns of the store, all
 * in its index records_facts, so that a million records are read in half a second. */

/* In the order of the index, which begins with start and ends with what filters have lists of: of a
 * row SQLite reads no further than the last column that is asked for. At TCCL_FIGURES is looked
 * where a record has the first one of them. LISTED: it is among those lists. To look at one more
 * column, add its name: a store that is opened then makes the index anew. */
/* clang-format off */
#define TCCL_FACTS(WHOLE, REAL, TEXT)                                                              \
    WHOLE(id) TEXT(state) TEXT(built) TEXT(reason_class)                                           \
    WHOLE(n_nodes) WHOLE(gpus) WHOLE(neighbours)                                                   \
    REAL(gbps) REAL(ratio) REAL(alone_gbps) REAL(placed_gbps) REAL(baseline_gbps) WHOLE(solve_us)  \
    WHOLE(step) TEXT(reason) TEXT(built_reason) TEXT(built_class) TEXT(nodes) TEXT(node_class) WHOLE(uid)  \
    TEXT(reason_node) TEXT(built_node)
#define TCCL_FIGURES(WHOLE, REAL, TEXT, LISTED)                                                    \
    REAL(achieved_gbps) WHOLE(job) WHOLE(later) LISTED(account) TEXT(achieved_with)                             \
    WHOLE(achieved_from) REAL(nccl_gbps) WHOLE(sent_bytes) REAL(sent_share)
/* clang-format on */

/* What is shown of a record: the words of base/state.h that people read. Of a planned ring that was
 * built differently, or in part, the reason is that; one that NCCL's version leaves alone has
 * failed, and a step that failed for that and then had another NCCL is planned; a job script (or an
 * interactive step) that used no GPUs together is left, and not one whose ring was not built. Texts
 * are borrowed. */
struct tccl_facts_shown {
    const char *state, *reason, *node, *built; /* node: of the reason, "": none */
    enum tccl_reason cause;
};

/* As they are stored; texts are borrowed from the row, never NULL in what was read. */
struct tccl_facts {
    int64_t start;
#define TCCL_FACT_WHOLE(member) int64_t member;
#define TCCL_FACT_REAL(member) double member;
#define TCCL_FACT_TEXT(member) const char *member;
    TCCL_FACTS(TCCL_FACT_WHOLE, TCCL_FACT_REAL, TCCL_FACT_TEXT)
    TCCL_FIGURES(TCCL_FACT_WHOLE, TCCL_FACT_REAL, TCCL_FACT_TEXT, TCCL_FACT_TEXT)
    struct tccl_facts_shown shown; /* where TCCL_LOOK_SHOWN was read */
};

/* By those of TCCL_LOOK_SHOWN. */
struct tccl_facts_shown tccl_facts_shown(const struct tccl_facts *facts);

/* Which of them are read; start always is. */
enum {
#define TCCL_FACT_PLACE(member) TCCL_FACT_##member,
    TCCL_FACTS(TCCL_FACT_PLACE, TCCL_FACT_PLACE, TCCL_FACT_PLACE)
        TCCL_FIGURES(TCCL_FACT_PLACE, TCCL_FACT_PLACE, TCCL_FACT_PLACE, TCCL_FACT_PLACE)
};
#define TCCL_LOOK(member) (1u << TCCL_FACT_##member)
enum {
#define TCCL_FACT_LOOK(member) +TCCL_LOOK(member)
    TCCL_LOOK_FIGURES = TCCL_FIGURES(TCCL_FACT_LOOK, TCCL_FACT_LOOK, TCCL_FACT_LOOK, TCCL_FACT_LOOK)
};
#define TCCL_LOOK_SHOWN                                                                            \
    (TCCL_LOOK(state) | TCCL_LOOK(reason) | TCCL_LOOK(reason_class) | TCCL_LOOK(built) |           \
     TCCL_LOOK(built_reason) | TCCL_LOOK(built_class) | TCCL_LOOK(step) | TCCL_LOOK(reason_node) | \
     TCCL_LOOK(built_node))

/* The same text? Most differ in their first characters, so that no function is called. */
static inline bool tccl_is(const char *text, const char *word)
{
    return *text == *word && strcmp(text, word) == 0;
}

/* Reads start and those from the first of a row's values, in the order of the index. Returns
 * how many. */
int tccl_facts_read(sqlite3_value **values, unsigned looks, struct tccl_facts *facts);

/* ---- owners: whose job an id is, for steps that name another job as their array or as the leader
 * of their heterogeneous job. */

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

/* ---- store: the SQLite file behind records.h. */

struct tccl_records {
    sqlite3 *db;
    sqlite3_stmt *put, *put_build, *renew, *one;
    char *path;
    int64_t arrived; /* of the record that is being put, if it is misdated; else 0 */
    bool together;   /* between tccl_records_begin and tccl_records_commit */
    bool damaged;    /* the file is no database, or no sound one */
    bool broken;     /* that, or it can't be used any more, as it is open: moved, removed, an error
                      * of the disk */
    struct tccl_owners *owners;
    struct tccl_pass *pass; /* the one under way (filter.c) */
    int most_ms;            /* of a question (tccl_records_bound) */
    int64_t until_ms;
    const atomic_bool *stop;
};

static inline void tccl_cleanup_statement(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}
#define cleanup_stmt __attribute__((cleanup(tccl_cleanup_statement)))

/* Fails with SQLite's error message, and notes whether the file is damaged. Returns -1. */
int tccl_store_fail(struct tccl_records *records, struct tccl_error *err);

/* Runs statements without results. Returns 0, or -1 with err. */
int tccl_store_execute(struct tccl_records *records, const char *sql, struct tccl_error *err);

/* Runs a statement that returns one number. Returns 0, or -1 with err. */
int tccl_store_number(struct tccl_records *records, const char *sql, int64_t *number,
                      struct tccl_error *err);

/* Prepares a statement, whose text tccl_sql (sql.h) expands first. Returns 0, or -1 with err. */
int tccl_store_prepare(struct tccl_records *records, const char *text, sqlite3_stmt **statement,
                       struct tccl_error *err);

/* Opens a file of other tables than the store's, or makes it; sql: makes the tables where there are
 * none. Returns 0, or -1 with err. *records is to be closed in either case, unless it is NULL. */
int tccl_store_open_plain(const char *path, const char *sql, struct tccl_records **records,
                          struct tccl_error *err);

/* Is this f_type of statfs that of a file system that other machines may write to? */
bool tccl_store_is_remote(long file_system);

/* Instead of tccl_records_commit: undoes everything put since begin. */
void tccl_records_give_up(struct tccl_records *records);

/* A question begins: its time, and what is known of the store. */
void tccl_store_ask(struct tccl_records *records);

/* Is the question's time over, or shall it stop? SQLite looks, too, but not while a row is worked
 * on. Returns 0, or -1 with err. */
int tccl_store_look(const struct tccl_records *records, struct tccl_error *err);

/* ---- sql: SQL about the columns that the table of a step's members (client/step-fields.h) has in
 * records. */

struct tccl_field;

/* Is the member a column of builds: one that is known by confirmations alone? */
bool tccl_sql_of_builds(const struct tccl_field *field);

/* Expands these variables in a text, by the table:
 *   $names       the columns of a record, "job, step, …", but what confirmations say
 *   $all         the same with that
 *   $values      "?1, ?2, …", one for each of $names
 *   $renewed     "job = excluded.job, …", for each of $all
 *   $columns     the definitions of $all, "job INTEGER NOT NULL DEFAULT 0, …"
 *   $key         the columns of the key; those of $names begin with them
 *   $is_key      "job = ?1 AND …", all of the key, bound to the first parameters
 *   $step_start  the text by which builds belong to a row of records (record.h)
 *   $built       the columns of builds that records have, too: what confirmations say
 *   $built_columns, $built_values, $built_renewed   as above, for these
 *   $filters     the columns that filters ask for by lists of texts, each behind ", "
 * Allocated; NULL with err without memory. */
char *tccl_sql(const char *text, struct tccl_error *err);

/* Do these figures replace those of before? What was measured is before what was not, then the
 * ring's own, then what has sent most; of as much the last word counts, which node 0 has chosen. */
#define TCCL_SQL_MORE                                                                              \
    "(excluded.samples > 0, excluded.achieved_with = 'rings', excluded.sent_bytes,"                \
    " excluded.captured) >= (builds.samples > 0, builds.achieved_with = 'rings',"                  \
    " builds.sent_bytes, builds.captured)"

/* The definition of one column: "job INTEGER NOT NULL DEFAULT 0". */
void tccl_sql_column(char *text, size_t size, const struct tccl_field *field);

/* ---- filter: the filter of a query (records.h lists its members). */

/* An entry of jobs; -1: any. Either job or array_job is set. */
struct tccl_wanted_job {
    json_int_t job, step, het_offset, array_job, first, last, raw;
};

/* Lists are borrowed from the filter; NULL: any. */
struct tccl_filter {
    int64_t uid; /* whose records may be seen; -1: everyone's */
    json_int_t start, end, limit, min_nodes, max_nodes;
    bool newest; /* first */
    json_t *users, *states, *nodes, *classes;
    struct tccl_wanted_job *jobs; /* none twice; NULL: any */
    int n_jobs;
    json_t *texts[TCCL_MOST_FIELDS]; /* by the members of the table (client/step-fields.h) */
    bool has_texts;                  /* any of them */
    const json_t *after;             /* [start, id] of the last row of the page before */
    const char **sorted; /* the nodes sorted, none twice, if there are many; else NULL */
    size_t n_sorted;
    unsigned looks; /* at which facts of a row */
};

/* Checks a filter (NULL: all records). Returns 0, or -1 with err. The caller clears it. */
int tccl_filter_read(const json_t *json, int64_t uid, struct tccl_filter *filter,
                     struct tccl_error *err);
void tccl_filter_clear(struct tccl_filter *filter);

/* A statement over the candidate rows in the filter's order, for tccl_filter_row: at most so many.
 * looks, with most 0: over all, for tccl_filter_each. NULL with err; the caller finalizes it. */
struct tccl_records;
sqlite3_stmt *tccl_filter_prepare(struct tccl_records *records, const struct tccl_filter *filter,
                                  unsigned looks, int most, struct tccl_error *err);

/* Reads the statement's current row, valid until its next step: what the filter looks at. Does it
 * match? */
bool tccl_filter_row(const struct tccl_filter *filter, sqlite3_stmt *statement,
                     struct tccl_facts *facts);

/* Calls visit for each matching row in the filter's order, with the facts of looks; of a row
 * without achieved_gbps its figures are 0. It returns 0, or -1 with err, which ends this. As SQLite
 * calls it from within, a row costs two thirds of one that is stepped to. Returns 0, or -1 with
 * err. */
typedef int tccl_filter_visit(void *argument, const struct tccl_facts *facts,
                              struct tccl_error *err);
int tccl_filter_each(struct tccl_records *records, const struct tccl_filter *filter, unsigned looks,
                     tccl_filter_visit *visit, void *argument, struct tccl_error *err);

/* Registers the SQL functions by which that goes. Returns SQLite's code. */
int tccl_filter_functions(struct tccl_records *records);
