/* Figures that are off among equals: none on any model, with noise or without; one that is planted
 * is found, on its device. */
#include "machines.h"
#include "profile/measured.h"
#include "report/report.h"

static const struct tccl_machine *machine;
static struct tccl_matrix matrices[TCCL_MATRICES];
static struct tccl_odd odds[TCCL_ODDS];

static void fill(const char *name)
{
    struct tccl_measured measured = {.model = load_machine(name)};
    machine = machine_of(name);
    for (int i = 0; i < TCCL_MATRICES; i++)
        tccl_matrix_fill(i, machine, &measured, &matrices[i]);
}

static double normal(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += drand48();
    return sum - 6;
}

static void add_noise(double noise)
{
    for (int i = 0; i < TCCL_MATRICES; i++)
        for (int row = 0; row < matrices[i].rows; row++)
            for (int column = 0; column < matrices[i].columns; column++) {
                struct tccl_matrix_cell *cell = &matrices[i].cells[row][column];
                cell->gbps *= 1 + noise * normal();
                cell->spread = noise;
            }
}

/* So many figures were not measured. */
static void forget(double part)
{
    for (int i = 0; i < TCCL_MATRICES; i++)
        for (int row = 0; row < matrices[i].rows; row++)
            for (int column = 0; column < matrices[i].columns; column++)
                if (drand48() < part)
                    matrices[i].cells[row][column].state = TCCL_CELL_UNKNOWN;
}

/* All that a device takes part in, or in one matrix (-1: all), is slower. */
static int slow_down(uint8_t kind, int index, int only, double factor)
{
    int changed = 0;
    for (int i = 0; i < TCCL_MATRICES; i++)
        for (int row = 0; row < matrices[i].rows; row++)
            for (int column = 0; column < matrices[i].columns; column++)
                if ((only < 0 || only == i) &&
                    ((matrices[i].row_kind == kind && row == index) ||
                     (matrices[i].column_kind == kind && column == index))) {
                    matrices[i].cells[row][column].gbps *= factor;
                    changed += matrices[i].cells[row][column].gbps > 0;
                }
    return changed;
}

static void say(int count)
{
    char text[TCCL_ODD_TEXT];
    for (int i = 0; i < count; i++) {
        tccl_odd_format(machine, &odds[i], text);
        fprintf(stderr, "  %s: %s\n", machine->name, text);
    }
}

static const char *const more[] = {"turin-pex890", "wrx90-16gpu"};
enum { ALL = MACHINE_NAMES + COUNT(more) };

static const char *name_of(int m)
{
    return m < MACHINE_NAMES ? machine_names[m] : more[m - MACHINE_NAMES];
}

TEST(no_false_alarm)
{
    static const double noises[] = {0, 0.01, 0.03, 0.05, 0.1};
    check_seed();
    for (int m = 0; m < ALL; m++)
        for (size_t n = 0; n < COUNT(noises); n++)
            for (int i = 0; i < (noises[n] > 0 ? 10 : 1); i++) {
                fill(name_of(m));
                add_noise(noises[n]);
                int count = tccl_odd_find(machine, matrices, odds, ERR);
                CHECK_INT(count, 0);
                say(count);
            }
}

/* Where a machine has equals: on amd-4gpu the memories of three NUMA nodes are told apart by
 * measurements alone. */
static bool has_equals(void)
{
    return strcmp(machine->name, "amd-4gpu") != 0;
}

TEST(a_slow_gpu)
{
    check_seed();
    for (int m = 0; m < ALL; m++)
        for (int gpu = 0; gpu < machine_of(name_of(m))->n_gpus; gpu++) {
            fill(name_of(m));
            add_noise(0.03);
            slow_down(TCCL_GPU, gpu, -1, 0.5);
            int count = tccl_odd_find(machine, matrices, odds, ERR);
            CHECK_INT(count, has_equals());
            if (count != 1) {
                fprintf(stderr, "%s: GPU %d\n", machine->name, gpu);
                say(count);
                continue;
            }
            CHECK(odds[0].of_one && odds[0].device.kind == TCCL_GPU);
            CHECK_INT(odds[0].device.index, gpu);
            CHECK_STR(tccl_odd_busid(machine, &odds[0]), machine->gpus[gpu].busid);
            CHECK(odds[0].gbps < 0.7 * odds[0].likes && odds[0].n_likes >= 2);
        }
}

