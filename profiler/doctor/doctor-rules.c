/* doctor-rules.c: what is wrong with a machine, by a table: a line is one kind of finding, with
 * what it costs, who says so, what mends it and what that risks. The facts are all there; nothing
 * is read here. */
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "doctor/doctor.h"

enum { REDIRECTS = 0xc /* ACS control: P2P request redirect, P2P completion redirect */ };

static const double usual_shm_gb = 1.0, usual_lock_gb = 4.0, spare = 1.1;

static const char nccl_docs[] = "NCCL's user guide, Troubleshooting";
static const char unmeasured[] = "not known";

struct look {
    const struct tccl_doctor_facts *facts;
    struct tccl_doctor_findings *findings;
    const struct rule *rule;
};

struct rule {
    const char *name;
    void (*look)(struct look *look);
    const char *cost, *source; /* source NULL: it follows from the facts */
    const char *mend;          /* '@' is the device's bus id */
    const char *risk;
};

/* ---- findings ---- */

/* device: an index; -1: of the machine. */
__attribute__((format(printf, 4, 5))) static void
say(struct look *look, enum tccl_doctor_level level, int device, const char *format, ...)
{
    struct tccl_doctor_findings *findings = look->findings;
    const struct rule *rule = look->rule;
    va_list arguments;
    if (findings->count == TCCL_DOCTOR_FINDINGS) {
        findings->more++;
        return;
    }
    struct tccl_doctor_finding *finding = &findings->list[findings->count++];
    *finding = (struct tccl_doctor_finding){.level = level,
                                            .rule = rule->name,
                                            .device = device,
                                            .cost = rule->cost,
                                            .source = rule->source,
                                            .risk = rule->risk};
    va_start(arguments, format);
    vsnprintf(finding->what, sizeof(finding->what), format, arguments);
    va_end(arguments);
    size_t used = 0;
    for (const char *at = rule->mend; *at && used + TCCL_BUSID < TCCL_DOCTOR_WHAT; at++)
        if (*at == '@' && device >= 0)
            used += (size_t)sprintf(finding->mend + used, "%s", look->facts->devices[device].busid);
        else
            finding->mend[used++] = *at;
    finding->mend[used] = '\0';
}

__attribute__((format(printf, 2, 3))) static void say_unknown(struct tccl_doctor_findings *findings,
                                                              const char *format, ...)
{
    const int room = sizeof(findings->unknown) / sizeof(*findings->unknown);
    va_list arguments;
    if (findings->n_unknown == room)
        return;
    va_start(arguments, format);
    vsnprintf(findings->unknown[findings->n_unknown++], sizeof(*findings->unknown), format,
              arguments);
    va_end(arguments);
}

/* ---- devices ---- */

static const struct tccl_doctor_device *at(const struct look *look, int i)
{
    return &look->facts->devices[i];
}

static bool is(const struct look *look, int i, enum tccl_doctor_kind kind)
{
    return at(look, i)->kind == kind;
}

static int count(const struct look *look, enum tccl_doctor_kind kind)
{
    int found = 0;
    for (int i = 0; i < look->facts->n_devices; i++)
        found += is(look, i, kind) && !at(look, i)->lost;
    return found;
}

/* NICs are of one kind, and GPUs, by what they are; bridges are not compared. */
static bool are_alike(const struct look *look, int a, int b)
{
    return at(look, a)->kind == at(look, b)->kind && at(look, a)->kind != TCCL_DOCTOR_BRIDGE &&
           at(look, a)->vendor == at(look, b)->vendor && at(look, a)->device == at(look, b)->device;
}

/* The GPU whose transfers matter: a NIC with room to spare in its slot doesn't suffer. */
static bool has_enough(const struct look *look, int i, double gbps)
{
    const struct tccl_doctor_device *device = at(look, i);
    return device->kind == TCCL_DOCTOR_NIC && device->gbps > 0 && gbps >= spare * device->gbps;
}

/* ---- the rules ---- */

