/* serve-panels.c: the chains of a step's ring, each over the picture of its nodes. */
#include "acct/serve-panels.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/chain-text.h"
#include "client/hostlist.h"

enum { NAMES_SHOWN = 64 };

/* Nodes with the same chain. */
struct group {
    char chain[TCCL_CHAIN_TEXT];
    const char **names; /* borrowed from the list of the ring's names */
    size_t count;
};

struct groups {
    json_t *names;     /* keeps the texts */
    const char *alone; /* the node of a ring that names none */
    struct group groups[SERVE_PANELS];
    int count;
};

/* A chain on a kind of machine. */
struct match {
    int kind; /* -1: none */
    const char *how;
    struct tccl_chain chain;
};

static int take_node(void *context, int index, const char *name, const char *chain,
                     struct tccl_error *err)
{
    struct groups *groups = context;
    (void)index;
    int i = 0;
    while (i < groups->count && strcmp(groups->groups[i].chain, chain) != 0)
        i++;
    if (i == SERVE_PANELS)
        return 0;
    struct group *group = &groups->groups[i];
    if (i == groups->count) {
        if (strlen(chain) >= sizeof(group->chain))
            return 0;
        snprintf(group->chain, sizeof(group->chain), "%s", chain);
        group->names = calloc(NAMES_SHOWN, sizeof(*group->names));
        if (!group->names)
            return tccl_fail(err, "out of memory");
        groups->count++;
    }
    if (group->count < NAMES_SHOWN) {
        json_t *text = json_string(*name ? name : groups->alone);
        json_array_append_new(groups->names, text);
        group->names[group->count] = text ? json_string_value(text) : "?";
    }
    group->count++;
    return 0;
}

static bool same_chain(const struct tccl_chain *a, const struct tccl_chain *b,
                       const struct tccl_machine *machine)
{
    char text_a[TCCL_CHAIN_TEXT], text_b[TCCL_CHAIN_TEXT];
    if (a->n_gpus != b->n_gpus || a->closed != b->closed || a->n_gpus == 0)
        return false;
    tccl_chain_format(a, machine, text_a);
    tccl_chain_format(b, machine, text_b);
    return strcmp(text_a, text_b) == 0;
}

static uint32_t gpus_of(const struct tccl_chain *chain)
{
    uint32_t gpus = 0;
    for (int i = 0; i < chain->n_gpus; i++)
        gpus |= 1u << chain->gpus[i];
    return gpus;
}

/* Is it one of the chains that the profile would answer with? */
static bool has_chain(struct tccl_profile *profile, const struct tccl_chain *chain)
{
    const struct tccl_machine *machine = tccl_profile_machine(profile);
    const struct tccl_table *table = tccl_profile_table(profile, gpus_of(chain), NULL);
    if (!table)
        return false;
    if (chain->closed)
        return same_chain(&table->ring.chain, chain, machine);
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        if (same_chain(&table->pairs[i].chain, chain, machine))
            return true;
    return false;
}

static bool fits(const struct serve_kinds *kinds, int kind, const struct group *group,
                 struct tccl_chain *chain)
{
    return tccl_chain_parse(group->chain, tccl_profile_machine(kinds->profiles[kind]), chain,
                            NULL) == 0;
}

static bool runs_here(const struct tccl_conf *conf, const struct group *group)
{
    for (size_t i = 0; i < group->count && i < NAMES_SHOWN; i++)
        if (strcmp(group->names[i], conf->node) == 0)
            return true;
    return false;
}

/* The kind to draw the group's chain over. That a chain is possible on a kind says nothing: most
 * are on most. */
static struct match find_kind(const struct tccl_conf *conf, const struct serve_kinds *kinds,
                              const struct group *group)
{
    struct match match = {.kind = -1};
    struct tccl_chain chain;
    int having = 0;
    if (kinds->own >= 0 && runs_here(conf, group) && fits(kinds, kinds->own, group, &chain))
        return (struct match){kinds->own, "this node's kind", chain};
    for (int i = 0; i < kinds->count; i++)
        if (fits(kinds, i, group, &chain) && has_chain(kinds->profiles[i], &chain) && ++having == 1)
            match = (struct match){i, NULL, chain};
    match.how = having == 1 ? "the kind whose profile has this chain"
                            : "one of several kinds whose profiles have this chain";
    return match;
}

static json_t *panel_of(const struct tccl_conf *conf, const struct serve_kinds *kinds,
                        const struct group *group)
{
    size_t shown = group->count < NAMES_SHOWN ? group->count : NAMES_SHOWN;
    cleanup_free char *names = tccl_hosts_fold(group->names, shown);
    json_t *panel = json_pack("{s:s, s:I, s:s}", "nodes", names ? names : "", "count",
                              (json_int_t)group->count, "chain", group->chain);
    struct match match = find_kind(conf, kinds, group);
    if (!panel || match.kind < 0)
        return panel;
    const struct tccl_machine *machine = tccl_profile_machine(kinds->profiles[match.kind]);
    json_object_set_new(panel, "kind", json_string(machine->name));
    json_object_set_new(panel, "how", json_string(match.how));
    json_object_set_new(panel, "svg", serve_picture(machine, gpus_of(&match.chain), &match.chain));
    return panel;
}

json_t *serve_panels(const struct tccl_conf *conf, const struct serve_kinds *kinds,
                     const json_t *record)
{
    const char *ring = json_string_value(json_object_get(record, "ring"));
    json_t *panels = json_array();
    const char *first = json_string_value(json_object_get(record, "first_node"));
    struct groups groups = {.names = json_array(), .alone = first ? first : ""};
    if (ring && *ring && tccl_ring_split(ring, take_node, &groups, NULL) >= 0)
        for (int i = 0; i < groups.count; i++)
            json_array_append_new(panels, panel_of(conf, kinds, &groups.groups[i]));
    for (int i = 0; i < groups.count; i++)
        free(groups.groups[i].names);
    json_decref(groups.names);
    return panels;
}
