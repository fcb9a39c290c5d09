/* bandwidths.c: bandwidth matrices. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>

#include "measure/pool/workers.h"

enum { LABEL_WIDTH = 10, CELL_WIDTH = 9 };

/* The transfers of a cell: who starts them, and which way. */
enum way { WRITES, READS, BOTH };

static const struct kind {
    const char *name, *title;
    uint8_t row, column;
    bool column_starts; /* the device of the column, not that of the row */
    bool mutual;        /* both start one: "write to each other" */
    enum way way;
} kinds[TCCL_MATRICES] = {
    {"host_to_gpu", "host to GPU (the GPU reads from the memory)", TCCL_MEMORY, TCCL_GPU, true,
     false, READS},
    {"gpu_to_host", "GPU to host (the GPU writes to the memory)", TCCL_MEMORY, TCCL_GPU, true,
     false, WRITES},
    {"host_gpu_both", "host and GPU, both ways at once (the slower way)", TCCL_MEMORY, TCCL_GPU,
     true, false, BOTH},
    {"gpu_write", "GPU to GPU, the GPU of the row writes to that of the column", TCCL_GPU, TCCL_GPU,
     false, false, WRITES},
    {"gpu_read", "GPU to GPU, the GPU of the row reads from that of the column", TCCL_GPU, TCCL_GPU,
     false, false, READS},
    {"gpu_write_both", "GPU to GPU, both write to each other at once (the slower way)", TCCL_GPU,
     TCCL_GPU, false, true, WRITES},
    {"gpu_read_both", "GPU to GPU, both read from each other at once (the slower way)", TCCL_GPU,
     TCCL_GPU, false, true, READS},
    {"nic_to_host", "network to host (the NIC writes to the memory)", TCCL_NIC, TCCL_MEMORY, false,
     false, WRITES},
    {"host_to_nic", "host to network (the NIC reads from the memory)", TCCL_NIC, TCCL_MEMORY, false,
     false, READS},
    {"nic_host_both", "network and host, both ways at once (the slower way)", TCCL_NIC, TCCL_MEMORY,
     false, false, BOTH},
    {"nic_to_gpu", "network to GPU, GPUDirect (the NIC writes to the GPU)", TCCL_NIC, TCCL_GPU,
     false, false, WRITES},
    {"gpu_to_nic", "GPU to network, GPUDirect (the NIC reads from the GPU)", TCCL_NIC, TCCL_GPU,
     false, false, READS},
    {"nic_gpu_both", "network and GPU, GPUDirect, both ways at once (the slower way)", TCCL_NIC,
     TCCL_GPU, false, false, BOTH},
};

static int devices(const struct tccl_machine *machine, uint8_t kind)
{
    return kind == TCCL_GPU      ? machine->n_gpus
           : kind == TCCL_MEMORY ? machine->n_memories
                                 : machine->n_nics;
}

void tccl_matrix_set(int i, int row, int column, struct tccl_set *set)
{
    const struct kind *kind = &kinds[i];
    struct tccl_device a = {kind->row, (uint8_t)row}, b = {kind->column, (uint8_t)column};
    struct tccl_device starts = kind->column_starts ? b : a, other = kind->column_starts ? a : b;
    *set = (struct tccl_set){0};
    if (kind->way != READS)
        tccl_set_add(set, tccl_transfer_make(starts, false, other));
    if (kind->way != WRITES)
        tccl_set_add(set, tccl_transfer_make(starts, true, other));
    if (kind->mutual)
        tccl_set_add(set, tccl_transfer_make(other, kind->way == READS, starts));
}

static struct tccl_matrix_cell make_cell(const struct tccl_machine *machine,
                                         const struct tccl_measured *measured,
                                         const struct tccl_set *set)
{
    struct tccl_measurement value;
    for (int i = 0; i < set->count; i++)
        if (!tccl_transfer_valid(set->transfers[i]) ||
            tccl_machine_allows(machine, set->transfers[i], NULL) != 0)
            return (struct tccl_matrix_cell){.state = TCCL_CELL_IMPOSSIBLE};
    enum tccl_answer answer = tccl_measured_ask(measured, set, &value);
    if (answer == TCCL_NO_ANSWER)
        return (struct tccl_matrix_cell){.state = TCCL_CELL_UNKNOWN};
    if (value.failed)
        return (struct tccl_matrix_cell){.state = TCCL_CELL_FAILED};
    return (struct tccl_matrix_cell){.state = answer == TCCL_ANSWER_MODEL ? TCCL_CELL_MODEL
                                                                          : TCCL_CELL_MEASURED,
                                     .noisy = value.noisy,
                                     .gbps = value.gbps,
                                     .spread = value.spread};
}

