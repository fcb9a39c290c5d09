/* Bandwidth matrices: each cell is the set that its title says; what is not known is not a number.
 */
#include "profiles.h"
#include "report/report.h"

enum { LINE = 100 };

static const struct {
    const char *name, *set; /* of row 1, column 2 */
} expected[TCCL_MATRICES] = {
    {"host_to_gpu", "g2<m1"},         {"gpu_to_host", "g2>m1"}, {"host_gpu_both", "g2>m1 g2<m1"},
    {"gpu_write", "g1>g2"},           {"gpu_read", "g1<g2"},    {"gpu_write_both", "g1>g2 g2>g1"},
    {"gpu_read_both", "g1<g2 g2<g1"}, {"nic_to_host", "n1>m2"}, {"host_to_nic", "n1<m2"},
    {"nic_host_both", "n1>m2 n1<m2"}, {"nic_to_gpu", "n1>g2"},  {"gpu_to_nic", "n1<g2"},
    {"nic_gpu_both", "n1>g2 n1<g2"},
};

/* Eight GPUs, four memories and NICs, everything allowed. */
static struct tccl_machine big_machine(void)
{
    struct tccl_machine machine = sample_machine();
    machine.n_gpus = 8;
    machine.n_memories = machine.n_nics = 4;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            machine.p2p[i][j] = i != j;
    for (int i = 0; i < 4; i++) {
        snprintf(machine.nics[i].name, sizeof(machine.nics[i].name), "a_very_long_name_%d", i);
        for (int j = 0; j < 8; j++)
            machine.gpudirect[i][j] = true;
    }
    return machine;
}

/* One measured set is in one cell, that of its name. */
TEST(places)
{
    struct tccl_machine machine = big_machine();
    for (int i = 0; i < TCCL_MATRICES; i++) {
        cleared_by(tccl_measured_clear) struct tccl_measured measured = {.lines = 0};
        struct tccl_matrix matrix;
        know(&measured, expected[i].set, (struct tccl_measurement){.gbps = 7.5});
        int found = 0;
        for (int j = 0; j < TCCL_MATRICES; j++) {
            tccl_matrix_fill(j, &machine, &measured, &matrix);
            found += matrix.known;
            if (j != i)
                continue;
            CHECK_STR(matrix.name, expected[i].name);
            CHECK_INT(matrix.cells[1][2].state, TCCL_CELL_MEASURED);
            CHECK(matrix.cells[1][2].gbps == 7.5 && matrix.median == 7.5);
            CHECK_INT(matrix.cells[0][1].state, TCCL_CELL_UNKNOWN);
        }
        /* Both ways between two GPUs stand in two cells. */
        CHECK_INT(found, strstr(expected[i].name, "gpu_write_both") ||
                                 strstr(expected[i].name, "gpu_read_both")
                             ? 2
                             : 1);
    }
}

static void check_cell(const struct tccl_matrix *matrix, int row, int column, const char *text)
{
    char found[TCCL_CELL_TEXT];
    tccl_cell_format(&matrix->cells[row][column], found);
    CHECK_STR(found, text);
}

TEST(cells)
{
    struct tccl_machine machine = sample_machine();
    cleared_by(tccl_measured_clear) struct tccl_measured measured = {.lines = 0};
    struct tccl_matrix matrix;
    know(&measured, "g0>g1", (struct tccl_measurement){.gbps = 12.345});
    know(&measured, "g1>g0", (struct tccl_measurement){.gbps = 3, .noisy = true, .spread = 0.5});
    know(&measured, "g2>g3", (struct tccl_measurement){.failed = true});
    know(&measured, "g3>g2", (struct tccl_measurement){.failed = true});
    know(&measured, "g3>g2", (struct tccl_measurement){.gbps = 6});
    know(&measured, "g3>g2", (struct tccl_measurement){.failed = true});
    machine.p2p[0][2] = machine.p2p[2][0] = false;
    tccl_matrix_fill(3, &machine, &measured, &matrix);
    check_cell(&matrix, 0, 0, "-");
    check_cell(&matrix, 0, 1, "12.35");
    check_cell(&matrix, 1, 0, "3.00~");
    check_cell(&matrix, 2, 3, "!");
    check_cell(&matrix, 3, 2, "6.00");
    check_cell(&matrix, 0, 2, "-");
    check_cell(&matrix, 1, 2, "?");
    CHECK_INT(matrix.known, 3);
    CHECK(matrix.min == 3 && matrix.median == 6 && matrix.max == 12.345);
    CHECK(tccl_cell_heat(&matrix.cells[0][1], 12.345) == 1);
    CHECK(tccl_cell_heat(&matrix.cells[0][1], 24.69) == 0.5); /* another matrix is faster */
    CHECK(tccl_cell_heat(&matrix.cells[0][0], 12.345) < 0);
    cleanup_json json_t *json = tccl_matrix_to_json(&matrix, &machine);
    json_t *row = json_array_get(json_object_get(json, "gbps"), 0);
    CHECK(json_is_null(json_array_get(row, 0)));
    CHECK(json_real_value(json_array_get(row, 1)) == 12.345);
}

/* All lines of a large machine fit; colours add nothing but escapes. */
TEST(print)
{
    struct tccl_machine machine = big_machine();
    struct tccl_measured measured = {.lines = 0};
    struct tccl_matrix matrix;
    for (int i = 0; i < TCCL_MATRICES; i++) {
        cleanup_free char *text = NULL;
        size_t size;
        tccl_matrix_fill(i, &machine, &measured, &matrix);
        for (int row = 0; row < matrix.rows; row++)
            for (int column = 0; column < matrix.columns; column++)
                matrix.cells[row][column] = (struct tccl_matrix_cell){
                    .state = TCCL_CELL_MEASURED, .gbps = 123.456 + row, .noisy = column % 2};
        FILE *out = open_memstream(&text, &size);
        tccl_matrix_print(&matrix, &machine, 0, out);
        fclose(out);
        CHECK(!strchr(text, '\033'));
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            CHECK(strlen(line) <= LINE);
    }
}

/* A machine without NICs and P2P has no such matrices. */
TEST(impossible)
{
    struct tccl_machine machine = sample_machine();
    struct tccl_measured measured = {.lines = 0};
    struct tccl_matrix matrix;
    machine.n_nics = 0;
    memset(machine.p2p, 0, sizeof(machine.p2p));
    for (int i = 0; i < TCCL_MATRICES; i++) {
        tccl_matrix_fill(i, &machine, &measured, &matrix);
        CHECK_INT(matrix.rows > 0, i < 3);
        CHECK_INT(matrix.known, 0);
    }
}
