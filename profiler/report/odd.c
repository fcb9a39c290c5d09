/* odd.c: figures that are off among equals. Equal is what the symmetries of the description take to
 * each other, whatever was measured. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "measure/pool/workers.h"
#include "search/symmetry.h"

enum { LEAST_LIKES = 2, MOST_TRANSFERS = 2 };
static const double SLOWER = 0.2, SPREADS = 5, AGREE = 1.0 / 6;

struct figure {
    int matrix, row, column;
    double gbps, spread;
    tccl_transfer like[MOST_TRANSFERS]; /* what stands for it and its likes */
    bool compared, off;
    double likes;
    int n_likes;
};

struct figures {
    size_t count;
    struct figure *list;
};

static void add(struct figures *figures, const struct tccl_symmetry *symmetry,
                const struct tccl_matrix *matrix, int i, int row, int column)
{
    const struct tccl_matrix_cell *cell = &matrix->cells[row][column];
    struct tccl_set set;
    if ((cell->state != TCCL_CELL_MEASURED && cell->state != TCCL_CELL_MODEL) || cell->noisy ||
        cell->gbps <= 0)
        return;
    tccl_matrix_set(i, row, column, &set);
    struct figure *figure = &figures->list[figures->count++];
    *figure = (struct figure){
        .matrix = i, .row = row, .column = column, .gbps = cell->gbps, .spread = cell->spread};
    tccl_symmetry_relabel(symmetry, set.transfers, set.count, figure->like);
}

/* Is the figure off among its likes? */
static void judge(const struct figures *figures, struct figure *figure)
{
    double values[TCCL_SIDE * TCCL_SIDE], spreads[TCCL_SIDE * TCCL_SIDE], low = INFINITY, high = 0;
    int n = 0;
    for (size_t i = 0; i < figures->count; i++) {
        const struct figure *other = &figures->list[i];
        if (other == figure || !(other->matrix == figure->matrix &&
                                 memcmp(other->like, figure->like, sizeof(other->like)) == 0))
            continue;
        values[n] = other->gbps;
        spreads[n++] = other->spread;
    }
    figure->compared = n >= LEAST_LIKES;
    if (!figure->compared)
        return;
    figure->n_likes = n;
    figure->likes = tccl_median(values, n);
    double limit = fmax(SLOWER, SPREADS * fmax(figure->spread, tccl_median(spreads, n)));
    figure->off = figure->gbps < (1 - limit) * figure->likes;
    int good = !figure->off;
    for (int i = 0; i < n; i++)
        if (values[i] >= (1 - limit) * figure->likes) {
            low = fmin(low, values[i]);
            high = fmax(high, values[i]);
            good++;
        }
    /* Likes that don't agree are none. */
    if (2 * good <= n + 1 || high - low > AGREE * figure->likes)
        figure->compared = figure->off = false;
}

static struct tccl_device row_of(const struct tccl_matrix *matrices, int i, int row)
{
    return (struct tccl_device){matrices[i].row_kind, (uint8_t)row};
}

static struct tccl_device column_of(const struct tccl_matrix *matrices, int i, int column)
{
    return (struct tccl_device){matrices[i].column_kind, (uint8_t)column};
}

static bool is_of(const struct figure *figure, const struct tccl_matrix *matrices,
                  struct tccl_device device)
{
    return tccl_device_equal(row_of(matrices, figure->matrix, figure->row), device) ||
           tccl_device_equal(column_of(matrices, figure->matrix, figure->column), device);
}

/* What is off of a device; of any where device is NULL. */
static struct tccl_odd sum_up(const struct figures *figures, const struct tccl_matrix *matrices,
                              const struct tccl_device *device)
{
    struct tccl_odd odd = {.of_one = device};
    double worst = 1;
    odd.device = device ? *device : (struct tccl_device){TCCL_MEMORY, 0};
    for (size_t i = 0; i < figures->count; i++) {
        const struct figure *figure = &figures->list[i];
        if (!figure->compared || (device && !is_of(figure, matrices, *device)))
            continue;
        odd.known++;
        odd.off += figure->off;
        if (!figure->off || figure->gbps / figure->likes >= worst)
            continue;
        worst = figure->gbps / figure->likes;
        odd.matrix = figure->matrix;
        odd.row = figure->row;
        odd.column = figure->column;
        odd.gbps = figure->gbps;
        odd.likes = figure->likes;
        odd.n_likes = figure->n_likes;
        /* One with a memory is more likely the device's own. */
        const struct tccl_matrix *matrix = &matrices[figure->matrix];
        if (!device && matrix->row_kind == TCCL_MEMORY)
            odd.device = (struct tccl_device){matrix->column_kind, (uint8_t)figure->column};
        else if (!device && matrix->column_kind == TCCL_MEMORY)
            odd.device = (struct tccl_device){matrix->row_kind, (uint8_t)figure->row};
    }
    return odd;
}