static bool has_value(const struct tccl_matrix_cell *cell)
{
    return cell->state == TCCL_CELL_MEASURED || cell->state == TCCL_CELL_MODEL;
}

static void summarize(struct tccl_matrix *matrix)
{
    double values[TCCL_SIDE * TCCL_SIDE];
    int n = 0;
    for (int i = 0; i < matrix->rows; i++)
        for (int j = 0; j < matrix->columns; j++) {
            const struct tccl_matrix_cell *cell = &matrix->cells[i][j];
            matrix->from_model += cell->state == TCCL_CELL_MODEL;
            if (has_value(cell))
                values[n++] = cell->gbps;
        }
    matrix->known = n;
    if (n == 0)
        return;
    matrix->median = tccl_median(values, n);
    matrix->min = values[0];
    matrix->max = values[n - 1];
}

void tccl_matrix_fill(int i, const struct tccl_machine *machine,
                      const struct tccl_measured *measured, struct tccl_matrix *matrix)
{
    const struct kind *kind = &kinds[i];
    int n_possible = 0;
    struct tccl_set set;
    *matrix = (struct tccl_matrix){.name = kind->name,
                                   .title = kind->title,
                                   .row_kind = kind->row,
                                   .column_kind = kind->column,
                                   .rows = devices(machine, kind->row),
                                   .columns = devices(machine, kind->column)};
    for (int row = 0; row < matrix->rows; row++)
        for (int column = 0; column < matrix->columns; column++) {
            tccl_matrix_set(i, row, column, &set);
            matrix->cells[row][column] = make_cell(machine, measured, &set);
            n_possible += matrix->cells[row][column].state != TCCL_CELL_IMPOSSIBLE;
        }
    if (n_possible == 0)
        matrix->rows = matrix->columns = 0;
    summarize(matrix);
}

void tccl_device_label(const struct tccl_machine *machine, struct tccl_device device,
                       char label[static TCCL_LABEL])
{
    if (device.kind == TCCL_NIC)
        snprintf(label, TCCL_LABEL, "%s", machine->nics[device.index].name);
    else
        snprintf(label, TCCL_LABEL, "%s %d", device.kind == TCCL_GPU ? "GPU" : "memory",
                 device.index);
}

void tccl_cell_format(const struct tccl_matrix_cell *cell, char text[static TCCL_CELL_TEXT])
{
    static const char *const without[] = {
        [TCCL_CELL_IMPOSSIBLE] = "-", [TCCL_CELL_UNKNOWN] = "?", [TCCL_CELL_FAILED] = "!"};
    if (has_value(cell))
        snprintf(text, TCCL_CELL_TEXT, "%.2f%s", cell->gbps,
                 cell->noisy                      ? "~"
                 : cell->state == TCCL_CELL_MODEL ? "*"
                                                  : "");
    else
        snprintf(text, TCCL_CELL_TEXT, "%s", without[cell->state]);
}

double tccl_cell_heat(const struct tccl_matrix_cell *cell, double fastest)
{
    if (!has_value(cell))
        return -1;
    return fastest > 0 ? fmin(1, cell->gbps / fastest) : 0;
}

