/* error.h: the error text that library functions fill in. */
#ifndef TCCL_ERROR_H
#define TCCL_ERROR_H

/* Zero-initialise before use. The text says what, where and what now, without "tccl: " in front. */
struct tccl_error {
    char text[512];
};

/* Writes the text unless err is NULL or already holds one (first error wins). Always returns -1. */
int tccl_fail(struct tccl_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "what: " before the text in err, for callers that know the file or place. Returns -1. */
int tccl_fail_in(struct tccl_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
