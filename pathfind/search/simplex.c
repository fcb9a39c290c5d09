/* simplex.c: the simplex method on a dense table (G. Dantzig). Many limits are 0 here, where steps
 * gain nothing and could go round in circles: so limits are raised by tiny, unequal amounts, which
 * makes the result a little too large, never too small. */
#include "search/rings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const double tiny = 1e-9;

/* Rows are subtracted from each other several columns at a time. */
enum { LANES = 4 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double))));

/* Row i: what is left of limit i, by the columns that are 0; the last row is the goal's. Column
 * n_columns holds the values; up to width, a multiple of LANES, follow zeros. */
struct simplex {
    int n_rows, n_columns, width;
    double *cells;
    int *
        basic; /* of each row: whose value it is: a column, or n_columns + i: what limit i leaves */
    int *outer; /* of each column: whose place it is now */
};

static double *row_of(const struct simplex *simplex, int row)
{
    return simplex->cells + (size_t)row * simplex->width;
}

/* The column with which the goal grows the fastest, or -1. */
static int choose_column(const struct simplex *simplex)
{
    const double *goal = row_of(simplex, simplex->n_rows);
    int best = -1;
    for (int i = 0; i < simplex->n_columns; i++)
        if (goal[i] < -tiny && (best < 0 || goal[i] < goal[best]))
            best = i;
    return best;
}

/* The row that is used up first when the column grows, or -1. */
static int choose_row(const struct simplex *simplex, int column)
{
    int best = -1;
    double least = INFINITY;
    for (int i = 0; i < simplex->n_rows; i++) {
        const double *row = row_of(simplex, i);
        if (row[column] < 1e-7)
            continue;
        double ratio = row[simplex->n_columns] / row[column];
        if (ratio < least) {
            least = ratio;
            best = i;
        }
    }
    return best;
}

/* n: a multiple of LANES. */
static void subtract(double *from, const double *row, double factor, int n)
{
    for (int i = 0; i < n; i += LANES)
        *(lanes *)(from + i) -= factor * *(const lanes *)(row + i);
}

static void fill(struct simplex *simplex, const double *rows, const double *limits, int goal)
{
    for (int i = 0; i < simplex->n_rows; i++) {
        double *row = row_of(simplex, i);
        memcpy(row, rows + (size_t)i * simplex->n_columns, simplex->n_columns * sizeof(*row));
        row[simplex->n_columns] = limits[i] + 1e-7 * (1 + (i * 7919 % 1009) / 1009.0);
        simplex->basic[i] = simplex->n_columns + i;
    }
    for (int i = 0; i < simplex->n_columns; i++)
        simplex->outer[i] = i;
    row_of(simplex, simplex->n_rows)[goal] = -1;
}

int tccl_simplex(const double *rows, const double *limits, int n_rows, int n_columns, int goal,
                 double *values, struct tccl_error *err)
{
    struct simplex simplex = {
        .n_rows = n_rows, .n_columns = n_columns, .width = (n_columns + LANES) / LANES * LANES};
    cleanup_free double *cells = calloc((size_t)(n_rows + 1) * simplex.width, sizeof(*cells));
    cleanup_free int *basic = calloc(n_rows + 1, sizeof(*basic));
    cleanup_free int *outer = calloc(n_columns, sizeof(*outer));
    int column, steps = 0;
    if (!cells || !basic || !outer)
        return tccl_fail(err, "out of memory");
    simplex.cells = cells;
    simplex.basic = basic;
    simplex.outer = outer;
    fill(&simplex, rows, limits, goal);
    while ((column = choose_column(&simplex)) >= 0) {
        int row = choose_row(&simplex, column);
        if (row < 0)
            return tccl_fail(err, "nothing limits the goal");
        if (++steps > 50 * (n_rows + n_columns))
            return 1;
        /* The row's value and the column's change places. */
        double *own = row_of(&simplex, row), by = 1 / own[column];
        int name = simplex.basic[row];
        for (int i = 0; i < simplex.width; i++)
            own[i] *= by;
        own[column] = by;
        for (int i = 0; i <= simplex.n_rows; i++) {
            double *other = row_of(&simplex, i), factor = other[column];
            if (i == row || factor == 0)
                continue;
            other[column] = 0;
            subtract(other, own, factor, simplex.width);
        }
        simplex.basic[row] = simplex.outer[column];
        simplex.outer[column] = name;
    }
    memset(values, 0, n_columns * sizeof(*values));
    for (int i = 0; i < n_rows; i++)
        if (basic[i] < n_columns)
            values[basic[i]] = row_of(&simplex, i)[n_columns];
    return 0;
}
