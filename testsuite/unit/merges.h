/* merges.h: classes of nodes with two GPUs, and ranges of them, as they come from other nodes. */
#pragma once

#include "check.h"
#include "tccld/join/merge.h"

OWNED(merge, struct merge, merge_free)
OWNED(shared_class, struct shared_class, shared_class_drop)

static double default_gbps; /* NCCL's own choice; 0: unknown */

/* Two NICs; the chain that enters by NIC e and leaves by NIC x has its own bandwidth, another one
 * for each number. */
static struct shared_class *make_class(int number, const char *source)
{
    struct tccl_seen seen[5] = {0};
    struct tccl_node_class class = {.gpus = 3, .n_gpus = 2, .n_nics = 2, .seen = seen, .n_seen = 5};
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        class.baselines[i].gbps[0] = default_gbps;
        class.baselines[i].share[1] = class.baselines[i].share[0] = 1;
        class.baselines[i].n_chains = default_gbps > 0;
        class.baselines[i].bounces[0] = 2; /* as the chains below */
    }
    class.noise = 0.03;
    snprintf(class.machine, sizeof(class.machine), "%032x", number);
    strcpy(class.source, source);
    for (int i = 0; i < 4; i++)
        seen[i] = (struct tccl_seen){
            .gbps = 1 + (number * 7 + i * 5) % 9,
            .alone = 10,
            .share = 1,
            .bound = 10,
            .set = {1,
                    {{.n_gpus = 2,
                      .gpus = {0, 1},
                      .entry = {.nic = (uint8_t)(i / 2), .via = {.kind = TCCL_MEMORY}},
                      .exit = {.nic = (uint8_t)(i % 2), .via = {.kind = TCCL_MEMORY}}}}}};
    for (int i = 0; i < 2; i++) {
        snprintf(class.nics[i].name, sizeof(class.nics[i].name), "mlx5_%d", i);
        strcpy(class.nics[i].fabric, "ib");
        class.nics[i].gbps = 25;
    }
    cleanup_json json_t *json = tccl_node_class_to_json(&class);
    struct tccl_node_class *read = tccl_node_class_from_json(json, ERR);
    CHECK_STR(check_err.text, "");
    return shared_class_new(read);
}
