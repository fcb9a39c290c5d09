/* users.h: users as tccl.conf names them. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "client/conf.h"

enum { TCCL_ADMINS_MAX = 64 };

struct tccl_users {
    uid_t tccld; /* TccldUser, on this node */
    uid_t munge; /* MungeUser: who makes and reads the credentials of tccld, on all nodes */
    uid_t slurm; /* SlurmUser; (uid_t)-1: no such user here */
    uid_t admins[TCCL_ADMINS_MAX];
    int n_admins;
};

/* The uid of a user's name, or of a uid written in digits. what: the key, for err. Returns 0, or -1
 * with err: there is no such user here. */
int tccl_user_find(const char *what, const char *name, uid_t *uid, struct tccl_error *err);

/* The uid of TccldUser. Where tccl.conf doesn't say and there is no user tccl here, root's. Returns
 * as above. */
int tccl_user_tccld(const struct tccl_conf *conf, uid_t *uid, struct tccl_error *err);

/* Looks up TccldUser, MungeUser, SlurmUser and Admins. Returns 0, or -1 with err, which names file
 * and line: one of them (but SlurmUser) is not known here, or there are too many. */
int tccl_users_find(const struct tccl_conf *conf, struct tccl_users *users, struct tccl_error *err);

/* ---- trust: whom a program takes the other end of a connection for: users whom munge names. */

struct tccl_trust {
    bool anybody;    /* nobody has to prove anything, and the rest doesn't count */
    char munge[108]; /* munged's socket; "": munge's own default */
    uid_t users[3];
    int n_users;
};

/* Trusts root, the caller's own user and MungeUser (a name, or a uid in digits). Returns 0, or -1
 * with err: there is no such user here, or the socket's path is too long. */
int tccl_trust_fill(struct tccl_trust *trust, const char *munge, const char *munge_user,
                    struct tccl_error *err);

bool tccl_trust_has(const struct tccl_trust *trust, uid_t uid);

/* ---- user-folders: where a user keeps what is theirs alone, by the XDG base directory
 * specification: profiles of their machines, and records of what they ran (tccl-run). */

/* $XDG_CACHE_HOME/tccl, else ~/.cache/tccl; $XDG_STATE_HOME/tccl, else ~/.local/state/tccl. Values
 * that are no absolute paths are passed over. Both return 0, or -1: the user has no home, or the
 * path is too long. */
int tccl_user_cache(char path[static PATH_MAX]);
int tccl_user_state(char path[static PATH_MAX]);

/* May this user make files there, or make the folder? */
bool tccl_user_may_write(const char *path);