static void look_lost(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++) {
        const struct tccl_doctor_device *device = at(look, i);
        bool unlisted = device->kind == TCCL_DOCTOR_GPU && look->facts->nvml.n_gpus > 0 &&
                        !device->nvml && !device->passed_on;
        if (device->lost)
            say(look, TCCL_DOCTOR_FAIL, i, "it doesn't answer on the PCI bus");
        else if (unlisted)
            say(look, TCCL_DOCTOR_FAIL, i,
                "it is on the PCI bus, but NVML doesn't list it: lost, or not NVIDIA's driver's");
    }
}

static void look_link(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++) {
        const struct tccl_doctor_rate rate = tccl_doctor_link(look->facts, i);
        if (rate.state != TCCL_DOCTOR_LINK_DEGRADED || at(look, i)->lost ||
            tccl_doctor_leads_down(look->facts, i))
            continue;
        /* A GPU that rests will have all of the speed again, but not the lanes. */
        double gbps = rate.rests ? tccl_doctor_carried(rate.gts_most, rate.lanes) : rate.gbps;
        say(look, has_enough(look, i, gbps) ? TCCL_DOCTOR_NOTE : TCCL_DOCTOR_WARN, i,
            "its link is trained at x%d with %g GT/s%s, both ends can x%d with %g: at most %.1f of "
            "%.1f GB/s",
            rate.lanes, rate.gts, rate.rests ? " (at rest)" : "", rate.lanes_most, rate.gts_most,
            gbps, rate.gbps_most);
    }
}

/* A like device in a slot with twice as many lanes, or GT/s: there is a better one. */
static bool has_better_twin(const struct look *look, int i, int lanes, double gts)
{
    for (int other = 0; other < look->facts->n_devices; other++) {
        const struct tccl_doctor_rate rate = tccl_doctor_link(look->facts, other);
        if (are_alike(look, i, other) && rate.lanes_most >= lanes && rate.gts_most >= gts)
            return true;
    }
    return false;
}

static void look_slot(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++) {
        const struct tccl_doctor_device *device = at(look, i);
        const struct tccl_doctor_rate rate = tccl_doctor_link(look->facts, i);
        if (device->kind == TCCL_DOCTOR_BRIDGE || rate.state == TCCL_DOCTOR_LINK_UNKNOWN ||
            has_enough(look, i, rate.gbps_most))
            continue;
        bool wider = has_better_twin(look, i, 2 * rate.lanes_most, 0);
        if (device->lanes_most > rate.lanes_most)
            say(look, wider ? TCCL_DOCTOR_WARN : TCCL_DOCTOR_NOTE, i,
                "its slot has %d of the %d lanes that it can use%s", rate.lanes_most,
                device->lanes_most, wider ? "; another of its kind has more" : "");
        /* A slower slot is an old board's, but where others are faster. */
        else if (device->gts_most > rate.gts_most && has_better_twin(look, i, 0, 2 * rate.gts_most))
            say(look, TCCL_DOCTOR_WARN, i,
                "its slot has %g of the %g GT/s that it can use; another of its kind has more",
                rate.gts_most, device->gts_most);
    }
}

/* Is there a GPU or NIC below this bridge and another elsewhere below one bridge above it, one of
 * the two a GPU? */
static bool is_between(const struct look *look, int bridge)
{
    for (int above = at(look, bridge)->above; above >= 0; above = at(look, above)->above)
        for (int a = 0; a < look->facts->n_devices; a++)
            for (int b = 0; b < look->facts->n_devices; b++)
                if (!is(look, a, TCCL_DOCTOR_BRIDGE) && !is(look, b, TCCL_DOCTOR_BRIDGE) &&
                    (is(look, a, TCCL_DOCTOR_GPU) || is(look, b, TCCL_DOCTOR_GPU)) &&
                    tccl_doctor_is_below(look->facts, a, bridge) &&
                    tccl_doctor_is_below(look->facts, b, above) &&
                    !tccl_doctor_is_below(look->facts, b, bridge))
                    return true;
    return false;
}

static void look_acs(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++) {
        const struct tccl_doctor_device *bridge = at(look, i);
        if (bridge->kind == TCCL_DOCTOR_BRIDGE && bridge->acs > 0 && bridge->acs & REDIRECTS &&
            is_between(look, i))
            say(look, TCCL_DOCTOR_WARN, i,
                "ACS %s redirect is on: transfers between devices of this switch go up to the root "
                "and back",
                (bridge->acs & REDIRECTS) == REDIRECTS ? "request and completion"
                : bridge->acs & 4                      ? "request"
                                                       : "completion");
    }
}

