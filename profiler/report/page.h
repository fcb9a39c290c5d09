/* page.h: a report as one HTML page, with all that it needs inside: no script, nothing loaded. */
#ifndef TCCL_PAGE_H
#define TCCL_PAGE_H

#include "report/report.h"

/* Writes the page, which is well-formed XML too. Errors are left to ferror. */
void tccl_page_write(const struct tccl_report *report, FILE *out);

#endif
