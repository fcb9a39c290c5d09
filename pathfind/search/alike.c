/* alike.c: GPU sets that stand for others, and tables moved from one to another. */
#include "search/alike.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "search/likeness.h"

uint32_t tccl_alike_first(const struct tccl_alike *alike, uint32_t gpus, struct tccl_exchange *move)
{
    *move = tccl_exchange_none();
    for (int i = 0; i < alike->n; i++) {
        const struct tccl_exchange *exchange = &alike->exchanges[i];
        uint32_t image = tccl_exchange_gpus(exchange, gpus);
        if (image >= gpus || !tccl_exchange_in_order(exchange, gpus))
            continue;
        gpus = image;
        *move = tccl_exchange_then(exchange, move); /* an exchange is its own way back */
        i = -1;
    }
    return gpus;
}

/* ---- tables ---- */

static struct tccl_port move_port(struct tccl_port port, const struct tccl_exchange *move)
{
    return (struct tccl_port){move->image[TCCL_NIC][port.nic],
                              tccl_exchange_device(move, port.via)};
}

struct tccl_chain tccl_exchange_chain(const struct tccl_exchange *move,
                                      const struct tccl_chain *chain)
{
    struct tccl_chain out = *chain;
    for (int i = 0; i < chain->n_gpus; i++) {
        out.gpus[i] = move->image[TCCL_GPU][chain->gpus[i]];
        if (chain->edges[i].kind == TCCL_BOUNCE)
            out.edges[i].memory = move->image[TCCL_MEMORY][chain->edges[i].memory];
        if (chain->edges[i].kind == TCCL_BY_NICS) {
            out.edges[i].from = move_port(chain->edges[i].from, move);
            out.edges[i].to = move_port(chain->edges[i].to, move);
        }
    }
    if (chain->n_gpus > 0 && !chain->closed) {
        out.entry = move_port(chain->entry, move);
        out.exit = move_port(chain->exit, move);
    }
    return out;
}

void tccl_exchange_rings(const struct tccl_exchange *move, struct tccl_ring_set *set)
{
    for (int i = 0; i < set->n; i++)
        set->rings[i] = tccl_exchange_chain(move, &set->rings[i]);
}

/* Returns 0, or -1 without memory. */
static int move_result(const struct tccl_result *from, const struct tccl_exchange *move,
                       struct tccl_result *to)
{
    *to = *from;
    to->chain = tccl_exchange_chain(move, &from->chain);
    to->tree.nic = move->image[TCCL_NIC][from->tree.nic];
    for (int i = 0; i < from->chain.n_gpus; i++)
        to->tree.gpus[i] = move->image[TCCL_GPU][from->tree.gpus[i]];
    if (!from->set)
        return 0;
    to->set = malloc(sizeof(*to->set));
    if (!to->set)
        return -1;
    *to->set = *from->set;
    tccl_exchange_rings(move, to->set);
    return 0;
}

/* Where the port of one table is among those of the other; -1: it has none like this. */
static int find_port(const struct tccl_table *table, struct tccl_port port)
{
    for (int i = 0; i < table->n_ports; i++)
        if (tccl_port_equal(table->ports[i], port))
            return i;
    return -1;
}

/* Returns 0, or -1 without memory, or where there is no such pair of ports. */
static int move_results(const struct tccl_table *first, const struct tccl_exchange *move,
                        struct tccl_table *table)
{
    int n = first->n_ports, pairs = tccl_table_pairs(first);
    struct tccl_result *results = calloc(first->n_results, sizeof(*results));
    if (!results)
        return -1;
    free(table->results);
    table->results = results;
    table->n_results = first->n_results;
    table->room = (size_t)first->n_results;
    for (int i = 0; i < first->n_results; i++) {
        int at = i;
        if (i < pairs) {
            int entry = find_port(table, move_port(first->ports[i / n], move));
            int exit = find_port(table, move_port(first->ports[i % n], move));
            if (entry < 0 || exit < 0)
                return -1;
            at = entry * n + exit;
        }
        if (move_result(&first->results[i], move, &results[at]) != 0)
            return -1;
    }
    return 0;
}

