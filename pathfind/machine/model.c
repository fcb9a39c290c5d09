/* model.c: a machine model: devices, shared resources with capacities, and congestion rules. */
#include "machine/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/fileio.h"
#include "base/grow.h"
#include "machine/pattern.h"

enum {
    MAX_MODEL_FILE = 4 << 20,
    MAX_RESOURCES = 1024,
    MAX_USERS = 256, /* patterns of one resource */
    MAX_RULES = 128,
    MAX_CONDITIONS = 256, /* patterns in the "when" of all rules together, */
    MAX_CAPPED = 256,     /* and in their "limits" */
    MAX_CAPS = 4096,
    MAX_LIMITS = MAX_RESOURCES + MAX_CAPS,
    RULE_WORDS = MAX_RULES / 64,
    CONDITION_WORDS = MAX_CONDITIONS / 64,
};

/* What transfers share: a resource, or a cap of a rule, which is there while the rule applies, for
 * what one of its patterns matches from one NUMA node to one. */
struct limit {
    char name[TCCL_NAME];
    double gbps;
    int rule;            /* -1: a resource */
    size_t first, count; /* its part of by_limit */
};

struct rule {
    int first, count;      /* its conditions */
    int first_cap, n_caps; /* among the limits */
};

/* The conditions of rules that a transfer meets. */
struct role {
    uint64_t conditions[CONDITION_WORDS];
};

struct tccl_model {
    struct tccl_machine machine;
    int n_possible; /* the transfers that the machine allows, in order */
    tccl_transfer possible[TCCL_TRANSFERS];
    bool allowed[TCCL_TRANSFERS];
    int n_resources, n_limits, n_rules, n_conditions, n_capped;
    struct limit *limits; /* the resources, then the caps of each rule */
    struct rule *rules;
    struct role *roles; /* by transfer */
    size_t n_uses, room;
    struct tccl_model_use *by_limit;      /* ordered by limit, then by transfer */
    struct tccl_model_use *by_transfer;   /* the same, ordered by transfer */
    uint32_t uses_of[TCCL_TRANSFERS + 1]; /* where a transfer's part of by_transfer begins */
};

static bool has_bit(const uint64_t *words, int bit)
{
    return words[bit / 64] >> (bit % 64) & 1;
}

