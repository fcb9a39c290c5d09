/* bandwidths.h: bandwidth matrices, as one expects them from a bandwidth test: between host and
 * devices, between devices, to and from the network; one way, and both ways at once. */
#pragma once

#include "machine/machine.h"
#include "profile/measured.h"

enum tccl_cell_state {
    TCCL_CELL_IMPOSSIBLE, /* these two can't meet on this machine */
    TCCL_CELL_UNKNOWN,    /* not measured */
    TCCL_CELL_FAILED,     /* could not be measured */
    TCCL_CELL_MEASURED,
    TCCL_CELL_MODEL /* asked from the model */
};

struct tccl_matrix_cell {
    enum tccl_cell_state state;
    bool noisy;
    double gbps, spread; /* where measured, or from the model */
};

enum { TCCL_MATRICES = 13, TCCL_SIDE = 16, TCCL_LABEL = TCCL_NAME };

struct tccl_matrix {
    const char *name;  /* "host_to_gpu" */
    const char *title; /* for people */
    uint8_t row_kind, column_kind;
    int rows, columns;
    struct tccl_matrix_cell cells[TCCL_SIDE][TCCL_SIDE];
    int known; /* cells with a bandwidth */
    int from_model;
    double min, median, max; /* of those, GB/s */
};

/* Fills in the i-th matrix, 0 <= i < TCCL_MATRICES. Where no cell is possible (no NIC, no P2P), it
 * has 0 rows. */
void tccl_matrix_fill(int i, const struct tccl_machine *machine,
                      const struct tccl_measured *measured, struct tccl_matrix *matrix);

/* The set of transfers of a cell of the i-th matrix. */
void tccl_matrix_set(int i, int row, int column, struct tccl_set *set);
/* The same in words: "GPU 5 writes to memory 1". */
void tccl_matrix_say(int i, const struct tccl_machine *machine, int row, int column,
                     char text[static 2 * TCCL_NAME + 64]);

/* "GPU 0", "memory 1", "mlx5_0". */
void tccl_device_label(const struct tccl_machine *machine, struct tccl_device device,
                       char label[static TCCL_LABEL]);

/* What stands in a cell: "12.30", "12.30~" noisy, "12.30*" from the model, "-" impossible, "?" not
 * measured, "!" failed. */
enum { TCCL_CELL_TEXT = 32 };
void tccl_cell_format(const struct tccl_matrix_cell *cell, char text[static TCCL_CELL_TEXT]);
/* The bandwidth against the fastest of all matrices that are shown (GB/s), 0 to 1; -1 where there
 * is none. */
double tccl_cell_heat(const struct tccl_matrix_cell *cell, double fastest);

/* Prints it aligned; in colours against the fastest of all matrices, unless that is 0. */
void tccl_matrix_print(const struct tccl_matrix *matrix, const struct tccl_machine *machine,
                       double fastest, FILE *out);
/* A new reference; NULL only without memory. */
json_t *tccl_matrix_to_json(const struct tccl_matrix *matrix, const struct tccl_machine *machine);