struct tccl_table *tccl_alike_table(const struct tccl_table *first,
                                    const struct tccl_machine *machine,
                                    const struct tccl_exchange *move, struct tccl_error *err)
{
    cleanup_table struct tccl_table *table =
        tccl_table_new(machine, tccl_exchange_gpus(move, first->gpus));
    if (!table || table->n_ports != first->n_ports || move_results(first, move, table) != 0)
        return tccl_fail_null(err, "the chains of another set of GPUs can't be moved to this one");
    strcpy(table->source, first->source);
    table->measured = first->measured;
    table->noise = first->noise;
    table->moved = true;
    memcpy(table->baselines, first->baselines, sizeof(table->baselines));
    for (int i = 0; i < 2 * TCCL_GENERATIONS; i++)
        tccl_exchange_rings(move,
                            &table->baselines[i / TCCL_GENERATIONS][i % TCCL_GENERATIONS].set);
    return tccl_steal(table);
}

/* ---- as JSON ---- */

static const char LETTERS[] = "gm";
enum { EXCHANGE_TEXT = 2 * TCCL_MAX_GPUS * 8 };

json_t *tccl_alike_to_json(const struct tccl_alike *alike)
{
    json_t *list = json_array();
    for (int i = 0; i < alike->n; i++) {
        char text[EXCHANGE_TEXT] = "";
        size_t length = 0;
        for (int k = 0; k < 2 * TCCL_MAX_GPUS; k++) {
            int kind = k / TCCL_MAX_GPUS, a = k % TCCL_MAX_GPUS;
            int b = alike->exchanges[i].image[kind][a];
            if (a < b)
                length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%c%d=%c%d",
                                           length ? " " : "", LETTERS[kind], a, LETTERS[kind], b);
        }
        json_array_append_new(list, json_string(text));
    }
    return json_pack("{s:f, s:o}", "noise", alike->noise, "exchanges", list);
}

static int parse_exchange(const char *text, struct tccl_exchange *exchange)
{
    int used = 0;
    char from, to;
    *exchange = tccl_exchange_none();
    for (int a, b; *text; text += used) {
        used = 0;
        if (sscanf(text, " %c%2d=%c%2d%n", &from, &a, &to, &b, &used) != 4 || used == 0 ||
            from != to || !strchr(LETTERS, from) || a < 0 || b < 0 || a >= TCCL_MAX_GPUS ||
            b >= TCCL_MAX_GPUS)
            return -1;
        uint8_t *image = exchange->image[from == LETTERS[TCCL_GPU] ? TCCL_GPU : TCCL_MEMORY];
        if (a == b || image[a] != a || image[b] != b)
            return -1;
        image[a] = (uint8_t)b;
        image[b] = (uint8_t)a;
    }
    return 0;
}

/* Do only devices of the machine change places? */
static bool is_within(const struct tccl_exchange *exchange, const struct tccl_machine *machine)
{
    const int counts[] = {machine->n_gpus, machine->n_memories};
    for (int kind = TCCL_GPU; kind <= TCCL_MEMORY; kind++)
        for (int i = counts[kind]; i < TCCL_MAX_GPUS; i++)
            if (exchange->image[kind][i] != i)
                return false;
    return true;
}

int tccl_alike_from_json(const json_t *json, const struct tccl_machine *machine,
                         struct tccl_alike *alike, struct tccl_error *err)
{
    const json_t *list = json_object_get(json, "exchanges"),
                 *noise = json_object_get(json, "noise");
    *alike = (struct tccl_alike){0};
    if (!json)
        return 0;
    if (!json_is_array(list) || json_array_size(list) > TCCL_MAX_ALIKE || !json_is_number(noise) ||
        !(json_number_value(noise) >= 0 && json_number_value(noise) < 1))
        return tccl_fail(err, "\"alike\": a noise and a list of at most %d exchanges are expected",
                         TCCL_MAX_ALIKE);
    alike->noise = json_number_value(noise);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        struct tccl_exchange *exchange = &alike->exchanges[i];
        if (!text || parse_exchange(text, exchange) != 0 || !is_within(exchange, machine) ||
            !tccl_likeness_to_nccl(machine, exchange)) {
            alike->n = 0;
            return tccl_fail(err, "\"alike\": %.60s is no exchange of equal parts of the machine",
                             text ? text : "what is no text");
        }
        alike->n++;
    }
    return 0;
}
