/* sysfs.h: the small texts of /sys and /proc, and other texts from outside: bounded, and cleaned to
 * printable ASCII. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Copies what fits; what is not printable ASCII becomes '?', spaces at both ends are dropped. NULL
 * is "". */
void tccl_sys_clean(char *to, size_t size, const char *from);

/* Makes a NIC's name one that machine descriptions take: a letter, then letters, digits, '_' and
 * '.'. */
void tccl_nic_rename(char *name);

/* The first line of the file root + path, cleaned ("" where there is none). root may be NULL.
 * Returns whether there is something. */
bool tccl_sys_text(const char *root, char *text, size_t size, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

/* The number that the file begins with. Returns whether there is one. */
bool tccl_sys_number(const char *root, long *value, const char *path, ...)
    __attribute__((format(printf, 3, 4)));

/* What stands behind "name:" in a file of such lines, as those of /proc/driver/nvidia. Returns
 * whether it is there. */
bool tccl_sys_member(const char *root, const char *name, char *text, size_t size, const char *path,
                     ...) __attribute__((format(printf, 5, 6)));

/* Of a port of an RDMA device, and of a network interface: has it a link? Of an interface that
 * doesn't know, it is taken to have one. */
enum { TCCL_PORT_ACTIVE = 4 }; /* "4: ACTIVE" */
enum tccl_sys_link { TCCL_LINK_UNKNOWN, TCCL_LINK_DOWN, TCCL_LINK_UP };
enum tccl_sys_link tccl_sys_port_link(const char *root, const char *device, int port);
enum tccl_sys_link tccl_sys_net_link(const char *root, const char *interface);

/* Can the driver give GPU memory to RDMA devices? By one of the peer memory modules; or as DMA-BUF,
 * which the open kernel modules do on kernels from 5.12. */
bool tccl_sys_gpudirect(const char *root);

bool tccl_sys_exists(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));