static void set_bit(uint64_t *words, int bit)
{
    words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* Reading */

/* A model while it is read. */
struct builder {
    struct tccl_model *model;
    struct tccl_device_groups groups;
    double weights[TCCL_TRANSFERS]; /* of the limit being read; 0: no user */
    struct limit cap;               /* of the rule being read */
};

/* Reads "g0->*" or {"of": "g0->*", "weight": 1.2}. Returns 0, or -1 with err. */
static int read_user(struct builder *builder, const json_t *json, struct tccl_pattern *pattern,
                     double *weight, struct tccl_error *err)
{
    static const char *const names[] = {"of", "weight", NULL};
    const struct tccl_machine *machine = &builder->model->machine;
    char text[2 * TCCL_NAME];
    *weight = 1;
    if (json_is_string(json))
        return tccl_pattern_parse(json_string_value(json), machine, &builder->groups, pattern, err);
    if (tccl_fields_known(json, names, err) != 0 ||
        tccl_field_text(json, "of", 1, text, sizeof(text), err) < 0 ||
        tccl_field_number(json, "weight", 0, 0.001, 1000, weight, err) < 0)
        return -1;
    return tccl_pattern_parse(text, machine, &builder->groups, pattern, err);
}

/* Are all conditions of the rule among those met? */
static bool holds(const struct rule *rule, const uint64_t *met)
{
    bool all = true;
    for (int i = 0; i < rule->count && all; i++)
        all = has_bit(met, rule->first + i);
    return all;
}

/* Adds the limit that has just been read, and its uses. Returns 0, or -1 without memory. */
static int add_limit(struct builder *builder)
{
    struct tccl_model *model = builder->model;
    struct limit *limit = &model->limits[model->n_limits];
    limit->first = model->n_uses;
    for (int i = 0; i < model->n_possible; i++) {
        tccl_transfer transfer = model->possible[i];
        if (builder->weights[transfer] <= 0)
            continue;
        if (TCCL_GROW(model->by_limit, model->n_uses, model->room) != 0)
            return -1;
        model->by_limit[model->n_uses++] = (struct tccl_model_use){
            transfer, (uint16_t)model->n_limits,
            limit->rule < 0 || holds(&model->rules[limit->rule], model->roles[transfer].conditions),
            builder->weights[transfer]};
    }
    limit->count = model->n_uses - limit->first;
    model->n_limits++;
    return 0;
}

static int read_resource(struct builder *builder, const json_t *json, struct tccl_error *err)
{
    static const char *const names[] = {"name", "gbps", "users", "about", NULL};
    struct tccl_model *model = builder->model;
    struct limit *resource = &model->limits[model->n_limits];
    json_t *users, *user;
    size_t index;
    if (tccl_fields_known(json, names, err) != 0 ||
        tccl_field_text(json, "name", 1, resource->name, sizeof(resource->name), err) < 0 ||
        tccl_field_number(json, "gbps", 1, 0.001, 100000, &resource->gbps, err) < 0 ||
        tccl_field_list(json, "users", 1, MAX_USERS, &users, err) < 0)
        return -1;
    resource->rule = -1;
    memset(builder->weights, 0, sizeof(builder->weights));
    json_array_foreach(users, index, user)
    {
        struct tccl_pattern pattern;
        double weight;
        if (read_user(builder, user, &pattern, &weight, err) < 0)
            return tccl_fail_in(err, "users[%zu]", index);
        for (int i = 0; i < model->n_possible; i++) {
            tccl_transfer transfer = model->possible[i];
            if (weight > builder->weights[transfer] && tccl_pattern_match(&pattern, transfer))
                builder->weights[transfer] = weight;
        }
    }
    if (add_limit(builder) != 0)
        return tccl_fail(err, "out of memory");
    model->n_resources++;
    return 0;
}

/* A condition: notes which transfers meet it. Returns 0, or -1 with err. */
static int add_condition(struct builder *builder, const struct tccl_pattern *pattern,
                         struct tccl_error *err)
{
    struct tccl_model *model = builder->model;
    if (model->n_conditions == MAX_CONDITIONS)
        return tccl_fail(err, "all rules together have more than %d patterns", MAX_CONDITIONS);
    for (int i = 0; i < model->n_possible; i++)
        if (tccl_pattern_match(pattern, model->possible[i]))
            set_bit(model->roles[model->possible[i]].conditions, model->n_conditions);
    model->n_conditions++;
    return 0;
}

/* The NUMA nodes that the transfer's data come from and go to, as a number. */
static int way_of(const struct tccl_model *model, tccl_transfer transfer)
{
    return tccl_machine_numa(&model->machine, tccl_transfer_source(transfer)) * TCCL_MAX_MEMORIES +
           tccl_machine_numa(&model->machine, tccl_transfer_sink(transfer));
}

/* What the rule being read limits: a cap for each way that transfers of the pattern take. Returns
 * 0, or -1 with err. */
static int add_caps(struct builder *builder, const struct tccl_pattern *pattern,
                    struct tccl_error *err)
{
    struct tccl_model *model = builder->model;
    bool ways[TCCL_MAX_MEMORIES * TCCL_MAX_MEMORIES] = {false};
    if (model->n_capped++ == MAX_CAPPED)
        return tccl_fail(err, "all rules together limit more than %d patterns", MAX_CAPPED);
    for (int i = 0; i < model->n_possible; i++)
        if (tccl_pattern_match(pattern, model->possible[i]))
            ways[way_of(model, model->possible[i])] = true;
    for (int way = 0; way < TCCL_MAX_MEMORIES * TCCL_MAX_MEMORIES; way++) {
        if (!ways[way])
            continue;
        if (model->n_limits - model->n_resources == MAX_CAPS)
            return tccl_fail(err, "all rules together have more than %d limits", MAX_CAPS);
        struct limit *cap = &model->limits[model->n_limits];
        *cap = builder->cap;
        for (int i = 0; i < model->n_possible; i++) {
            tccl_transfer transfer = model->possible[i];
            builder->weights[transfer] =
                way_of(model, transfer) == way && tccl_pattern_match(pattern, transfer);
        }
        if (add_limit(builder) != 0)
            return tccl_fail(err, "out of memory");
    }
    return 0;
}

/* Reads a list of patterns. Returns 0, or -1 with err. */
static int read_patterns(struct builder *builder, const json_t *list,
                         int (*add)(struct builder *, const struct tccl_pattern *,
                                    struct tccl_error *),
                         struct tccl_error *err)
{
    const json_t *entry;
    size_t index;
    json_array_foreach(list, index, entry)
    {
        struct tccl_pattern pattern;
        const char *text = json_string_value(entry);
        if (!text)
            return tccl_fail(err, "entry %zu is not a text", index);
        if (tccl_pattern_parse(text, &builder->model->machine, &builder->groups, &pattern, err) <
                0 ||
            add(builder, &pattern, err) != 0)
            return -1;
    }
    return 0;
}

static int read_rule(struct builder *builder, const json_t *json, struct tccl_error *err)
{
    static const char *const names[] = {"name", "when", "gbps", "limits", "about", NULL};
    struct tccl_model *model = builder->model;
    struct rule *rule = &model->rules[model->n_rules];
    struct limit *cap = &builder->cap;
    json_t *when, *limits;
    if (tccl_fields_known(json, names, err) != 0 ||
        tccl_field_text(json, "name", 1, cap->name, sizeof(cap->name), err) < 0 ||
        tccl_field_number(json, "gbps", 1, 0.001, 100000, &cap->gbps, err) < 0 ||
        tccl_field_list(json, "when", 1, MAX_CONDITIONS, &when, err) < 0)
        return -1;
    limits = when;
    if (tccl_field_list(json, "limits", 0, MAX_CONDITIONS, &limits, err) < 0)
        return -1;
    if (json_array_size(when) == 0)
        return tccl_fail(err, "\"when\" is empty");
    rule->first = model->n_conditions;
    if (read_patterns(builder, when, add_condition, err) != 0)
        return tccl_fail_in(err, "when");
    rule->count = model->n_conditions - rule->first;
    cap->rule = model->n_rules;
    rule->first_cap = model->n_limits;
    if (read_patterns(builder, limits, add_caps, err) != 0)
        return tccl_fail_in(err, "limits");
    rule->n_caps = model->n_limits - rule->first_cap;
    model->n_rules++;
    return 0;
}

/* Reads each entry of a list; errors name the entry. Returns 0, or -1 with err. */
static int read_each(struct builder *builder, const json_t *list, const char *name,
                     int (*read)(struct builder *, const json_t *, struct tccl_error *),
                     struct tccl_error *err)
{
    const json_t *entry;
    size_t index;
    json_array_foreach(list, index, entry) if (read(builder, entry, err) < 0)
    {
        const char *what = json_string_value(json_object_get(entry, "name"));
        return tccl_fail_in(err, "%s[%zu] (%.60s)", name, index, what ? what : "no name");
    }
    return 0;
}

static int read_lists(struct builder *builder, const json_t *json, struct tccl_error *err)
{
    struct tccl_model *model = builder->model;
    json_t *resources = NULL, *rules = NULL;
    if (tccl_device_groups_read(json_object_get(json, "groups"), &model->machine, &builder->groups,
                                err) != 0 ||
        tccl_field_list(json, "resources", 0, MAX_RESOURCES, &resources, err) < 0 ||
        tccl_field_list(json, "rules", 0, MAX_RULES, &rules, err) < 0)
        return -1;
    model->limits = calloc(json_array_size(resources) + MAX_CAPS, sizeof(*model->limits));
    model->rules = calloc(json_array_size(rules) + 1, sizeof(*model->rules));
    model->roles = calloc(TCCL_TRANSFERS, sizeof(*model->roles));
    if (!model->limits || !model->rules || !model->roles)
        return tccl_fail(err, "out of memory");
    if (read_each(builder, resources, "resources", read_resource, err) != 0)
        return -1;
    return read_each(builder, rules, "rules", read_rule, err);
}

/* Is each possible transfer limited by something, also when it runs alone? */
static int check_limited(const struct tccl_model *model, struct tccl_error *err)
{
    for (int i = 0; i < model->n_possible; i++) {
        struct tccl_set set = {.count = 1, .transfers = {model->possible[i]}};
        double gbps;
        if (tccl_model_measure(model, &set, &gbps, NULL, NULL, err) != 0)
            return -1;
        if (isinf(gbps)) {
            char text[12];
            tccl_transfer_format(model->possible[i], text);
            return tccl_fail(err, "nothing limits %s: it uses no resource", text);
        }
    }
    return 0;
}

static int read_model(struct builder *builder, const json_t *json, struct tccl_error *err)
{
    static const char *const names[] = {"format",  "version", "name",      "about", "sources",
                                        "machine", "groups",  "resources", "rules", NULL};
    struct tccl_model *model = builder->model;
    char name[TCCL_NAME];
    if (tccl_fields_known(json, names, err) != 0 ||
        tccl_fields_format(json, "tccl-model", 1, err) != 0 ||
        tccl_field_text(json, "name", 1, name, sizeof(name), err) < 0)
        return -1;
    if (tccl_machine_from_json(json_object_get(json, "machine"), &model->machine, err) != 0)
        return tccl_fail_in(err, "machine");
    if (!model->machine.name[0])
        strcpy(model->machine.name, name);
    for (int i = 0; i < TCCL_TRANSFERS; i++) {
        tccl_transfer transfer = (tccl_transfer)i;
        model->allowed[i] = tccl_machine_allows(&model->machine, transfer, NULL) == 0;
        if (model->allowed[i])
            model->possible[model->n_possible++] = transfer;
    }
    if (read_lists(builder, json, err) != 0)
        return -1;
    /* Orders the uses by transfer too. */
    uint32_t next[TCCL_TRANSFERS + 1] = {0};
    model->by_transfer = calloc(model->n_uses + 1, sizeof(*model->by_transfer));
    if (!model->by_transfer)
        return tccl_fail(err, "out of memory");
    for (size_t i = 0; i < model->n_uses; i++)
        next[model->by_limit[i].transfer + 1]++;
    for (int i = 0; i < TCCL_TRANSFERS; i++)
        next[i + 1] += next[i];
    memcpy(model->uses_of, next, sizeof(next));
    for (size_t i = 0; i < model->n_uses; i++) {
        const struct tccl_model_use *use = &model->by_limit[i];
        model->by_transfer[next[use->transfer]++] = *use;
    }
    return check_limited(model, err);
}

int tccl_model_from_json(const json_t *json, struct tccl_model **model, struct tccl_error *err)
{
    cleanup_free struct builder *builder = calloc(1, sizeof(*builder));
    *model = NULL;
    if (!builder || !(builder->model = calloc(1, sizeof(*builder->model))))
        return tccl_fail(err, "out of memory");
    if (read_model(builder, json, err) != 0) {
        tccl_model_free(builder->model);
        return -1;
    }
    *model = builder->model;
    return 0;
}

int tccl_model_read(const char *path, struct tccl_model **model, struct tccl_error *err)
{
    cleanup_json json_t *json = tccl_read_json(path, MAX_MODEL_FILE, err);
    *model = NULL;
    if (!json)
        return -1;
    if (tccl_model_from_json(json, model, err) != 0)
        return tccl_fail_in(err, "%s", path);
    return 0;
}

void tccl_model_free(struct tccl_model *model)
{
    if (!model)
        return;
    free(model->limits);
    free(model->rules);
    free(model->roles);
    free(model->by_limit);
    free(model->by_transfer);
    free(model);
}

const struct tccl_machine *tccl_model_machine(const struct tccl_model *model)
{
    return &model->machine;
}

/* Measuring */

/* The rules that hold for these: all their conditions are met by a member. */
static void find_rules(const struct tccl_model *model, const tccl_transfer *members, int count,
                       uint64_t active[static RULE_WORDS])
{
    uint64_t met[CONDITION_WORDS] = {0};
    memset(active, 0, RULE_WORDS * sizeof(*active));
    if (model->n_rules == 0)
        return;
    for (int i = 0; i < count; i++)
        for (int word = 0; word < CONDITION_WORDS; word++)
            met[word] |= model->roles[members[i]].conditions[word];
    for (int i = 0; i < model->n_rules; i++)
        if (holds(&model->rules[i], met))
            set_bit(active, i);
}

static bool is_active(const struct limit *limit, const uint64_t *active)
{
    return limit->rule < 0 || has_bit(active, limit->rule);
}

/* Adds what a transfer uses of each limit at a rate of 1. */
static void load(const struct tccl_model *model, tccl_transfer transfer, double *loads)
{
    for (uint32_t i = model->uses_of[transfer]; i < model->uses_of[transfer + 1]; i++)
        loads[model->by_transfer[i].limit] += model->by_transfer[i].weight;
}

/* Progressive filling: the members that still rise, and what is left of each limit for them. */
struct filling {
    const struct tccl_model *model;
    const tccl_transfer *members;
    int count;
    bool stopped[TCCL_MAX_RUNNING];
    double *left, *loads;
    int n_used, *used; /* the limits that have users among the members */
    double *rates;
    const char **limits; /* may be NULL */
};

static void stop_member(struct filling *filling, int member, double rate, const char *name)
{
    const struct tccl_model *model = filling->model;
    tccl_transfer transfer = filling->members[member];
    filling->stopped[member] = true;
    filling->rates[member] = rate;
    if (filling->limits)
        filling->limits[member] = name;
    for (uint32_t i = model->uses_of[transfer]; i < model->uses_of[transfer + 1]; i++) {
        const struct tccl_model_use *use = &model->by_transfer[i];
        filling->left[use->limit] -= use->weight * rate;
        filling->loads[use->limit] -= use->weight;
    }
}

/* The rate at which the limit is used up by the members that still rise. */
static double level_of(const struct filling *filling, int limit)
{
    if (filling->loads[limit] < 1e-9)
        return INFINITY;
    return fmax(filling->left[limit], 0) / filling->loads[limit];
}

/* The limit that stops the member at this rate, or -1. */
static int stopping_limit(const struct filling *filling, int member, double rate)
{
    const struct tccl_model *model = filling->model;
    tccl_transfer transfer = filling->members[member];
    for (uint32_t i = model->uses_of[transfer]; i < model->uses_of[transfer + 1]; i++)
        if (level_of(filling, model->by_transfer[i].limit) <= rate * (1 + 1e-9))
            return model->by_transfer[i].limit;
    return -1;
}

/* Stops all members that can't go beyond the next level. Returns how many still rise. */
static int fill_step(struct filling *filling)
{
    int stoppers[TCCL_MAX_RUNNING], rising = 0;
    double level = INFINITY;
    for (int i = 0; i < filling->n_used; i++)
        level = fmin(level, level_of(filling, filling->used[i]));
    for (int i = 0; i < filling->count; i++)
        stoppers[i] = filling->stopped[i] ? -1 : stopping_limit(filling, i, level);
    for (int i = 0; i < filling->count; i++) {
        if (stoppers[i] >= 0)
            stop_member(filling, i, level, filling->model->limits[stoppers[i]].name);
        rising += !filling->stopped[i];
    }
    return rising;
}

/* Are all of them possible on the machine? Returns 0, or -1 with err. */
static int check_members(const struct tccl_model *model, const tccl_transfer *members, int count,
                         struct tccl_error *err)
{
    for (int i = 0; i < count; i++)
        if (members[i] >= TCCL_TRANSFERS || !model->allowed[members[i]])
            return tccl_machine_allows(&model->machine, members[i], err);
    return 0;
}

int tccl_model_rates(const struct tccl_model *model, const tccl_transfer *members, int count,
                     double *rates, const char **limits, struct tccl_error *err)
{
    uint64_t active[RULE_WORDS];
    if (count < 0 || count > TCCL_MAX_RUNNING)
        return tccl_fail(err, "more than %d transfers at once", TCCL_MAX_RUNNING);
    if (check_members(model, members, count, err) != 0)
        return -1;
    cleanup_free double *left = calloc(2 * (size_t)model->n_limits + 1, sizeof(*left));
    cleanup_free int *used = calloc((size_t)model->n_limits + 1, sizeof(*used));
    if (!left || !used)
        return tccl_fail(err, "out of memory");
    struct filling filling = {.model = model,
                              .members = members,
                              .count = count,
                              .left = left,
                              .loads = left + model->n_limits,
                              .used = used,
                              .rates = rates,
                              .limits = limits};
    find_rules(model, members, count, active);
    for (int i = 0; i < count; i++)
        load(model, members[i], filling.loads);
    for (int i = 0; i < model->n_limits; i++) {
        left[i] = is_active(&model->limits[i], active) ? model->limits[i].gbps : INFINITY;
        if (filling.loads[i] > 0)
            used[filling.n_used++] = i;
    }
    /* Each step stops a member, since every transfer has a limit. */
    for (int i = 0; i < count && fill_step(&filling) > 0; i++)
        ;
    return 0;
}

int tccl_model_slowest(const struct tccl_model *model, const tccl_transfer *members, int count,
                       double *gbps, struct tccl_error *err)
{
    if (check_members(model, members, count, err) != 0)
        return -1;
    /* While all rates rise together, the first to stop is the slowest in the end: so the smallest
     * rate is known without going on: that at which the first limit is used up. */
    uint64_t active[RULE_WORDS];
    double loads[MAX_LIMITS], lowest = INFINITY;
    memset(loads, 0, (size_t)model->n_limits * sizeof(*loads));
    find_rules(model, members, count, active);
    for (int i = 0; i < count; i++)
        load(model, members[i], loads);
    for (int i = 0; i < model->n_limits; i++)
        if (loads[i] > 0 && model->limits[i].gbps < lowest * loads[i] &&
            is_active(&model->limits[i], active))
            lowest = model->limits[i].gbps / loads[i];
    *gbps = lowest;
    return 0;
}

int tccl_model_measure(const struct tccl_model *model, const struct tccl_set *set, double *gbps,
                       double *rates, const char **limits, struct tccl_error *err)
{
    double own_rates[TCCL_MAX_SET];
    if (tccl_model_slowest(model, set->transfers, set->count, gbps, err) != 0)
        return -1;
    if (!rates && !limits)
        return 0;
    return tccl_model_rates(model, set->transfers, set->count, rates ? rates : own_rates, limits,
                            err);
}

static int measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err)
{
    out->spread = 0;
    return tccl_model_measure(context, set, &out->gbps, NULL, NULL, err);
}