/* Between root ports transfers pass the root in any case; there the redirect has the IOMMU look at
 * them. */
static void look_acs_root(struct look *look)
{
    int ports = 0, first = -1;
    for (int i = 0; i < look->facts->n_devices; i++) {
        const struct tccl_doctor_device *bridge = at(look, i);
        bool has_gpu = false;
        if (bridge->kind != TCCL_DOCTOR_BRIDGE || bridge->above >= 0 || bridge->acs <= 0 ||
            !(bridge->acs & REDIRECTS))
            continue;
        for (int gpu = 0; gpu < look->facts->n_devices; gpu++)
            has_gpu |= is(look, gpu, TCCL_DOCTOR_GPU) && tccl_doctor_is_below(look->facts, gpu, i);
        if (has_gpu && ports++ == 0)
            first = i;
    }
    if (ports > 1)
        say(look, TCCL_DOCTOR_NOTE, first,
            "ACS redirect is on here and at %d other root port%s above GPUs: the IOMMU looks at "
            "what these send each other",
            ports - 1, ports == 2 ? "" : "s");
}

static void look_iommu(struct look *look)
{
    int translated = 0, first = -1;
    for (int i = 0; i < look->facts->n_devices; i++)
        if (!is(look, i, TCCL_DOCTOR_BRIDGE) && strncmp(at(look, i)->iommu, "DMA", 3) == 0 &&
            translated++ == 0)
            first = i;
    if (translated > 0 && count(look, TCCL_DOCTOR_GPU) > 0)
        say(look, translated > 1 ? TCCL_DOCTOR_WARN : TCCL_DOCTOR_NOTE, -1,
            "the IOMMU translates what %d of the GPUs and NICs transfer (%s: %s)", translated,
            at(look, first)->busid, at(look, first)->iommu);
}

static void look_nodes(struct look *look)
{
    const struct tccl_doctor_facts *facts = look->facts;
    char idle[64] = "";
    int most = 0, n_idle = 0;
    for (int i = 0; i < facts->n_nodes; i++) {
        int same = 0;
        for (int j = 0; j < facts->n_nodes; j++)
            same += facts->nodes[i].socket >= 0 && facts->nodes[j].socket == facts->nodes[i].socket;
        most = same > most ? same : most;
        size_t used = strlen(idle);
        if (!facts->nodes[i].used && n_idle++ < 8)
            snprintf(idle + used, sizeof(idle) - used, "%s%d", used ? "," : "",
                     facts->nodes[i].number);
    }
    if (most > 1 && n_idle > 0 && n_idle < facts->n_nodes && count(look, TCCL_DOCTOR_GPU) > 1)
        say(look, TCCL_DOCTOR_NOTE, -1,
            "%d NUMA nodes a socket (NPS or SNC of the BIOS); no GPU or NIC is next to %d of them "
            "(%s%s)",
            most, n_idle, idle, n_idle > 8 ? ",…" : "");
}

/* The only one behind its port, as on all buses but those of virtual machines? */
static bool is_alone(const struct look *look, int i)
{
    const size_t slot = strlen(at(look, i)->busid) - 2; /* without the function */
    for (int other = 0; other < look->facts->n_devices; other++)
        if (at(look, other)->above == at(look, i)->above &&
            strncmp(at(look, other)->busid, at(look, i)->busid, slot) != 0)
            return false;
    return true;
}

static void look_place(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++) {
        const struct tccl_doctor_device *device = at(look, i);
        int above = device->above >= 0 ? at(look, device->above)->numa : -1;
        if (device->kind == TCCL_DOCTOR_BRIDGE || look->facts->n_nodes < 2)
            continue;
        if (device->numa < 0)
            say(look, TCCL_DOCTOR_WARN, i, "the BIOS doesn't say which NUMA node is next to it");
        else if (above >= 0 && above != device->numa && is_alone(look, i))
            say(look, TCCL_DOCTOR_WARN, i,
                "the kernel has it at NUMA node %d, its slot at %d: one of the two is wrong",
                device->numa, above);
    }
}