void tccl_matrix_print(const struct tccl_matrix *matrix, const struct tccl_machine *machine,
                       double fastest, FILE *out)
{
    char label[TCCL_LABEL];
    fprintf(out, "%s\n", matrix->title);
    if (matrix->rows == 0) {
        fputs("  not possible on this machine\n", out);
        return;
    }
    fprintf(out, "%-*s", LABEL_WIDTH, "");
    for (int i = 0; i < matrix->columns; i++) {
        tccl_device_label(machine, (struct tccl_device){matrix->column_kind, (uint8_t)i}, label);
        fprintf(out, "%*.*s%s", CELL_WIDTH - 1, CELL_WIDTH - 1, label,
                i < matrix->columns - 1 ? " " : "\n");
    }
    for (int i = 0; i < matrix->rows; i++) {
        tccl_device_label(machine, (struct tccl_device){matrix->row_kind, (uint8_t)i}, label);
        fprintf(out, "%-*.*s", LABEL_WIDTH, LABEL_WIDTH - 1, label);
        for (int j = 0; j < matrix->columns; j++) {
            const struct tccl_matrix_cell *cell = &matrix->cells[i][j];
            char text[TCCL_CELL_TEXT];
            double heat = fastest > 0 ? tccl_cell_heat(cell, fastest) : -1;
            /* Green near the fastest of all matrices, yellow, red far below it. */
            const char *colour = heat < 0     ? ""
                                 : heat < 0.5 ? "\033[31m"
                                 : heat < 0.8 ? "\033[33m"
                                              : "\033[32m";
            tccl_cell_format(cell, text);
            /* Numbers stand below each other, whether a sign follows them or not. */
            bool sign = has_value(cell) && (cell->noisy || cell->state == TCCL_CELL_MODEL);
            fprintf(out, "%s%*s%s%s", colour, CELL_WIDTH - !sign, text, sign ? "" : " ",
                    *colour ? "\033[0m" : "");
        }
        fputc('\n', out);
    }
    if (matrix->known > 0)
        fprintf(out, "  min %.2f, median %.2f, max %.2f\n", matrix->min, matrix->median,
                matrix->max);
}

static const char *const state_names[] = {
    [TCCL_CELL_IMPOSSIBLE] = "impossible", [TCCL_CELL_UNKNOWN] = "unknown",
    [TCCL_CELL_FAILED] = "failed",         [TCCL_CELL_MEASURED] = "measured",
    [TCCL_CELL_MODEL] = "model",
};

static json_t *labels_to_json(const struct tccl_machine *machine, uint8_t kind, int count)
{
    json_t *list = json_array();
    char label[TCCL_LABEL];
    for (int i = 0; i < count; i++) {
        tccl_device_label(machine, (struct tccl_device){kind, (uint8_t)i}, label);
        json_array_append_new(list, json_string(label));
    }
    return list;
}

/* Of each cell, row by row, its GB/s, spread, state, or whether it is noisy. */
static json_t *cells_to_json(const struct tccl_matrix *matrix, char what)
{
    json_t *rows = json_array();
    for (int i = 0; i < matrix->rows; i++) {
        json_t *row = json_array();
        for (int j = 0; j < matrix->columns; j++) {
            const struct tccl_matrix_cell *cell = &matrix->cells[i][j];
            json_array_append_new(row, what == 'n'        ? json_boolean(cell->noisy)
                                       : what == 't'      ? json_string(state_names[cell->state])
                                       : !has_value(cell) ? json_null()
                                       : what == 'g'      ? json_real(cell->gbps)
                                                          : json_real(cell->spread));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *known(const struct tccl_matrix *matrix, double value)
{
    return matrix->known > 0 ? json_real(value) : json_null();
}

json_t *tccl_matrix_to_json(const struct tccl_matrix *matrix, const struct tccl_machine *machine)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     matrix->name, "title", matrix->title, "rows",
                     labels_to_json(machine, matrix->row_kind, matrix->rows), "columns",
                     labels_to_json(machine, matrix->column_kind, matrix->columns), "gbps",
                     cells_to_json(matrix, 'g'), "spread", cells_to_json(matrix, 's'), "state",
                     cells_to_json(matrix, 't'), "noisy", cells_to_json(matrix, 'n'), "min",
                     known(matrix, matrix->min), "median", known(matrix, matrix->median), "max",
                     known(matrix, matrix->max));
}

void tccl_matrix_say(int i, const struct tccl_machine *machine, int row, int column,
                     char text[static 2 * TCCL_LABEL + 64])
{
    const struct kind *kind = &kinds[i];
    char a[TCCL_LABEL], b[TCCL_LABEL];
    tccl_device_label(machine, (struct tccl_device){kind->row, (uint8_t)row}, a);
    tccl_device_label(machine, (struct tccl_device){kind->column, (uint8_t)column}, b);
    const char *starts = kind->column_starts ? b : a, *other = kind->column_starts ? a : b;
    if (kind->mutual || kind->way == BOTH)
        snprintf(text, 2 * TCCL_LABEL + 64, "%s and %s, %sboth ways at once,", a, b,
                 !kind->mutual        ? ""
                 : kind->way == READS ? "reading "
                                      : "writing ");
    else
        snprintf(text, 2 * TCCL_LABEL + 64, "%s %s %s", starts,
                 kind->way == READS ? "reads from" : "writes to", other);
}
