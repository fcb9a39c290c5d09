/* page-rings.h: the best rings of a report, drawn beside what NCCL builds by itself. */
#ifndef TCCL_PAGE_RINGS_H
#define TCCL_PAGE_RINGS_H

#include "report/limit.h"
#include "report/report.h"

enum { TCCL_LEAD = TCCL_LIMIT_TEXT + 128 };
/* What is to be said first: "11.45 in place of 7.86 GB/s: NCCL reads and writes memory 1 from three
 * GPUs at once", of several rings where a job gets these; "" without rings. */
void tccl_page_lead(const struct tccl_report *report, char text[static TCCL_LEAD]);

/* The section with the drawings; of the machine alone where no ring was found. */
void tccl_page_rings(const struct tccl_report *report, FILE *out);

#endif