/* Both are set by BIOS, driver and switch firmware: where equals differ, somebody forgot one. */
static void look_ordering(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++)
        for (int other = 0; other < look->facts->n_devices; other++)
            if (are_alike(look, i, other) && at(look, i)->relaxed == 0 &&
                at(look, other)->relaxed == 1) {
                say(look, TCCL_DOCTOR_WARN, i,
                    "relaxed ordering is off; it is on for %s, which is of its kind",
                    at(look, other)->busid);
                break;
            }
}

static void look_reads(struct look *look)
{
    enum { USUAL = 512 };
    for (int i = 0; i < look->facts->n_devices; i++) {
        const struct tccl_doctor_device *device = at(look, i);
        int most = 0;
        for (int other = 0; other < look->facts->n_devices; other++)
            if (are_alike(look, i, other) && at(look, other)->read_request > most)
                most = at(look, other)->read_request;
        if (device->kind == TCCL_DOCTOR_BRIDGE || device->read_request == 0)
            continue;
        if (device->read_request < most)
            say(look, TCCL_DOCTOR_WARN, i, "MaxReadReq is %d bytes; another of its kind has %d",
                device->read_request, most);
        else if (device->read_request < USUAL)
            say(look, TCCL_DOCTOR_WARN, i, "MaxReadReq is %d bytes; %d is usual",
                device->read_request, (int)USUAL);
    }
}

/* The first pair that is so, and how many are. */
struct pairs {
    int count, a, b;
};

static void note_pair(struct pairs *pairs, bool is_so, int a, int b)
{
    if (is_so && pairs->count++ == 0)
        pairs->a = a, pairs->b = b;
}

static void say_pair(struct look *look, enum tccl_doctor_level level, const struct pairs *pairs,
                     const char *what)
{
    const struct tccl_nvml *nvml = &look->facts->nvml;
    char more[32] = "";
    if (pairs->count > 1)
        snprintf(more, sizeof(more), " (and %d more pair%s)", pairs->count - 1,
                 pairs->count > 2 ? "s" : "");
    if (pairs->count > 0)
        say(look, level, -1, "GPUs %d and %d (%s, %s) %s%s", pairs->a, pairs->b,
            nvml->gpus[pairs->a].busid, nvml->gpus[pairs->b].busid, what, more);
}

static void look_peers(struct look *look)
{
    const struct tccl_nvml *nvml = &look->facts->nvml;
    struct pairs odd = {0}, one_way = {0}, refused = {0}, none = {0}, both = {0};
    for (int a = 0; a < nvml->n_gpus; a++)
        for (int b = a + 1; b < nvml->n_gpus; b++) {
            /* How many of a pair's ways are open: of four by NVML, of two by CUDA; -1: not known.
             */
            const int ways = nvml->knows_p2p ? nvml->read[a][b] + nvml->read[b][a] +
                                                   nvml->write[a][b] + nvml->write[b][a]
                                             : -1,
                      maps = nvml->knows_cuda ? nvml->reach[a][b] + nvml->reach[b][a] : -1;
            note_pair(&odd, ways > 0 && ways < 4, a, b);
            note_pair(&one_way, maps == 1 && (ways == 4 || ways < 0), a, b);
            note_pair(&refused, maps == 0 && ways == 4, a, b);
            note_pair(&both, (ways == 4 || ways < 0) && (maps == 2 || maps < 0), a, b);
            note_pair(&none, (ways == 0 || ways < 0) && maps <= 0, a, b);
        }
    say_pair(look, TCCL_DOCTOR_WARN, &odd,
             "reach each other in one direction, or by reads or writes, only");
    say_pair(look, TCCL_DOCTOR_WARN, &one_way, "reach each other in one direction only by CUDA");
    say_pair(look, TCCL_DOCTOR_WARN, &refused,
             "reach each other by NVML, and CUDA, which programs ask, refuses it");
    if (both.count > 0 && none.count > 0 && (nvml->knows_p2p || nvml->knows_cuda))
        say(look, TCCL_DOCTOR_NOTE, -1,
            "peer access between %d of %d pairs of GPUs only; not between %d and %d (%s, %s)",
            both.count, nvml->n_gpus * (nvml->n_gpus - 1) / 2, none.a, none.b,
            nvml->gpus[none.a].busid, nvml->gpus[none.b].busid);
}

