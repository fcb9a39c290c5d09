/* serve-pages.h: the files in web/, as part of the program (made by web/embed). */
#ifndef TCCL_SERVE_PAGES_H
#define TCCL_SERVE_PAGES_H

#include <stddef.h>

struct serve_page {
    const char *path, *type;
    const unsigned char *data;
    size_t size;
};

/* Ends with one without a path. */
extern const struct serve_page serve_pages[];

#endif
