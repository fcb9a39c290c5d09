/* sketch.h: a machine drawn as a tree of text: sockets, memories, PCIe switches, devices. */
#ifndef TCCL_SKETCH_H
#define TCCL_SKETCH_H

#include <stdio.h>

#include "machine/machine.h"

struct tccl_sketch_style {
    bool lines;  /* box-drawing characters; else ASCII */
    bool colour; /* of a terminal */
};

/* What a stream can show: the locale's characters; colours on terminals, unless NO_COLOR is set. */
struct tccl_sketch_style tccl_sketch_style(FILE *out);

/* package_of: the socket of each memory, -1 unknown; NULL: sockets aren't drawn. */
void tccl_sketch(FILE *out, const struct tccl_machine *machine, const int *package_of,
                 struct tccl_sketch_style style);

#endif