/* Two of them, in a machine that has enough others. */
TEST(two_slow_gpus)
{
    check_seed();
    for (int m = 0; m < ALL; m++) {
        fill(name_of(m));
        if (machine->n_gpus < 8)
            continue;
        add_noise(0.02);
        slow_down(TCCL_GPU, 1, -1, 0.5);
        slow_down(TCCL_GPU, machine->n_gpus - 1, -1, 0.5);
        int count = tccl_odd_find(machine, matrices, odds, ERR);
        CHECK_INT(count, 2);
        int first = count == 2 && odds[0].device.index == 1 ? 0 : 1;
        CHECK_INT(odds[first].device.index, 1);
        CHECK_INT(odds[1 - first].device.index, machine->n_gpus - 1);
        if (count != 2)
            say(count);
    }
}

/* Links that carry less in one direction, or a NIC's: each is one device, whatever else is slow. */
TEST(slow_links)
{
    static const struct {
        const char *model, *links[2];
        struct tccl_device devices[2];
        int n;
    } rows[] = {
        {"h100-8gpu", {"g2 out", "g5 in"}, {{TCCL_GPU, 2}, {TCCL_GPU, 5}}, 2},
        {"dual-8gpu", {"g2 out", "g5 in"}, {{TCCL_GPU, 2}, {TCCL_GPU, 5}}, 2},
        {"dual-8gpu", {"g1 in", "g6 in"}, {{TCCL_GPU, 1}, {TCCL_GPU, 6}}, 2},
        {"h100-8gpu", {"n1 send", "n1 receive"}, {{TCCL_NIC, 1}}, 1},
        {"h100-8gpu", {"n3 send"}, {{TCCL_NIC, 3}}, 1},
    };
    check_seed();
    for (size_t i = 0; i < COUNT(rows); i++) {
        cleanup_json json_t *json = json_load_file(machine_file(rows[i].model), 0, NULL);
        struct tccl_measured measured = {0};
        struct tccl_model *model;
        size_t at;
        json_t *resource;
        json_array_foreach(json_object_get(json, "resources"), at, resource)
        {
            const char *name = json_string_value(json_object_get(resource, "name"));
            double gbps = json_number_value(json_object_get(resource, "gbps"));
            for (int k = 0; k < 2; k++)
                if (rows[i].links[k] && strcmp(name, rows[i].links[k]) == 0)
                    json_object_set_new(resource, "gbps", json_real(0.45 * gbps));
        }
        CHECK(json_dump_file(json, check_at("slow.json"), 0) == 0);
        MUST(tccl_model_read(check_at("slow.json"), &model, ERR));
        measured.model = model;
        machine = tccl_model_machine(model);
        for (int k = 0; k < TCCL_MATRICES; k++)
            tccl_matrix_fill(k, machine, &measured, &matrices[k]);
        add_noise(0.02);
        forget(0.3); /* the budget was at its end */
        int count = tccl_odd_find(machine, matrices, odds, ERR), before = check_failures;
        CHECK_INT(count, rows[i].n);
        for (int k = 0; k < rows[i].n; k++) {
            bool found = false;
            for (int o = 0; o < count; o++)
                found |= odds[o].of_one && odds[o].device.kind == rows[i].devices[k].kind &&
                         odds[o].device.index == rows[i].devices[k].index;
            CHECK(found);
        }
        if (check_failures > before)
            say(count);
        tccl_model_free(model);
    }
}