struct tccl_meter tccl_model_meter(const struct tccl_model *model)
{
    return (struct tccl_meter){.measure = measure, .context = (void *)model};
}

/* Symmetry */

/* Where exchanging devices takes each transfer, and how exactly limits must match. */
struct exchange {
    const struct tccl_model *model;
    bool nics;        /* transfers with NICs count too */
    double tolerance; /* by which capacities may differ */
    tccl_transfer image[TCCL_TRANSFERS];
    uint16_t *limits; /* what each limit becomes */
};

static bool counts(const struct exchange *exchange, tccl_transfer transfer)
{
    return exchange->nics || (tccl_transfer_initiator(transfer).kind != TCCL_NIC &&
                              tccl_transfer_target(transfer).kind != TCCL_NIC);
}

/* Fills image. Returns whether possible transfers stay possible. */
static bool map_transfers(struct exchange *exchange, const struct tccl_exchange *devices)
{
    const struct tccl_model *model = exchange->model;
    for (int i = 0; i < model->n_possible; i++) {
        tccl_transfer image = tccl_exchange_transfer(devices, model->possible[i]);
        if (!model->allowed[image] && counts(exchange, model->possible[i]))
            return false;
        exchange->image[model->possible[i]] = image;
    }
    return true;
}

static size_t counted_users(const struct exchange *exchange, int limit)
{
    const struct limit *own = &exchange->model->limits[limit];
    size_t count = 0;
    for (size_t i = 0; i < own->count; i++)
        count += counts(exchange, exchange->model->by_limit[own->first + i].transfer);
    return count;
}