/* Is half of what the device does in some matrix, or of what it sends, or receives, off, and more
 * than one figure, not all with one other device? Figures that are as slow for its likes don't show
 * it. */
static bool is_to_blame(const struct figures *figures, const struct tccl_matrix *matrices,
                        struct tccl_device device)
{
    enum { SENDS = TCCL_MATRICES, RECEIVES, SIDES };
    int off[SIDES] = {0}, known[SIDES] = {0};
    double fastest = 0; /* of those that are off */
    struct tccl_device last = {TCCL_MEMORY, 0};
    bool several = false;
    for (size_t i = 0; i < figures->count; i++) {
        const struct figure *figure = &figures->list[i];
        if (!figure->off || !is_of(figure, matrices, device))
            continue;
        struct tccl_device other = row_of(matrices, figure->matrix, figure->row);
        if (tccl_device_equal(other, device))
            other = column_of(matrices, figure->matrix, figure->column);
        several |= other.kind == TCCL_MEMORY || (fastest > 0 && !tccl_device_equal(other, last));
        last = other;
        fastest = fmax(fastest, figure->gbps);
    }
    for (size_t i = 0; i < figures->count; i++) {
        const struct figure *figure = &figures->list[i];
        bool counts[SIDES] = {false};
        struct tccl_set set;
        if (!figure->compared || !is_of(figure, matrices, device) ||
            (!figure->off && (1 - SLOWER) * figure->likes <= fastest))
            continue;
        counts[figure->matrix] = true;
        tccl_matrix_set(figure->matrix, figure->row, figure->column, &set);
        for (int t = 0; t < set.count; t++) {
            counts[SENDS] |= tccl_device_equal(tccl_transfer_source(set.transfers[t]), device);
            counts[RECEIVES] |= tccl_device_equal(tccl_transfer_sink(set.transfers[t]), device);
        }
        for (int side = 0; side < SIDES; side++) {
            known[side] += counts[side];
            off[side] += counts[side] && figure->off;
        }
    }
    for (int side = 0; side < SIDES; side++)
        if (several && off[side] > 1 && 2 * off[side] >= known[side])
            return true;
    return false;
}

/* The device with most figures that are off, of those that are to blame; off is 0: there is none.
 */
static struct tccl_odd worst_device(const struct tccl_machine *machine,
                                    const struct figures *figures,
                                    const struct tccl_matrix *matrices)
{
    const struct {
        uint8_t kind;
        int count;
    } kinds[] = {{TCCL_GPU, machine->n_gpus},
                 {TCCL_NIC, machine->n_nics},
                 {TCCL_MEMORY, machine->n_memories}};
    struct tccl_odd worst = {.off = 0};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (int i = 0; i < kinds[k].count; i++) {
            struct tccl_device device = {kinds[k].kind, (uint8_t)i};
            struct tccl_odd odd = sum_up(figures, matrices, &device);
            if (odd.off > worst.off && is_to_blame(figures, matrices, device))
                worst = odd;
        }
    return worst;
}

int tccl_odd_find(const struct tccl_machine *machine,
                  const struct tccl_matrix matrices[static TCCL_MATRICES],
                  struct tccl_odd odds[static TCCL_ODDS], struct tccl_error *err)
{
    struct figures figures = {0};
    cleanup_free struct figure *list =
        calloc((size_t)TCCL_MATRICES * TCCL_SIDE * TCCL_SIDE, sizeof(*list));
    struct tccl_symmetry *symmetry = tccl_symmetry_of_machine(machine, NULL, 0, err);
    int count = 0;
    if (!list || !symmetry) {
        tccl_symmetry_free(symmetry);
        return tccl_fail(err, "out of memory");
    }
    figures.list = list;
    for (int i = 0; i < TCCL_MATRICES; i++)
        for (int row = 0; row < matrices[i].rows; row++)
            for (int column = 0; column < matrices[i].columns; column++)
                add(&figures, symmetry, &matrices[i], i, row, column);
    tccl_symmetry_free(symmetry);
    for (size_t i = 0; i < figures.count; i++)
        judge(&figures, &figures.list[i]);
    while (count < TCCL_ODDS) {
        struct tccl_odd odd = worst_device(machine, &figures, matrices);
        if (odd.off == 0)
            odd = sum_up(&figures, matrices, NULL);
        if (odd.off == 0)
            break;
        for (size_t i = 0; i < figures.count; i++) {
            struct figure *figure = &figures.list[i];
            if (odd.of_one
                    ? is_of(figure, matrices, odd.device)
                    : is_of(figure, matrices, row_of(matrices, odd.matrix, odd.row)) &&
                          is_of(figure, matrices, column_of(matrices, odd.matrix, odd.column)))
                figure->compared = figure->off = false;
        }
        odds[count++] = odd;
    }
    return count;
}

