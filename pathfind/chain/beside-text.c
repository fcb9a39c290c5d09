/* beside-text.c: the text of the steps that run beside one on its node. */
#include "chain/beside-text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { PART = TCCL_RINGS_TEXT + 64, MOST_NODES = 16384 };

char *tccl_beside_format(const struct tccl_neighbour *list, int n)
{
    char *text = calloc(1, TCCL_BESIDE_TEXT + 1);
    size_t used = 0;
    for (int i = 0; text && i < n; i++) {
        char rings[TCCL_RINGS_TEXT], part[PART], node[16] = "";
        tccl_named_rings_format(&list[i].rings, rings);
        if (list[i].node > 0)
            snprintf(node, sizeof(node), "@%d ", list[i].node);
        size_t length =
            (size_t)snprintf(part, sizeof(part), "%s%s%.2f/%.2f %s: %s", used ? "; " : "", node,
                             list[i].gbps, list[i].alone, list[i].nccl ? "nccl" : "ring", rings);
        if (length >= sizeof(part) || used + length > TCCL_BESIDE_TEXT)
            break;
        memcpy(text + used, part, length + 1);
        used += length;
    }
    return text;
}

static bool in_bounds(double gbps)
{
    return gbps >= 0 && gbps <= 1e9;
}

static int parse_one(const char *text, struct tccl_neighbour *neighbour, struct tccl_error *err)
{
    char who[5];
    int chains = 0, after = 0;
    neighbour->node = 0;
    if (*text == '@' && (sscanf(text, "@%5d %n", &neighbour->node, &after) != 1 || after == 0 ||
                         neighbour->node < 1 || neighbour->node >= MOST_NODES))
        return tccl_fail(err, "no node: %.60s", text);
    text += after;
    if (sscanf(text, "%lf/%lf %4[a-z]: %n", &neighbour->gbps, &neighbour->alone, who, &chains) !=
            3 ||
        chains == 0 || !in_bounds(neighbour->gbps) || !in_bounds(neighbour->alone))
        return tccl_fail(err, "not GB/s, GB/s alone and chains: %.60s", text);
    neighbour->nccl = strcmp(who, "nccl") == 0;
    if (!neighbour->nccl && strcmp(who, "ring") != 0)
        return tccl_fail(err, "%s: neither ring nor nccl", who);
    return tccl_named_rings_parse(text + chains, &neighbour->rings, err);
}

int tccl_beside_parse(const char *text, struct tccl_neighbour list[static TCCL_MAX_BESIDE],
                      struct tccl_error *err)
{
    int n = 0;
    while (*text) {
        size_t length = strcspn(text, ";");
        cleanup_free char *one = strndup(text, length);
        if (!one)
            return tccl_fail(err, "out of memory");
        if (n == TCCL_MAX_BESIDE)
            return tccl_fail(err, "more than %d steps", TCCL_MAX_BESIDE);
        if (parse_one(one, &list[n], err) != 0)
            return -1;
        n++;
        text += length + (text[length] == ';');
        text += strspn(text, " ");
    }
    return n;
}