/* A NIC with RDMA and a GPU below one switch: transfers between them would not pass the CPU. (Only
 * a virtual machine's root port has several devices of its own.) */
static bool is_near_gpu(const struct look *look, int nic)
{
    for (int above = at(look, nic)->above; above >= 0; above = at(look, above)->above)
        for (int gpu = 0; gpu < look->facts->n_devices; gpu++)
            if (at(look, above)->above >= 0 && is(look, gpu, TCCL_DOCTOR_GPU) &&
                tccl_doctor_is_below(look->facts, gpu, above))
                return true;
    return false;
}

static void look_gpudirect(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++)
        if (is(look, i, TCCL_DOCTOR_NIC) && at(look, i)->rdma && !look->facts->gpudirect &&
            is_near_gpu(look, i)) {
            say(look, TCCL_DOCTOR_WARN, i,
                "no GPUDirect with the GPUs of its switch: neither nvidia_peermem nor the driver's "
                "open modules are loaded");
            return;
        }
}

static void look_nic_link(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++)
        for (int other = 0; other < look->facts->n_devices; other++)
            if (is(look, i, TCCL_DOCTOR_NIC) && at(look, i)->link == TCCL_LINK_DOWN &&
                are_alike(look, i, other) && at(look, other)->link == TCCL_LINK_UP) {
                say(look, TCCL_DOCTOR_WARN, i, "no port has a link; another of its kind has");
                break;
            }
}

/* Of this NIC's kind, those that have its firmware. */
static int with_firmware_of(const struct look *look, int i)
{
    int same = 0;
    for (int other = 0; other < look->facts->n_devices; other++)
        same += are_alike(look, i, other) &&
                strcmp(at(look, i)->firmware, at(look, other)->firmware) == 0;
    return same;
}

/* The odd one is that which fewer have; of as many, the later one. */
static void look_firmware(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++)
        for (int other = 0; other < look->facts->n_devices; other++) {
            if (!is(look, i, TCCL_DOCTOR_NIC) || !are_alike(look, i, other) ||
                !at(look, i)->firmware[0] || !at(look, other)->firmware[0] ||
                strcmp(at(look, i)->firmware, at(look, other)->firmware) == 0)
                continue;
            int own = with_firmware_of(look, i), others = with_firmware_of(look, other);
            if (own < others || (own == others && other < i)) {
                say(look, TCCL_DOCTOR_WARN, i, "its firmware is %.40s; %s, of its kind, has %.40s",
                    at(look, i)->firmware, at(look, other)->busid, at(look, other)->firmware);
                break;
            }
        }
}

static void look_shm(struct look *look)
{
    double size = look->facts->shm_gb;
    if (size >= usual_shm_gb || size < 0 || count(look, TCCL_DOCTOR_GPU) < 2)
        return;
    if (size == 0)
        say(look, TCCL_DOCTOR_WARN, -1, "there is no /dev/shm");
    else
        say(look, TCCL_DOCTOR_WARN, -1, "/dev/shm has %.3g GB in all, %g are recommended", size,
            usual_shm_gb);
}

static void look_memlock(struct look *look)
{
    bool rdma = false;
    for (int i = 0; i < look->facts->n_devices; i++)
        rdma |= is(look, i, TCCL_DOCTOR_NIC) && at(look, i)->rdma;
    double size = look->facts->memlock_gb;
    if (rdma && size >= 0)
        say(look, size < usual_lock_gb ? TCCL_DOCTOR_WARN : TCCL_DOCTOR_NOTE, -1,
            "this process may lock %.3g GB of memory only (ulimit -l): RDMA %s", size,
            size < usual_lock_gb ? "needs more" : "may need more");
}

static void look_persistence(struct look *look)
{
    int off = 0;
    for (int i = 0; i < look->facts->n_devices; i++)
        off += at(look, i)->nvml && at(look, i)->nvml->persistence == 0;
    if (off > 0)
        say(look, TCCL_DOCTOR_NOTE, -1, "persistence mode is off on %d GPUs", off);
}

