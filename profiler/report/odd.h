/* odd.h: figures that are off among equals. Transfers that the machine's description can't tell
 * apart should be as fast as each other; one that is far slower than its likes has a reason that no
 * description has: a slot, a cable, a setting. */
#pragma once

#include "doctor/doctor.h"
#include "report/bandwidths.h"

enum { TCCL_ODDS = 8, TCCL_ODD_TEXT = 2 * TCCL_NAME + 240 };

struct tccl_odd {
    int matrix, row, column; /* its worst figure */
    double gbps, likes;      /* that, and the median of its likes, GB/s */
    int n_likes;
    bool of_one;               /* one device is off: the one below */
    struct tccl_device device; /* else that beside a memory, or a memory: nobody knows which */
    int off, known;            /* so many of the device's figures with likes are off */
};

/* Finds them in the matrices of a machine (TCCL_MATRICES, tccl_matrix_fill): slower than the median
 * of at least two likes by a fifth, and by five times the spreads, while the likes that are not
 * are within a sixth of each other. Noisy figures say nothing. Figures of one device, half of which
 * are off in one matrix, count as one. Returns how many, at most TCCL_ODDS, the worst devices
 * first; -1 with err (no memory). */
int tccl_odd_find(const struct tccl_machine *machine,
                  const struct tccl_matrix matrices[static TCCL_MATRICES],
                  struct tccl_odd odds[static TCCL_ODDS], struct tccl_error *err);

/* "GPU 5 writes to memory 1 at 6.2 GB/s, its 3 likes at 12.4; 9 of 12 figures of GPU 5 are off". */
void tccl_odd_format(const struct tccl_machine *machine, const struct tccl_odd *odd,
                     char text[static TCCL_ODD_TEXT]);

/* What to do about it, with what the doctor sees at the device or above it, if it is here. */
void tccl_odd_advise(const struct tccl_machine *machine, const struct tccl_odd *odd,
                     const struct tccl_doctor_facts *facts,
                     const struct tccl_doctor_findings *findings, char text[static TCCL_ODD_TEXT]);

/* Bus id of the device, "" of a memory or where nobody knows which it is. */
const char *tccl_odd_busid(const struct tccl_machine *machine, const struct tccl_odd *odd);
