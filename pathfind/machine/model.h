/* model.h: a machine model: devices, shared resources with capacities, and congestion rules.
 *
 * The bandwidth of a transfer set is that of its slowest member under max-min fair rates: all rates
 * rise together from 0; a resource whose capacity is used up stops its users (Bertsekas & Gallager,
 * Data Networks, 6.5.2). A rule caps what it limits when each of its conditions is met by the set:
 * its caps are resources that are there then. */
#pragma once

#include <limits.h>

#include "machine/machine.h"
#include "machine/meter.h"

struct tccl_model;

/* Writes the path of the model that is named: a file as it is, or else, for a name without '/', one
 * of the models that are installed, or of the tests' for a program in its build folder. Returns 0,
 * or -1 with err: there is none, and which there are. */
int tccl_model_file(const char *name, char path[static PATH_MAX], struct tccl_error *err);

/* Reads a model file (format: pathfind/machine/README.md). Returns 0, or -1 with err naming the
 * file and the place. The caller frees with tccl_model_free. */
int tccl_model_read(const char *path, struct tccl_model **model, struct tccl_error *err);
int tccl_model_from_json(const json_t *json, struct tccl_model **model, struct tccl_error *err);
void tccl_model_free(struct tccl_model *model); /* NULL is fine */

const struct tccl_machine *tccl_model_machine(const struct tccl_model *model);

/* Bandwidth of the set in GB/s. rates may be NULL, or holds count values: each member's rate.
 * limits may be NULL, or gets for each member the name (owned by the model) of the resource or rule
 * that stopped it. An empty set has bandwidth +inf. Returns 0, or -1 with err if a member is not
 * possible on the machine. */
int tccl_model_measure(const struct tccl_model *model, const struct tccl_set *set, double *gbps,
                       double *rates, const char **limits, struct tccl_error *err);

/* The rate in GB/s of the slowest of count transfers that run at the same time, as
 * tccl_model_rates has it, in less time; +inf without transfers. */
int tccl_model_slowest(const struct tccl_model *model, const tccl_transfer *members, int count,
                       double *gbps, struct tccl_error *err);

/* The rate in GB/s of each of count transfers that run at the same time; the same one may run
 * several times. limits as above. Returns 0, or -1 with err: one is not possible on the machine,
 * there are more than TCCL_MAX_RUNNING, or no memory. */
enum { TCCL_MAX_RUNNING = 4 * TCCL_MAX_SET };
int tccl_model_rates(const struct tccl_model *model, const tccl_transfer *members, int count,
                     double *rates, const char **limits, struct tccl_error *err);

/* The model's limits: its resources, then the caps of its rules; and the capacity of each in GB/s.
 */
int tccl_model_limits(const struct tccl_model *model);
double tccl_model_limit(const struct tccl_model *model, int limit);

/* A transfer uses weight times its rate of some limits: *uses points to them (the model's own).
 * Returns how many; 0 for one that is not possible. */
struct tccl_model_use {
    tccl_transfer transfer;
    uint16_t limit;
    bool always; /* false: the cap of a rule that does not apply to this transfer alone */
    double weight;
};
int tccl_model_uses(const struct tccl_model *model, tccl_transfer transfer,
                    const struct tccl_model_use **uses);

/* Does exchanging devices leave the model as it is, but for capacities that differ by the ratio
 * tolerance (0: not at all)? Without nics only transfers between GPUs and memories count. image
 * gets, for each limit, the one that it becomes. */
bool tccl_model_alike(const struct tccl_model *model, const struct tccl_exchange *devices,
                      bool nics, double tolerance, uint16_t *image);

/* A meter that asks the model; it lives as long as the model. */
struct tccl_meter tccl_model_meter(const struct tccl_model *model);
