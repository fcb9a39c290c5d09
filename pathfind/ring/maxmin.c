/* maxmin.c: (max, min) products: with AVX2 where the processor has it, with SSE2 on other x86-64
 * processors, plainly elsewhere. */
#include "ring/segment.h"

#include <stddef.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

static inline float smaller(float a, float b)
{
    return a < b ? a : b;
}

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

#ifdef __x86_64__
/* One row of out, as many times VECTORS vectors as fit: they stay in registers over the inner loop.
 */
#define UNROLLED(VECTORS) _Pragma("GCC unroll 8") for (int v = 0; v < (VECTORS); v++)
#define MAXMIN_TILES(VECTORS, VECTOR, LANES, LOAD, STORE, SPREAD, ZERO, MIN, MAX)                  \
    for (; j + (VECTORS) * (LANES) <= columns; j += (VECTORS) * (LANES)) {                         \
        VECTOR best[VECTORS];                                                                      \
        UNROLLED(VECTORS) best[v] = ZERO();                                                        \
        for (int k = 0; k < inner; k++) {                                                          \
            const float *row = b + (size_t)k * columns + j;                                        \
            VECTOR x = SPREAD(left[k]);                                                            \
            UNROLLED(VECTORS) best[v] = MAX(best[v], MIN(x, LOAD(row + v * (LANES))));             \
        }                                                                                          \
        UNROLLED(VECTORS) STORE(result + j + v * (LANES), best[v]);                                \
    }

/* From column first on. Returns the columns done. */
#define MAXMIN_ROWS(...)                                                                           \
    int j = first;                                                                                 \
    for (int i = 0; i < rows; i++) {                                                               \
        const float *left = a + (size_t)i * inner;                                                 \
        float *result = out + (size_t)i * columns;                                                 \
        j = first;                                                                                 \
        MAXMIN_TILES(8, __VA_ARGS__)                                                               \
        MAXMIN_TILES(1, __VA_ARGS__)                                                               \
    }                                                                                              \
    return j;

static int maxmin_sse2(const float *a, const float *b, float *out, int rows, int inner, int columns,
                       int first)
{
    MAXMIN_ROWS(__m128, 4, _mm_loadu_ps, _mm_storeu_ps, _mm_set1_ps, _mm_setzero_ps, _mm_min_ps,
                _mm_max_ps)
}

#ifndef TCCL_NO_AVX2 /* the benchmarks compare both */
/* Non-negative floats have the order of their bits as integers, and processors compare integers on
 * more execution units. */
#define LOAD_BITS(from) _mm256_loadu_si256((const __m256i *)(from))
#define STORE_BITS(to, bits) _mm256_storeu_si256((__m256i *)(to), bits)
#define SPREAD_BITS(x) _mm256_castps_si256(_mm256_set1_ps(x))

__attribute__((target("avx2"))) static int maxmin_avx2(const float *a, const float *b, float *out,
                                                       int rows, int inner, int columns)
{
    enum { first = 0 };
    MAXMIN_ROWS(__m256i, 8, LOAD_BITS, STORE_BITS, SPREAD_BITS, _mm256_setzero_si256,
                _mm256_min_epi32, _mm256_max_epi32)
}
#endif
#endif

void tccl_maxmin(const float *a, const float *b, float *out, int rows, int inner, int columns)
{
    int done = 0;
#if defined(__x86_64__) && !defined(TCCL_NO_AVX2)
    if (columns >= 8 && __builtin_cpu_supports("avx2"))
        done = maxmin_avx2(a, b, out, rows, inner, columns);
#endif
#ifdef __x86_64__
    done = maxmin_sse2(a, b, out, rows, inner, columns, done);
#endif
    if (done < columns) {
        /* out[i][j] for columns from first on: the columns left over by the vector kernels, and all
         * columns on other processors. */
        for (int i = 0; i < rows; i++) {
            float *result = out + (size_t)i * columns;
            for (int j = done; j < columns; j++)
                result[j] = 0;
            for (int k = 0; k < inner; k++) {
                const float *row = b + (size_t)k * columns, x = a[(size_t)i * inner + k];
                for (int j = done; j < columns; j++)
                    result[j] = larger(result[j], smaller(x, row[j]));
            }
        }
    }
}

void tccl_maxmin_row(const float *from, float x, float *to, int columns)
{
#ifdef __x86_64__
    __m128 limit = _mm_set1_ps(x);
    for (int i = 0; i < columns; i += 4)
        _mm_storeu_ps(to + i,
                      _mm_max_ps(_mm_loadu_ps(to + i), _mm_min_ps(_mm_loadu_ps(from + i), limit)));
#else
    for (int i = 0; i < columns; i++)
        to[i] = larger(to[i], smaller(from[i], x));
#endif
}