static void look_mig(struct look *look)
{
    for (int i = 0; i < look->facts->n_devices; i++)
        if (at(look, i)->nvml && at(look, i)->nvml->mig)
            say(look, TCCL_DOCTOR_NOTE, i, "it is cut into MIG instances: no peer access, no ring");
}

static const char rtx6kpro[] =
    "its owners' measurements: github.com/local-inference-lab/rtx6kpro at 953bbef";

static const struct rule rules[] = {
    {"lost", look_lost, "jobs on it fail, or hang", NULL,
     "see dmesg for NVRM: Xid or AER of @; drain the node, restart it with power off, then reseat "
     "the card",
     "what runs on the node is lost"},
    {"link", look_link,
     "every transfer through it is as slow; a ring or tree is as fast as its slowest link", NULL,
     "reseat card, riser or cable of @; BIOS: the slot's link speed to its highest or Auto; lspci "
     "-vvs @ shows LnkSta and errors",
     "the node is down meanwhile; a speed that was lowered for errors brings them back"},
    {"slot", look_slot,
     "half the lanes, or GT/s, carry half as much; a ring is as fast as its slowest link", NULL,
     "move the card to a better slot; BIOS: bifurcation of the slot (x16, not x8x8), its link "
     "speed to Auto",
     "bus ids change, so the machine is another one: measure again"},
    {"acs", look_acs,
     "two GPUs of a switch had 50 GB/s both ways in place of 103 (RTX PRO 6000, Gen5, PEX890xx); "
     "hangs are reported, too",
     rtx6kpro,
     "setpci -s @ ECAP_ACS+6.w=0:c at each start; or BIOS: ACS Control (ACS Enable) to Disabled",
     "devices below the switch are no longer kept apart: not where they are passed to virtual "
     "machines"},
    {"acs-root", look_acs_root,
     "not known; where the IOMMU translates (see iommu), transfers between GPUs are slower or hang",
     nccl_docs,
     "setpci -s @ ECAP_ACS+6.w=0:c at each start, for each such port; or BIOS: ACS Enable to "
     "Disabled",
     "devices below the port are no longer kept apart: not where they are passed to virtual "
     "machines"},
    {"iommu", look_iommu,
     "transfers between GPUs go by the root, slower, or hang; by how much is not known", nccl_docs,
     "kernel parameter iommu=pt (with amd_iommu=on or intel_iommu=on), or BIOS: IOMMU, VT-d to "
     "Disabled",
     "devices reach all memory, so a faulty one can damage it; without IOMMU none can be passed to "
     "virtual machines"},
    {"nodes", look_nodes,
     "rings go through more NUMA nodes, and buffers lie at nodes without devices; P2P was slower "
     "with NPS4",
     "github.com/NVIDIA/nccl-tests, issue 74",
     "BIOS: NUMA nodes per socket to NPS1 (AMD), SNC to Disabled (Intel); then measure again",
     "programs of the CPUs that are bound to nodes may lose some memory bandwidth"},
    {"place", look_place,
     "buffers and processes are put beside the wrong socket: transfers cross between the sockets",
     NULL, "update the BIOS; look whether lspci -vvs @ and the board's manual agree",
     "numbers of NUMA nodes may change: measure again"},
    {"ordering", look_ordering,
     "writes wait for each other on their way to memory; by how much is not known", nccl_docs,
     "BIOS: Relaxed Ordering to Enabled or Auto; until the next start setpci -s @ "
     "CAP_EXP+8.w=10:10",
     "some old CPUs (Haswell, Broadwell) must not have it, the kernel turns it off there"},
    {"reads", look_reads, "more requests for the same data; by how much is not known", NULL,
     "setpci -s @ CAP_EXP+8.w=5000:7000 (4096 bytes), or 2000:7000 (512); BIOS: MaxReadReq to Auto",
     "very large requests can starve other devices of the same switch"},
    {"peers", look_peers,
     "rings of these GPUs go through memory; libraries that count on peer access fail", nccl_docs,
     "nvidia-smi topo -p2p rw shows the pairs; BIOS: large BARs (Above 4G Decoding) on; see acs "
     "and "
     "iommu",
     "between sockets some platforms allow none, and that stays so"},
    {"gpudirect", look_gpudirect, "what goes to other nodes passes through the CPU's memory",
     nccl_docs, "modprobe nvidia-peermem, and a line of it in /etc/modules-load.d", "none known"},
    {"nic", look_nic_link, "rings over several nodes have one NIC less", NULL,
     "look at cable and switch port; ibstat or ip link shows the state", "none"},
    {"firmware", look_firmware, unmeasured, NULL,
     "mlxfwmanager, or the vendor's tool, shows and updates it", "the NIC is down meanwhile"},
    {"shm", look_shm,
     "NCCL's buffers in /dev/shm do not fit: communicators fail, or have few "
     "channels",
     nccl_docs, "container: --shm-size=1g or --ipc=host; node: mount -o remount,size=50% /dev/shm",
     "what is in /dev/shm takes memory"},
    {"memlock", look_memlock, "NCCL's connections by RDMA fail", nccl_docs,
     "LimitMEMLOCK=infinity in slurmd's unit, PropagateResourceLimitsExcept=MEMLOCK in slurm.conf; "
     "container: --ulimit memlock=-1",
     "a job can lock all of the memory that its cgroup gives it"},
    {"persistence", look_persistence,
     "the first program on a GPU waits for the driver; clocks start low",
     "NVIDIA's driver "
     "persistence guide",
     "systemctl enable --now nvidia-persistenced", "some more power at rest"},
    {"mig", look_mig, "rings need whole GPUs", NULL, "nvidia-smi -i @ -mig 0, with nothing running",
     "its instances are gone"},
};

