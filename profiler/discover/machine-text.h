/* machine-text.h: a machine as tables for people, and what discovery found as JSON. */
#ifndef TCCL_MACHINE_TEXT_H
#define TCCL_MACHINE_TEXT_H

#include <stdio.h>

#include "discover/discover.h"

/* Tables of GPUs and NICs, how far each is from each other, and the drawing. found: what else was
 * found with this machine; NULL: only the description is known. */
void tccl_print_machine(FILE *out, const struct tccl_machine *machine,
                        const struct tccl_found *found);

/* All that was found, with the machine and its id. A new reference; NULL without memory. */
json_t *tccl_found_to_json(const struct tccl_found *found);

/* "MIG, MPS"; "" for none. */
enum { TCCL_MARKS_TEXT = 48 };
void tccl_format_marks(unsigned marks, char text[static TCCL_MARKS_TEXT]);

#endif