static bool uses_by(const struct tccl_model *model, tccl_transfer transfer, int limit,
                    double weight)
{
    for (uint32_t i = model->uses_of[transfer]; i < model->uses_of[transfer + 1]; i++)
        if (model->by_transfer[i].limit == limit)
            return model->by_transfer[i].weight == weight;
    return false;
}

/* Does the exchange make b of a? As many users, and each user's image uses b by the same weight. */
static bool limit_becomes(const struct exchange *exchange, int a, int b)
{
    const struct tccl_model *model = exchange->model;
    const struct limit *from = &model->limits[a], *to = &model->limits[b];
    if (fmax(from->gbps, to->gbps) > fmin(from->gbps, to->gbps) * (1 + exchange->tolerance) ||
        counted_users(exchange, a) != counted_users(exchange, b))
        return false;
    for (size_t i = 0; i < from->count; i++) {
        const struct tccl_model_use *use = &model->by_limit[from->first + i];
        if (counts(exchange, use->transfer) &&
            !uses_by(model, exchange->image[use->transfer], b, use->weight))
            return false;
    }
    return true;
}

/* Do exactly the images of the transfers that meet condition a meet condition b? */
static bool condition_becomes(const struct exchange *exchange, int a, int b)
{
    const struct tccl_model *model = exchange->model;
    for (int i = 0; i < model->n_possible; i++) {
        tccl_transfer transfer = model->possible[i];
        if (counts(exchange, transfer) &&
            has_bit(model->roles[transfer].conditions, a) !=
                has_bit(model->roles[exchange->image[transfer]].conditions, b))
            return false;
    }
    return true;
}

