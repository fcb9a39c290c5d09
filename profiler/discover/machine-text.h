/* machine-text.h: a machine as tables for people, and what discovery found as JSON. */
#ifndef TCCL_MACHINE_TEXT_H
#define TCCL_MACHINE_TEXT_H

#include <stdio.h>

#include "discover/discover.h"

/* Tables of GPUs and NICs, how far each is from each other, and the drawing. found: what else was
 * found with this machine; NULL: only the description is known. */
void tccl_print_machine(FILE *out, const struct tccl_machine *machine,
                        const struct tccl_found *found);

/* The drawing alone (sketch.c): a tree of text, with the characters that the stream's locale has;
 * colours on terminals, unless NO_COLOR is set. package_of: the socket of each memory, -1 unknown;
 * NULL: sockets aren't drawn. */
void tccl_sketch(FILE *out, const struct tccl_machine *machine, const int *package_of);

/* The notes, one line each. */
void tccl_print_notes(FILE *out, const struct tccl_found *found);

/* Path type of two devices as nvidia-smi calls it: "X" itself, "PIX" below one switch, "PXB" below
 * several, "PHB" at one NUMA node, "SYS". */
const char *tccl_path_name(const struct tccl_machine *machine, struct tccl_device a,
                           struct tccl_device b);

/* All that was found, with the machine and its id. A new reference; NULL without memory. */
json_t *tccl_found_to_json(const struct tccl_found *found);

/* "MIG, MPS"; "" for none. */
enum { TCCL_MARKS_TEXT = 48 };
void tccl_format_marks(unsigned marks, char text[static TCCL_MARKS_TEXT]);

#endif