void tccl_odd_format(const struct tccl_machine *machine, const struct tccl_odd *odd,
                     char text[static TCCL_ODD_TEXT])
{
    char what[2 * TCCL_LABEL + 64], label[TCCL_LABEL];
    tccl_matrix_say(odd->matrix, machine, odd->row, odd->column, what);
    int used = snprintf(text, TCCL_ODD_TEXT, "%s at %.1f GB/s, the %d like it at %.1f", what,
                        odd->gbps, odd->n_likes, odd->likes);
    if (!odd->of_one || odd->off < 2 || used >= TCCL_ODD_TEXT)
        return;
    tccl_device_label(machine, odd->device, label);
    snprintf(text + used, (size_t)(TCCL_ODD_TEXT - used), "; %d of %d figures of %s are off",
             odd->off, odd->known, label);
}

const char *tccl_odd_busid(const struct tccl_machine *machine, const struct tccl_odd *odd)
{
    return odd->device.kind == TCCL_GPU   ? machine->gpus[odd->device.index].busid
           : odd->device.kind == TCCL_NIC ? machine->nics[odd->device.index].busid
                                          : "";
}

void tccl_odd_advise(const struct tccl_machine *machine, const struct tccl_odd *odd,
                     const struct tccl_doctor_facts *facts,
                     const struct tccl_doctor_findings *findings, char text[static TCCL_ODD_TEXT])
{
    const char *busid = tccl_odd_busid(machine, odd);
    int device = facts->n_devices - 1;
    while (*busid && device >= 0 && strcmp(facts->devices[device].busid, busid) != 0)
        device--;
    for (int i = 0; *busid && device >= 0 && i < findings->count; i++)
        if (findings->list[i].device >= 0 &&
            tccl_doctor_is_below(facts, device, findings->list[i].device)) {
            snprintf(text, TCCL_ODD_TEXT, "tccl-check machine sees at %s here: %.120s",
                     facts->devices[findings->list[i].device].busid, findings->list[i].what);
            return;
        }
    if (*busid && device >= 0)
        snprintf(text, TCCL_ODD_TEXT,
                 "look at its slot, %s; tccl-check machine sees nothing there%s", busid,
                 findings->n_unknown ? ", as far as it sees" : "");
    else if (*busid)
        snprintf(text, TCCL_ODD_TEXT, "look at its slot, %s, with tccl-check machine", busid);
    else
        snprintf(text, TCCL_ODD_TEXT, "%s",
                 odd->of_one ? "look at the memory modules of that NUMA node"
                             : "look at both slots, with tccl-check machine");
}

int tccl_odd_advised(const struct tccl_profile *profile, const struct tccl_measured *measured,
                     struct tccl_matrix matrices[static TCCL_MATRICES],
                     struct tccl_odd odds[static TCCL_ODDS],
                     char advice[static TCCL_ODDS][TCCL_ODD_TEXT], struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_profile_machine(profile);
    cleanup_free struct tccl_doctor_facts *facts = calloc(1, sizeof(*facts));
    cleanup_free struct tccl_doctor_findings *findings = calloc(1, sizeof(*findings));
    if (!facts || !findings)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < TCCL_MATRICES; i++)
        tccl_matrix_fill(i, machine, measured, &matrices[i]);
    int count = tccl_odd_find(machine, matrices, odds, err);
    if (count > 0 && strcmp(tccl_profile_source(profile), "cuda") == 0) {
        tccl_doctor_read(NULL, NULL, "", facts);
        tccl_doctor_examine(facts, findings);
    }
    for (int i = 0; i < count; i++)
        tccl_odd_advise(machine, &odds[i], facts, findings, advice[i]);
    return count;
}
