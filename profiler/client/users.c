/* users.c: looks up the users named in tccl.conf. */
#include "client/users.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

int tccl_user_find(const char *what, const char *name, uid_t *uid, struct tccl_error *err)
{
    char *end;
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (user) {
        *uid = user->pw_uid;
        return 0;
    }
    int code = errno;
    unsigned long number = strtoul(name, &end, 10);
    if (*name >= '0' && *name <= '9' && *end == '\0' && number < (uid_t)-1) {
        *uid = (uid_t)number;
        return 0;
    }
    return tccl_fail(err, "%s=%s: %s", what, name,
                     code ? strerror(code) : "there is no such user here");
}

static int add_admins(const char *names, struct tccl_users *users, struct tccl_error *err)
{
    cleanup_free char *copy = strdup(names ? names : "");
    char *rest = copy, *name;
    users->n_admins = 0;
    if (!copy)
        return tccl_fail(err, "out of memory for Admins");
    while ((name = strsep(&rest, ",")) != NULL) {
        if (!*name)
            continue;
        if (users->n_admins == TCCL_ADMINS_MAX)
            return tccl_fail(err, "Admins: more than %d names", TCCL_ADMINS_MAX);
        if (tccl_user_find("Admins", name, &users->admins[users->n_admins], err) != 0)
            return -1;
        users->n_admins++;
    }
    return 0;
}

/* Puts the place of the key in front of what is wrong with it. */
static int fail_at(const struct tccl_conf *conf, const char *key, struct tccl_error *err)
{
    int line = tccl_conf_line(conf, key);
    return line ? tccl_fail_in(err, "%s:%d", conf->path, line) : -1;
}

int tccl_user_tccld(const struct tccl_conf *conf, uid_t *uid, struct tccl_error *err)
{
    if (tccl_conf_line(conf, "TccldUser"))
        return tccl_user_find("TccldUser", conf->tccld_user, uid, err);
    if (tccl_user_find("TccldUser", conf->tccld_user, uid, NULL) != 0)
        *uid = 0; /* the default, on a machine without it */
    return 0;
}

int tccl_users_find(const struct tccl_conf *conf, struct tccl_users *users, struct tccl_error *err)
{
    if (tccl_user_tccld(conf, &users->tccld, err) != 0)
        return fail_at(conf, "TccldUser", err);
    if (tccl_user_find("MungeUser", conf->munge_user, &users->munge, err) != 0)
        return fail_at(conf, "MungeUser", err);
    if (tccl_user_find("SlurmUser", conf->slurm_user, &users->slurm, NULL) != 0)
        users->slurm = (uid_t)-1; /* the default, on a machine without it */
    return add_admins(conf->admins, users, err) == 0 ? 0 : fail_at(conf, "Admins", err);
}

/* ---- trust ---- */

int tccl_trust_fill(struct tccl_trust *trust, const char *munge, const char *munge_user,
                    struct tccl_error *err)
{
    *trust = (struct tccl_trust){.users = {0, geteuid()}, .n_users = 3};
    if (snprintf(trust->munge, sizeof(trust->munge), "%s", munge) >= (int)sizeof(trust->munge))
        return tccl_fail(err, "MungeSocket: the path is too long: at most %zu bytes",
                         sizeof(trust->munge) - 1);
    return tccl_user_find("MungeUser", munge_user, &trust->users[2], err);
}

bool tccl_trust_has(const struct tccl_trust *trust, uid_t uid)
{
    for (int i = 0; i < trust->n_users; i++)
        if (trust->users[i] == uid)
            return true;
    return false;
}
