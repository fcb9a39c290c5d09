/* driver.h: what the parts of the stand-in for the CUDA driver share. Its functions are those of
 * cuda.h; the CUDA runtimes of programs and of NCCL above it are real ones. */
#pragma once

#include "devices.h"
#include "kernels.h"

#include <cuda.h>

#define ANSWER CUresult
#include "stand-in.h"

/* GPUs that the process may see (CUDA_VISIBLE_DEVICES), and which one a CUDA ordinal means: an
 * index into rig_devices(), or -1. */
int rig_visible(void);
int rig_ordinal(int ordinal);

/* The NUMA node of a GPU (an index into rig_devices()), as /sys has it; -1: not known. */
int rig_numa_node(int gpu);

/* The device of the calling thread's context: an ordinal; without a context the first. */
int rig_current(void);

/* Runs something in a thread of the stream's when all else in it is done, or makes it a part of the
 * graph that the stream is captured into, and runs it each time that one is launched. drop: once it
 * has run for the last time; NULL: nothing. Where it fails the caller keeps the data. */
CUresult rig_submit(CUstream stream, void (*run)(void *data), void (*drop)(void *data), void *data);

/* Is something in the stream that is not done, or is it captured? Waits until nothing is in it. */
enum rig_state { RIG_IDLE, RIG_BUSY, RIG_CAPTURED } rig_state(CUstream stream);
CUresult rig_await(CUstream stream);

/* May the thread do now what CUDA calls potentially unsafe while a stream is captured? */
CUresult rig_unsafe(void);

/* A thing without contents, of which a program holds the address. */
CUresult rig_token(void *out);

/* Says that it is refused. */
CUresult rig_refused(const char *what);

/* The base and size of the allocation that holds the address, and where it is. False: there is
 * none. */
struct rig_allocation {
    void *base;
    size_t size;
    int device;
    bool host;
    bool shared; /* by cuIpcGetMemHandle */
    int place;   /* the GPU, or the NUMA node, on the machine; -1: not known */
};
bool rig_allocation(const void *address, struct rig_allocation *found);

/* Virtual memory management: is it offered; the mapping that holds an address; zeros a part of one
 * without taking memory (false: it is none). */
bool rig_has_virtual(void);
bool rig_virtual_allocation(const void *address, struct rig_allocation *found);
bool rig_virtual_zero(char *start, char *end);

/* How kernels are slowed down; NULL: not at all. */
rig_copies *rig_paced(void);

/* Where an address is. False: not known. Other stand-ins call it, too. */
bool rig_place(const void *address, struct rig_place *place);
