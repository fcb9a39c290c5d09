/* old-store.h: the store as the first version made it, and three records of it, as SQL. */
#ifndef TCCL_TEST_OLD_STORE_H
#define TCCL_TEST_OLD_STORE_H

static const char store_version_1[] =
    "PRAGMA journal_mode = WAL;"
    "CREATE TABLE records ("
    " id INTEGER PRIMARY KEY,"
    " cluster TEXT NOT NULL, job INTEGER NOT NULL, het_job INTEGER NOT NULL,"
    " het_offset INTEGER NOT NULL, step INTEGER NOT NULL, restart INTEGER NOT NULL,"
    " run INTEGER NOT NULL,"
    " uid INTEGER NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL, partition TEXT NOT NULL,"
    " job_name TEXT NOT NULL,"
    " nodes TEXT NOT NULL, first_node TEXT NOT NULL, n_nodes INTEGER NOT NULL,"
    " gpus INTEGER NOT NULL,"
    " mode TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,"
    " gbps REAL NOT NULL, baseline_gbps REAL NOT NULL, ratio REAL NOT NULL,"
    " bound_gbps REAL NOT NULL, solve_us INTEGER NOT NULL, ring TEXT NOT NULL,"
    " source TEXT NOT NULL, start INTEGER NOT NULL, reporter INTEGER NOT NULL,"
    " UNIQUE (job, step, het_job, het_offset, restart, run, cluster));"
    "CREATE INDEX records_by_start ON records (start);"
    "CREATE INDEX records_by_user ON records (uid, start);"
    "CREATE INDEX records_by_het_job ON records (het_job, step);"
    "PRAGMA application_id = 1952670572; PRAGMA user_version = 1;";

static const char old_rows[] =
    "INSERT INTO records (cluster, job, het_job, het_offset, step, restart, run, uid, user,"
    " account, partition, job_name, nodes, first_node, n_nodes, gpus, mode, state, reason,"
    " gbps, baseline_gbps, ratio, bound_gbps, solve_us, ring, source, start, reporter)"
    " VALUES ('c', 1, 0, 0, 0, 0, 0, 1000, 'u', 'a', 'p', 'j', 'n[1-2]', 'n1', 2, 8, 'on',"
    " 'applied', '', 20, 10, 2, 0, 1500, 'r', 'model', 5000, 0),"
    " ('c', 2, 0, 0, 0, 0, 0, 1000, 'u', 'a', 'p', 'j', 'n[1-2]', 'n1', 2, 8, 'on',"
    " 'fallback', 'n2: no GPU in this step', 0, 0, 0, 0, 0, '', '', 5001, 0),"
    " ('d/1', 3, 0, 0, 4294967291, 0, 1700000000000, 1001, 'v', 'b', 'q', 'k', 'n3', 'n3',"
    " 1, 4, 'on', 'applied', '', 30, 20, 1.5, 0, 100, '', 'model', 5002, 0)";

#endif
