/* pattern.c: patterns of a model file that pick transfers, such as "g0->*" or "g<m@1". */
#include "machine/pattern.h"

#include <ctype.h>
#include <string.h>

static const char kind_letters[] = "gmn"; /* in the order of enum tccl_device_kind */

static int count_of(const struct tccl_machine *machine, int kind)
{
    const int counts[] = {machine->n_gpus, machine->n_memories, machine->n_nics};
    return counts[kind];
}

/* Those of the devices that are next to the memory, or those that are not. */
static void keep_place(const struct tccl_machine *machine, int memory, bool not_there,
                       struct tccl_devices *devices)
{
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < count_of(machine, kind); i++) {
            struct tccl_device device = {.kind = (uint8_t)kind, .index = (uint8_t)i};
            bool there = tccl_machine_numa(machine, device) == memory;
            if (there == not_there)
                devices->of_kind[kind] &= (uint16_t) ~(1u << i);
        }
}

static void all_devices(const struct tccl_machine *machine, struct tccl_devices *devices)
{
    for (int kind = 0; kind < 3; kind++)
        devices->of_kind[kind] = (uint16_t)((1u << count_of(machine, kind)) - 1);
}

/* The number that the text is, if it is one below limit; else -1. */
static int whole_number(const char *text, int limit)
{
    size_t length = strlen(text);
    if (length < 1 || length > 2 || strspn(text, "0123456789") != length)
        return -1;
    int number = text[0] - '0';
    if (length == 2)
        number = number * 10 + text[1] - '0';
    return number < limit ? number : -1;
}

static const struct tccl_devices *find_group(const struct tccl_device_groups *groups,
                                             const char *name)
{
    for (int i = 0; i < groups->count; i++)
        if (strcmp(groups->group[i].name, name) == 0)
            return &groups->group[i].devices;
    return NULL;
}

/* Reads an endpoint without a "!" in front. Returns 0, or -1. */
static int parse_positive(const char *text, const struct tccl_machine *machine,
                          const struct tccl_device_groups *groups, struct tccl_devices *devices)
{
    const struct tccl_devices *group = find_group(groups, text);
    if (group) {
        *devices = *group;
        return 0;
    }
    const char *letter = text[0] ? strchr(kind_letters, text[0]) : NULL;
    int kind = letter ? (int)(letter - kind_letters) : -1;
    all_devices(machine, devices);
    for (int other = 0; other < 3; other++)
        if (letter && other != kind)
            devices->of_kind[other] = 0;
    /* Reads what stands behind the kind (-1: any kind): "*", "3", "@1", "!@1". */
    const char *rest = text + (letter ? 1 : 0);
    if (strcmp(rest, "*") == 0)
        return 0;
    bool not_there = rest[0] == '!';
    if (rest[not_there] == '@') {
        int memory = whole_number(rest + not_there + 1, machine->n_memories);
        if (memory >= 0)
            keep_place(machine, memory, not_there, devices);
        return memory < 0 ? -1 : 0;
    }
    int index = kind < 0 ? -1 : whole_number(rest, count_of(machine, kind));
    if (index < 0)
        return -1;
    devices->of_kind[kind] = (uint16_t)(1u << index);
    return 0;
}

static int parse_endpoint(const char *text, const struct tccl_machine *machine,
                          const struct tccl_device_groups *groups, struct tccl_devices *devices)
{
    struct tccl_devices all;
    if (text[0] != '!')
        return parse_positive(text, machine, groups, devices);
    if (parse_positive(text + 1, machine, groups, devices) != 0)
        return -1;
    all_devices(machine, &all);
    for (int kind = 0; kind < 3; kind++)
        devices->of_kind[kind] = (uint16_t)(all.of_kind[kind] & ~devices->of_kind[kind]);
    return 0;
}

