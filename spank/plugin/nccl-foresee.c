/* nccl-foresee.c: paths that a user names are followed as that user only, and where they hang, so
 * does the program itself, but not slurmstepd. The child is one of a process with threads: it makes
 * system calls, and allocates nothing. */
#include "plugin/plugin.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/utf8.h"
#include "chain/nccl-version.h"

_Static_assert(sizeof(struct nccl_found) <= PIPE_BUF, "it is written at once");

/* glibc's functions would have other threads do the same, which a child has not. */
static int become_user(const struct nccl_task *task)
{
    if (syscall(SYS_setgroups, (size_t)task->n_groups, task->groups) != 0 ||
        syscall(SYS_setresgid, task->gid, task->gid, task->gid) != 0 ||
        syscall(SYS_setresuid, task->uid, task->uid, task->uid) != 0)
        return -1;
    return prctl(PR_SET_PDEATHSIG, SIGKILL); /* it was lost with the uid */
}

static void find(const void *what, void *word)
{
    const struct nccl_task *task = what;
    struct nccl_look look;
    if (task->uid != geteuid() && become_user(task) != 0)
        return;
    nccl_look(task->program, task->env, &look);
    const struct nccl_found *found = nccl_look_unknown(&look);
    if (found)
        *(struct nccl_found *)word = *found;
}

void nccl_foresee(const struct nccl_task *task, int ms, char *text, size_t size)
{
    struct nccl_found found = {0};
    char not_known[TCCL_NCCL_TEXT];
    text[0] = '\0';
    if (!task->program || child_word(find, task, &found, sizeof(found), ms, NULL) != 0 ||
        !found.version)
        return;
    tccl_nccl_not_known(found.version, not_known);
    snprintf(text, size, "%s: %.350s: update slurm-tccl", not_known, found.path);
    tccl_utf8_clean(text);
}
