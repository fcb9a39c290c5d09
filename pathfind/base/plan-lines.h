/* plan-lines.h: the whole numbers of 32 bits in a plan file: lines that tccld writes, and the
 * runtime shim reads into members of the same names. To add one, add its line. Other lines:
 * profiler/client/shim.md. */
#pragma once

#include <stdint.h>

/* Those of a step's key: NUMBER(name). */
#define TCCL_KEY_NUMBERS(NUMBER)                                                                   \
    NUMBER(job) NUMBER(het_job) NUMBER(het_offset) NUMBER(step) NUMBER(restart)

/* Of the step: NUMBER(name, most, where tccld has it: tccld/join/step-outcome.c). */
#define TCCL_PLAN_NUMBERS(NUMBER)                                                                  \
    NUMBER(uid, UINT32_MAX, join->uid)                                                             \
    NUMBER(index, 16383, join->node)                                                               \
    NUMBER(n_nodes, 16384, join->n_nodes)                                                          \
    NUMBER(step_gpus, 16384 * 16, outcome->gpus)

#define TCCL_NUMBER_MEMBER_32(name, ...) uint32_t name;

/* As Slurm numbers the steps that are none of srun's (slurm.h; the plugin's build compares them).
 */
#define TCCL_STEP_INTERACTIVE UINT32_C(0xfffffffa)
#define TCCL_STEP_BATCH UINT32_C(0xfffffffb)
#define TCCL_STEP_EXTERN UINT32_C(0xfffffffc)
