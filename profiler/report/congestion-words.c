/* congestion-words.c: what is said of a congested set: who does what together, and how fast. Only
 * what was observed: the members, what they have in common, their bandwidth together and alone. */
#include <stdarg.h>
#include <stdio.h>

#include "report/bandwidths.h"
#include "report/congestion.h"

enum { NAMED = 4 }; /* members that are named one by one */

struct words {
    char *text;
    size_t length;
    const struct tccl_congested *about;
    const struct tccl_machine *machine;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *words, const char *fmt, ...)
{
    size_t left = TCCL_SENTENCE - words->length;
    va_list args;

    va_start(args, fmt);
    int length = vsnprintf(words->text + words->length, left, fmt, args);
    va_end(args);
    if (length > 0)
        words->length += (size_t)length < left ? (size_t)length : left - 1;
}

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static const char *between(int i, int count)
{
    return i == 0 ? "" : i == count - 1 ? " and " : ", ";
}

static void say_device(struct words *words, struct tccl_device device)
{
    char label[TCCL_LABEL];

    tccl_device_label(words->machine, device, label);
    say(words, "%s", label);
}

/* "GPU 0, GPU 1 and mlx5_0": one end of each member that reads, or writes. */
static void say_ends(struct words *words, struct tccl_device (*end)(tccl_transfer), bool reads,
                     bool writes)
{
    const struct tccl_set *set = &words->about->set;
    int count = 0, said = 0;

    for (int i = 0; i < set->count; i++)
        count += tccl_transfer_reads(set->transfers[i]) ? reads : writes;
    for (int i = 0; i < set->count; i++) {
        if (!(tccl_transfer_reads(set->transfers[i]) ? reads : writes))
            continue;
        say(words, "%s", between(said++, count));
        say_device(words, end(set->transfers[i]));
    }
}

/* ": 7.55 GB/s each, alone 12.30". */
static void say_alone(struct words *words)
{
    const struct tccl_congested *about = words->about;

    say(words, ", alone %s%.2f", about->at_least ? "at least " : "", about->alone);
    if (about->best_alone > about->alone * 1.03)
        say(words, " to %.2f", about->best_alone);
}

static void say_share(struct words *words)
{
    const struct tccl_congested *about = words->about;

    say(words, " share %.2f GB/s: %.2f each", about->set.count * about->gbps, about->gbps);
    say_alone(words);
}

static void say_together(struct words *words, const char *each)
{
    say(words, ": %.2f GB/s%s", words->about->gbps, each);
    say_alone(words);
}

static bool same(struct tccl_device a, struct tccl_device b)
{
    return a.kind == b.kind && a.index == b.index;
}

static bool all_have(const struct tccl_set *set, struct tccl_device (*end)(tccl_transfer))
{
    for (int i = 1; i < set->count; i++)
        if (!same(end(set->transfers[i]), end(set->transfers[0])))
            return false;
    return true;
}

static int count_reads(const struct tccl_set *set)
{
    int reads = 0;

    for (int i = 0; i < set->count; i++)
        reads += tccl_transfer_reads(set->transfers[i]);
    return reads;
}

/* The verb: for a NIC, as seen from the network. */
static const char *verb(tccl_transfer transfer)
{
    bool reads = tccl_transfer_reads(transfer);

    if (tccl_transfer_initiator(transfer).kind == TCCL_NIC)
        return reads ? "sends from" : "receives into";
    return reads ? "reads from" : "writes to";
}

/* "GPU 1 reads from memory 1". */
static void say_transfer(struct words *words, tccl_transfer transfer)
{
    say_device(words, tccl_transfer_initiator(transfer));
    say(words, " %s ", verb(transfer));
    say_device(words, tccl_transfer_target(transfer));
}