/* ---- all of them ---- */

const char *tccl_doctor_level_name(enum tccl_doctor_level level)
{
    static const char *const names[] = {"note", "warn", "fail"};
    return names[level];
}

static void find_unknown(const struct tccl_doctor_facts *facts,
                         struct tccl_doctor_findings *findings)
{
    int closed = 0, links = 0;
    for (int i = 0; i < facts->n_devices; i++) {
        closed += !facts->devices[i].seen_config && !facts->devices[i].lost;
        links += tccl_doctor_link(facts, i).state == TCCL_DOCTOR_LINK_UNKNOWN &&
                 !tccl_doctor_leads_down(facts, i);
    }
    if (!facts->pci)
        say_unknown(findings,
                    "links, ACS, NUMA nodes: /sys shows no PCI devices: run it outside of "
                    "the container");
    if (closed > 0)
        say_unknown(findings, "ACS, MaxReadReq and relaxed ordering of %d devices: %s", closed,
                    facts->root ? "the kernel shows 64 bytes of their configuration only"
                                : "run as root");
    if (links > 0)
        say_unknown(findings,
                    "width and speed of %d link%s: the kernel doesn't say them, or a "
                    "virtual machine's bridge hides them",
                    links, links == 1 ? "" : "s");
    if (!facts->nvml_known)
        say_unknown(findings, "peer access, persistence mode, MIG: %s", facts->nvml_trouble);
    else if (facts->nvml.n_gpus > 1 && !facts->nvml.knows_p2p)
        say_unknown(findings, "peer access by NVML: this one can't say");
    if (facts->nvml.n_gpus > 1 && *facts->cuda_trouble)
        say_unknown(findings, "peer access by CUDA: %s", facts->cuda_trouble);
    if (facts->crowded)
        say_unknown(findings, "devices after the first %d", (int)TCCL_DOCTOR_DEVICES);
}

void tccl_doctor_examine(const struct tccl_doctor_facts *facts,
                         struct tccl_doctor_findings *findings)
{
    memset(findings, 0, sizeof(*findings));
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        struct look look = {.facts = facts, .findings = findings, .rule = &rules[i]};
        rules[i].look(&look);
    }
    /* The worst first; else in the order of the rules. */
    for (int i = 1; i < findings->count; i++)
        for (int j = i; j > 0 && findings->list[j].level > findings->list[j - 1].level; j--) {
            struct tccl_doctor_finding swapped = findings->list[j];
            findings->list[j] = findings->list[j - 1];
            findings->list[j - 1] = swapped;
        }
    find_unknown(facts, findings);
}
