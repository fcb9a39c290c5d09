/* maxmin.h: the (max, min) product of two matrices. */
#ifndef TCCL_MAXMIN_H
#define TCCL_MAXMIN_H

/* out[i][j] = max over k of min(a[i][k], b[k][j]); rows x inner times inner x columns, row-major,
 * GB/s, none negative. out must not overlap a or b. Uses AVX2 where the processor has it. */
void tccl_maxmin(const float *a, const float *b, float *out, int rows, int inner, int columns);

/* to[i] = max(to[i], min(from[i], x)), for a number of columns that is a multiple of 4. */
void tccl_maxmin_row(const float *from, float x, float *to, int columns);

#endif