/* All on one memory. */
static bool on_one_memory(struct words *words)
{
    const struct tccl_set *set = &words->about->set;
    struct tccl_device memory = tccl_transfer_target(set->transfers[0]);
    int reads = count_reads(set), writes = set->count - reads;

    if (memory.kind != TCCL_MEMORY || !all_have(set, tccl_transfer_target))
        return false;
    if (set->count == 2 && all_have(set, tccl_transfer_initiator)) {
        say_transfer(words, set->transfers[0]);
        say(words, " while it %s it", verb(set->transfers[1]));
        say_together(words, " each way");
        return true;
    }
    if (writes > 0)
        say(words, "%d writer%s", writes, plural(writes));
    if (reads > 0)
        say(words, "%s%d reader%s", writes > 0 ? " and " : "", reads, plural(reads));
    say(words, " %s memory %d (", writes > 0 ? "on" : "of", memory.index);
    say_ends(words, tccl_transfer_initiator, false, true);
    say(words, "%s", reads > 0 && writes > 0 ? "; " : "");
    say_ends(words, tccl_transfer_initiator, true, false);
    say(words, ")");
    say_share(words);
    return true;
}

/* Two GPUs, each with the other. */
static bool each_other(struct words *words)
{
    const tccl_transfer *both = words->about->set.transfers;

    if (words->about->set.count != 2 ||
        tccl_transfer_reads(both[0]) != tccl_transfer_reads(both[1]) ||
        !same(tccl_transfer_initiator(both[0]), tccl_transfer_target(both[1])) ||
        !same(tccl_transfer_initiator(both[1]), tccl_transfer_target(both[0])))
        return false;
    say(words, "GPUs %d and %d %s each other", tccl_transfer_initiator(both[0]).index,
        tccl_transfer_target(both[0]).index,
        tccl_transfer_reads(both[0]) ? "read from" : "write to");
    say_together(words, " each way");
    return true;
}

/* Two transfers that one device starts. */
static bool by_one_device(struct words *words)
{
    const struct tccl_set *set = &words->about->set;

    if (set->count != 2 || !all_have(set, tccl_transfer_initiator))
        return false;
    bool reads_last = !tccl_transfer_reads(set->transfers[0]);
    say_transfer(words, set->transfers[reads_last]);
    say(words, " while it %s ", verb(set->transfers[!reads_last]));
    say_device(words, tccl_transfer_target(set->transfers[!reads_last]));
    say_together(words, "");
    return true;
}

static bool into_one_device(struct words *words)
{
    if (!all_have(&words->about->set, tccl_transfer_sink))
        return false;
    say(words, "%d transfers into ", words->about->set.count);
    say_device(words, tccl_transfer_sink(words->about->set.transfers[0]));
    say(words, " (from ");
    say_ends(words, tccl_transfer_source, true, true);
    say(words, ")");
    say_share(words);
    return true;
}

static bool out_of_one_device(struct words *words)
{
    if (!all_have(&words->about->set, tccl_transfer_source))
        return false;
    say(words, "%d transfers out of ", words->about->set.count);
    say_device(words, tccl_transfer_source(words->about->set.transfers[0]));
    say(words, " (to ");
    say_ends(words, tccl_transfer_sink, true, true);
    say(words, ")");
    say_share(words);
    return true;
}

/* How many members go into and out of something; true if each does one of both. */
typedef bool inside(const struct tccl_machine *machine, struct tccl_device device, int what);

static bool crosses(const struct words *words, inside *is_inside, int what, int *in, int *out)
{
    const struct tccl_set *set = &words->about->set;

    *in = *out = 0;
    for (int i = 0; i < set->count; i++) {
        bool from = is_inside(words->machine, tccl_transfer_source(set->transfers[i]), what);
        bool to = is_inside(words->machine, tccl_transfer_sink(set->transfers[i]), what);
        if (from == to)
            return false;
        *in += to;
        *out += from;
    }
    return true;
}

static void say_crossing(struct words *words, int in, int out, const char *name)
{
    if (in > 0)
        say(words, "%d transfer%s into", in, plural(in));
    if (out > 0)
        say(words, "%s%d%s%s out of", in > 0 ? " and " : "", out, in > 0 ? "" : " transfer",
            in > 0 ? "" : plural(out));
    say(words, " %s", name);
    if (in > 0 && out > 0)
        say_together(words, " each");
    else
        say_share(words);
}