/* Where GPUs reach each other in pairs only, one that is slow is no matter of either GPU alone. */
TEST(a_slow_pair)
{
    check_seed();
    fill("dual-8gpu");
    add_noise(0.02);
    for (int i = 0; i < TCCL_MATRICES; i++)
        for (int row = 0; row < matrices[i].rows; row++)
            for (int column = 0; column < matrices[i].columns; column++) {
                struct tccl_matrix_cell *cell = &matrices[i].cells[row][column];
                if (matrices[i].row_kind != TCCL_GPU || matrices[i].column_kind != TCCL_GPU)
                    continue;
                if (row / 2 != column / 2)
                    cell->state = TCCL_CELL_UNKNOWN;
                cell->gbps *= row / 2 == 0 ? 0.5 : 1;
            }
    int count = tccl_odd_find(machine, matrices, odds, ERR), before = check_failures;
    CHECK_INT(count, 1);
    CHECK(!odds[0].of_one && odds[0].row / 2 == 0 && odds[0].column / 2 == 0);
    if (check_failures > before)
        say(count);
}

/* What was not measured, failed or is noisy says nothing. */
TEST(nothing_known)
{
    fill("dual-8gpu");
    slow_down(TCCL_GPU, 3, -1, 0.5);
    for (int i = 0; i < TCCL_MATRICES; i++)
        for (int row = 0; row < matrices[i].rows; row++)
            for (int column = 0; column < matrices[i].columns; column++)
                if (row == 3 || column == 3)
                    matrices[i].cells[row][column].noisy = true;
    CHECK_INT(tccl_odd_find(machine, matrices, odds, ERR), 0);
    for (int i = 0; i < TCCL_MATRICES; i++)
        for (int row = 0; row < matrices[i].rows; row++)
            for (int column = 0; column < matrices[i].columns; column++)
                matrices[i].cells[row][column] =
                    (struct tccl_matrix_cell){.state = TCCL_CELL_UNKNOWN};
    CHECK_INT(tccl_odd_find(machine, matrices, odds, ERR), 0);
}

TEST(words)
{
    static struct tccl_doctor_facts facts;
    static struct tccl_doctor_findings findings;
    char text[TCCL_ODD_TEXT];
    fill("dual-8gpu");
    matrices[1].cells[1][5].gbps /= 2;
    CHECK_INT(tccl_odd_find(machine, matrices, odds, ERR), 1);
    tccl_odd_format(machine, &odds[0], text);
    CHECK_STR(text, "GPU 5 writes to memory 1 at 12.3 GB/s, the 7 like it at 24.6");
    CHECK(!odds[0].of_one);
    tccl_odd_advise(machine, &odds[0], &facts, &findings, text);
    CHECK_HOLDS(text, check_printf("look at its slot, %s, with", machine->gpus[5].busid));
    /* It is here, below a bridge that the doctor has something to say of. */
    facts.n_devices = 2;
    facts.devices[0] = (struct tccl_doctor_device){
        .kind = TCCL_DOCTOR_BRIDGE, .busid = "0000:a0:01.0", .above = -1};
    facts.devices[1].above = 0;
    strcpy(facts.devices[1].busid, machine->gpus[5].busid);
    tccl_odd_advise(machine, &odds[0], &facts, &findings, text);
    CHECK_HOLDS(text, "tccl-check machine sees nothing there");
    findings.count = 1;
    findings.list[0] =
        (struct tccl_doctor_finding){.device = 0, .what = "its link is trained at x8"};
    tccl_odd_advise(machine, &odds[0], &facts, &findings, text);
    CHECK_STR(text, "tccl-check machine sees at 0000:a0:01.0 here: its link is trained at x8");
    fill("dual-8gpu");
    slow_down(TCCL_GPU, 5, 1, 0.5);
    slow_down(TCCL_GPU, 5, 0, 0.5);
    slow_down(TCCL_GPU, 5, 2, 0.5);
    slow_down(TCCL_GPU, 5, 3, 0.5);
    slow_down(TCCL_GPU, 5, 4, 0.5);
    CHECK_INT(tccl_odd_find(machine, matrices, odds, ERR), 1);
    tccl_odd_format(machine, &odds[0], text);
    CHECK_HOLDS(text, "figures of GPU 5 are off");
}