/* May a group have this name? Not one that reads as devices: g1, m, n2 and the like. */
static bool good_group_name(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length >= TCCL_NAME || !isalpha((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return !strchr(kind_letters, name[0]) || strspn(name + 1, "0123456789") != length - 1;
}

int tccl_device_groups_read(const json_t *json, const struct tccl_machine *machine,
                            struct tccl_device_groups *groups, struct tccl_error *err)
{
    const char *name;
    json_t *members, *member;
    size_t index;
    groups->count = 0;
    if (json && !json_is_object(json))
        return tccl_fail(err, "groups: not an object");
    json_object_foreach((json_t *)json, name, members)
    {
        if (groups->count == TCCL_DEVICE_GROUPS)
            return tccl_fail(err, "groups: more than %d", TCCL_DEVICE_GROUPS);
        if (!good_group_name(name))
            return tccl_fail(err, "groups: \"%.40s\" can't be a group's name", name);
        if (!json_is_array(members))
            return tccl_fail(err, "groups: %s: not a list", name);
        struct tccl_devices devices = {0}, more;
        json_array_foreach(members, index, member)
        {
            const char *text = json_string_value(member);
            if (!text || parse_endpoint(text, machine, groups, &more) != 0)
                return tccl_fail(err, "groups: %s: member %zu is no device of this machine", name,
                                 index);
            for (int kind = 0; kind < 3; kind++)
                devices.of_kind[kind] |= more.of_kind[kind];
        }
        strcpy(groups->group[groups->count].name, name);
        groups->group[groups->count].devices = devices;
        groups->count++;
    }
    return 0;
}

/* Copies length characters without the spaces around them. Returns 0, or -1 if too long. */
static int copy_trimmed(char *out, size_t size, const char *from, size_t length)
{
    while (length > 0 && from[0] == ' ') {
        from++;
        length--;
    }
    while (length > 0 && from[length - 1] == ' ')
        length--;
    if (length >= size)
        return -1;
    memcpy(out, from, length);
    out[length] = '\0';
    return 0;
}

/* Finds the operator and its length. Returns NULL if there is none. */
static const char *find_op(const char *text, enum tccl_pattern_op *op, size_t *length)
{
    const char *at = strpbrk(text, "<>");
    if (!at)
        return NULL;
    *op = *at == '<' ? TCCL_MATCH_READ : TCCL_MATCH_WRITE;
    *length = 1;
    if (*at == '>' && at > text && at[-1] == '-') {
        *op = TCCL_MATCH_FLOW;
        *length = 2;
        at--;
    }
    return at;
}

int tccl_pattern_parse(const char *text, const struct tccl_machine *machine,
                       const struct tccl_device_groups *groups, struct tccl_pattern *pattern,
                       struct tccl_error *err)
{
    char left[TCCL_NAME + 4], right[TCCL_NAME + 4];
    size_t length;
    const char *op = find_op(text, &pattern->op, &length);
    if (!op || copy_trimmed(left, sizeof(left), text, (size_t)(op - text)) != 0 ||
        copy_trimmed(right, sizeof(right), op + length, strlen(op + length)) != 0)
        return tccl_fail(err, "\"%.60s\" is no pattern; write g0>*, g<m@1 or *->m2", text);
    if (parse_endpoint(left, machine, groups, &pattern->left) != 0)
        return tccl_fail(err, "\"%.60s\": this machine has no devices \"%s\"", text, left);
    if (parse_endpoint(right, machine, groups, &pattern->right) != 0)
        return tccl_fail(err, "\"%.60s\": this machine has no devices \"%s\"", text, right);
    return 0;
}

static bool holds(const struct tccl_devices *devices, struct tccl_device device)
{
    return devices->of_kind[device.kind] >> device.index & 1;
}

bool tccl_pattern_match(const struct tccl_pattern *pattern, tccl_transfer transfer)
{
    struct tccl_device left, right;
    if (pattern->op == TCCL_MATCH_FLOW) {
        left = tccl_transfer_source(transfer);
        right = tccl_transfer_sink(transfer);
    } else {
        if (tccl_transfer_reads(transfer) != (pattern->op == TCCL_MATCH_READ))
            return false;
        left = tccl_transfer_initiator(transfer);
        right = tccl_transfer_target(transfer);
    }
    return holds(&pattern->left, left) && holds(&pattern->right, right);
}