static bool is_device(const struct tccl_machine *machine, struct tccl_device device, int what)
{
    (void)machine;
    return device.kind != TCCL_MEMORY && (device.kind << 8 | device.index) == what;
}

static bool with_one_device(struct words *words)
{
    tccl_transfer first = words->about->set.transfers[0];
    struct tccl_device ends[] = {tccl_transfer_source(first), tccl_transfer_sink(first)};
    char label[TCCL_LABEL];
    int in, out;

    for (int i = 0; i < 2; i++) {
        tccl_device_label(words->machine, ends[i], label);
        if (!crosses(words, is_device, ends[i].kind << 8 | ends[i].index, &in, &out))
            continue;
        say_crossing(words, in, out, label);
        return true;
    }
    return false;
}

static bool below_switch(const struct tccl_machine *machine, struct tccl_device device, int what)
{
    int at = device.kind == TCCL_GPU   ? machine->gpus[device.index].parent
             : device.kind == TCCL_NIC ? machine->nics[device.index].parent
                                       : -1;

    while (at >= 0 && at != what)
        at = machine->switches[at].parent;
    return at == what;
}

/* All through the uplink of one switch: the lowest such, which stands last. */
static bool through_switch(struct words *words)
{
    char name[TCCL_NAME + 16];
    int in, out;

    for (int i = words->machine->n_switches - 1; i >= 0; i--)
        if (crosses(words, below_switch, i, &in, &out)) {
            snprintf(name, sizeof(name), "PCI switch %s", words->machine->switches[i].name);
            say_crossing(words, in, out, name);
            return true;
        }
    return false;
}

static int numa_of(const struct words *words, struct tccl_device device)
{
    return tccl_machine_numa(words->machine, device);
}

/* All from one NUMA node to another. */
static bool between_nodes(struct words *words)
{
    const struct tccl_set *set = &words->about->set;
    int from = numa_of(words, tccl_transfer_source(set->transfers[0]));
    int to = numa_of(words, tccl_transfer_sink(set->transfers[0]));

    for (int i = 0; i < set->count; i++)
        if (numa_of(words, tccl_transfer_source(set->transfers[i])) != from ||
            numa_of(words, tccl_transfer_sink(set->transfers[i])) != to)
            return false;
    if (from == to || set->count <= NAMED)
        return false;
    say(words, "%d transfers from NUMA node %d to NUMA node %d", set->count, from, to);
    say_share(words);
    return true;
}

/* Whatever they do: named one by one. */
static void one_by_one(struct words *words)
{
    const struct tccl_set *set = &words->about->set;
    int named = set->count <= NAMED ? set->count : NAMED - 1;

    if (set->count == 2) {
        say_transfer(words, set->transfers[0]);
        say(words, " while ");
        say_transfer(words, set->transfers[1]);
        say_together(words, " each");
        return;
    }
    for (int i = 0; i < named; i++) {
        say(words, "%s", named < set->count && i > 0 ? ", " : between(i, named));
        say_transfer(words, set->transfers[i]);
    }
    if (named < set->count)
        say(words, " and %d more transfers run", set->count - named);
    say(words, "%s together", named < set->count ? "" : ",");
    say_together(words, " each");
}

void tccl_congestion_sentence(const struct tccl_congested *congested,
                              const struct tccl_machine *machine,
                              char sentence[static TCCL_SENTENCE])
{
    static bool (*const shapes[])(struct words * words) = {
        on_one_memory,     each_other,      by_one_device,  into_one_device,
        out_of_one_device, with_one_device, through_switch, between_nodes,
    };
    struct words words = {.text = sentence, .about = congested, .machine = machine};

    sentence[0] = '\0';
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        if (shapes[i](&words))
            return;
    one_by_one(&words);
}
