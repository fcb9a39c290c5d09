/* slurm-node.c: nodes of a cloud, and dynamic ones, get their addresses when they start: slurmctld
 * has heard them from slurmd, DNS may have never. SLURM_NODE_ALIASES of a step's environment is not
 * looked at: it is its user's to write, and gone from Slurm 23.11 on. */
#include "tccld/net/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "client/hostlist.h"

/* Copies the word behind " NAME=". Returns 0, or -1: there is none, or it is too long. */
static int find_word(const char *text, const char *name, char *word, size_t size)
{
    const char *at = strstr(text, name);
    size_t length = at ? strcspn(at + strlen(name), " \n") : 0;
    if (length == 0 || length >= size)
        return -1;
    memcpy(word, at + strlen(name), length);
    word[length] = '\0';
    return 0;
}

int slurm_node_read(const char *text, const char *node, struct slurm_node *found)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.:_-%";
    char name[TCCL_CONF_NAME], state[256];
    *found = (struct slurm_node){.own = false};
    if (strncmp(text, "NodeName=", 9) != 0 ||
        find_word(text, "NodeName=", name, sizeof(name)) != 0 || strcmp(name, node) != 0 ||
        find_word(text, " NodeAddr=", found->address, sizeof(found->address)) != 0 ||
        find_word(text, " State=", state, sizeof(state)) != 0)
        return -1;
    if (strspn(found->address, allowed) != strlen(found->address))
        return -1;
    found->own =
        strstr(state, "CLOUD") || strstr(state, "DYNAMIC") || strcmp(found->address, node) != 0;
    return 0;
}

int slurm_node_ask(const char *squeue, const char *node, struct slurm_node *found)
{
    static const char *const without[] = {"SCONTROL_", "SLURM_CLUSTERS=", NULL};
    const char *slash = strrchr(squeue, '/');
    char program[PATH_MAX + 16];
    snprintf(program, sizeof(program), "%.*sscontrol", slash ? (int)(slash + 1 - squeue) : 0,
             squeue);
    const char *const argv[] = {program, "--oneliner", "show", "node", node, NULL};
    if (!*squeue || !tccl_host_valid(node))
        return -1;
    cleanup_free struct tccl_command_output *output = calloc(1, sizeof(*output));
    if (!output || tccl_command_run(argv, without, tccl_now_ms() + SLURM_NODE_MS, output) != 0)
        return -1;
    return slurm_node_read(output->out, node, found);
}