typedef bool (*becomes)(const struct exchange *exchange, int a, int b);

/* Does each of the count things from first_a on become another one of those from first_b on? To
 * become the same is an equivalence, so the first free match is as good as any. image gets them, or
 * is NULL. */
static bool all_become(const struct exchange *exchange, int first_a, int first_b, int count,
                       becomes same, uint16_t *image)
{
    bool taken[MAX_LIMITS] = {false};
    for (int a = 0; a < count; a++) {
        int b = 0;
        while (b < count && (taken[b] || !same(exchange, first_a + a, first_b + b)))
            b++;
        if (b == count)
            return false;
        taken[b] = true;
        if (image)
            image[first_a + a] = (uint16_t)(first_b + b);
    }
    return true;
}

static bool rule_becomes(const struct exchange *exchange, int a, int b)
{
    const struct rule *from = &exchange->model->rules[a], *to = &exchange->model->rules[b];
    return from->count == to->count && from->n_caps == to->n_caps &&
           all_become(exchange, from->first_cap, to->first_cap, from->n_caps, limit_becomes,
                      exchange->limits) &&
           all_become(exchange, from->first, to->first, from->count, condition_becomes, NULL);
}

int tccl_model_limits(const struct tccl_model *model)
{
    return model->n_limits;
}

int tccl_model_uses(const struct tccl_model *model, tccl_transfer transfer,
                    const struct tccl_model_use **uses)
{
    *uses = model->by_transfer + model->uses_of[transfer];
    return (int)(model->uses_of[transfer + 1] - model->uses_of[transfer]);
}

double tccl_model_limit(const struct tccl_model *model, int limit)
{
    return model->limits[limit].gbps;
}

bool tccl_model_alike(const struct tccl_model *model, const struct tccl_exchange *devices,
                      bool nics, double tolerance, uint16_t *image)
{
    struct exchange exchange = {
        .model = model, .nics = nics, .tolerance = tolerance, .limits = image};
    return map_transfers(&exchange, devices) &&
           all_become(&exchange, 0, 0, model->n_resources, limit_becomes, image) &&
           all_become(&exchange, 0, 0, model->n_rules, rule_becomes, NULL);
}
