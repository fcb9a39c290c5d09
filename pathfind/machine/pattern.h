/* pattern.h: patterns of a model file that pick transfers, such as "g0->*" or "g<m@1". */
#pragma once

#include "machine/machine.h"

/* A set of devices: a bit mask of indices for each enum tccl_device_kind. */
struct tccl_devices {
    uint16_t of_kind[3];
};

/* Named sets of devices, the model's "groups". */
enum { TCCL_DEVICE_GROUPS = 64 };
struct tccl_device_groups {
    int count;
    struct {
        char name[TCCL_NAME];
        struct tccl_devices devices;
    } group[TCCL_DEVICE_GROUPS];
};

enum tccl_pattern_op { TCCL_MATCH_WRITE, TCCL_MATCH_READ, TCCL_MATCH_FLOW };

/* Write and read: left is the initiator. Flow: the data go from left to right. */
struct tccl_pattern {
    enum tccl_pattern_op op;
    struct tccl_devices left, right;
};

/* Reads the object "groups" (may be NULL). Returns 0, or -1 with err. */
int tccl_device_groups_read(const json_t *json, const struct tccl_machine *machine,
                            struct tccl_device_groups *groups, struct tccl_error *err);

/* Reads a pattern. Returns 0, or -1 with err, which quotes it. */
int tccl_pattern_parse(const char *text, const struct tccl_machine *machine,
                       const struct tccl_device_groups *groups, struct tccl_pattern *pattern,
                       struct tccl_error *err);

bool tccl_pattern_match(const struct tccl_pattern *pattern, tccl_transfer transfer);
