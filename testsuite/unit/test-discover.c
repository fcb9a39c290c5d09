/* test-discover.c: the machine put together from a recorded topology, NVML (fake-nvml.c) and a /sys
 * and /proc of the test's own; cores in place of GPUs; bad topologies. */
#include "base/fileio.h"
#include "check.h"
#include "discover/discover-topology.h"
#include "discover/discover.h"
#include "discover/sysfs.h"
#include "machine/meter.h"

static struct tccl_found found;

static const char *topology(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s.xml", getenv("TCCL_TOPOLOGIES"), name);
    return path;
}

/* A file below the test's check_folder(). */
static void put(const char *name, const char *text)
{
    check_write_file(check_at("%s", name + 1), text);
}

static void fresh(void)
{
    check_remove(check_folder());
    for (const char *const *name = (const char *const[]){"GPUS", "NAME", "P2P", "MIG", "USERS",
                                                         "DENY", "LOST", "INIT", NULL};
         *name; name++) {
        unsetenv(check_printf("FAKE_NVML_%s", *name));
    }
}

static void discover(const struct tccl_discover_options *options)
{
    CHECK_OK(tccl_discover(options, &found, ERR));
}

static void check_refused(const struct tccl_discover_options *options, const char *why)
{
    CHECK_SAYS(tccl_discover(options, &found, ERR) == -1, why);
    CHECK(!strchr(check_err.text, '\n'));
}

static bool has_note(const char *text)
{
    for (int i = 0; i < found.n_notes; i++)
        if (strstr(found.notes[i], text))
            return true;
    for (int i = 0; i < found.n_notes; i++)
        fprintf(stderr, "  note: %s\n", found.notes[i]);
    return false;
}

/* What was found must be a machine that can be written and read. */
static void check_writable(void)
{
    cleanup_json json_t *json = tccl_machine_to_json(&found.site.machine);
    struct tccl_machine again;
    char id[TCCL_HASH_HEX], again_id[TCCL_HASH_HEX];
    CHECK_OK(tccl_machine_from_json(json, &again, ERR));
    tccl_machine_id(&found.site.machine, id);
    tccl_machine_id(&again, again_id);
    CHECK_STR(again_id, id);
}

TEST(host)
{
    const struct tccl_discover_options usual = {.host = true}, five = {.host = true, .devices = 5};
    const struct tccl_machine *machine = &found.site.machine;
    cpu_set_t mine;
    fresh();
    discover(&usual);
    CHECK(machine->n_gpus >= 1 && machine->n_gpus <= 8);
    CHECK(!found.recorded && found.marks == 0);
    CHECK_INT(machine->n_nics, 1);
    CHECK_STR(machine->nics[0].fabric, "loopback");
    CHECK_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
    for (int i = 0; i < machine->n_gpus; i++) {
        cpu_set_t both;
        CHECK_INT(CPU_COUNT(&found.site.gpu_cpus[i]), 1);
        CPU_AND(&both, &mine, &found.site.gpu_cpus[i]);
        CHECK_INT(CPU_COUNT(&both), 1);
        for (int j = 0; j < i; j++) {
            CHECK(!CPU_EQUAL(&found.site.gpu_cpus[i], &found.site.gpu_cpus[j]));
            CHECK(machine->p2p[i][j] && machine->p2p[j][i]);
        }
        CHECK(!machine->gpudirect[0][i]);
    }
    check_writable();
    discover(&five);
    CHECK_INT(machine->n_gpus, 5);
    check_writable();
    check_refused(&(struct tccl_discover_options){.host = true, .devices = 17}, "at most 16");
    check_refused(&(struct tccl_discover_options){.host = true, .xml = topology("vm-2core")},
                  "recorded machine");
}

/* One CPU allowed: one core. */
TEST(host_affinity)
{
    const struct tccl_discover_options usual = {.host = true};
    cpu_set_t mine, one;
    int cpu = 0;
    CHECK_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
    while (!CPU_ISSET(cpu, &mine))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK_INT(sched_setaffinity(0, sizeof(one), &one), 0);
    discover(&usual);
    CHECK_INT(sched_setaffinity(0, sizeof(mine), &mine), 0);
    CHECK_INT(found.site.machine.n_gpus, 1);
    CHECK(CPU_EQUAL(&found.site.gpu_cpus[0], &one));
}

/* NVML's order is another than that of the bus ids; it knows names, minors, P2P. */
TEST(nvml_merged)
{
    const struct tccl_discover_options options = {.xml = topology("epyc-nps4-4a100"),
                                                  .root = check_folder()};
    const struct tccl_machine *machine = &found.site.machine;
    fresh();
    setenv("FAKE_NVML_GPUS", "0000:c4:00.0,0000:03:00.0,0000:84:00.0,0000:44:00.0", 1);
    setenv("FAKE_NVML_P2P", "0-2,2-0,1-3", 1);
    setenv("FAKE_NVML_USERS", "2-4000001,2-4000002", 1);
    setenv("FAKE_NVML_MIG", "3", 1);
    put("/sys/class/infiniband/mlx5_2/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/mlx5_2/ports/1/rate", "200 Gb/sec (4X HDR)\n");
    put("/sys/class/infiniband/mlx5_2/ports/1/link_layer", "InfiniBand\n");
    put("/sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
    put("/sys/module/nvidia_peermem/version", "1\n");
    discover(&options);
    CHECK_INT(machine->n_gpus, 4);
    CHECK_INT(found.gpu_index[0], 1); /* 03 */
    CHECK_INT(found.gpu_index[1], 3); /* 44 */
    CHECK_INT(found.gpu_index[2], 2); /* 84 */
    CHECK_INT(found.gpu_index[3], 0); /* c4 */
    for (int i = 0; i < 4; i++) {
        CHECK_INT(machine->gpus[i].minor, 100 + found.gpu_index[i]);
        CHECK_INT(machine->gpus[i].sm, 86);
        CHECK_STR(machine->gpus[i].model, "Fake GPU");
    }
    CHECK(machine->p2p[2][3] && machine->p2p[3][2]);
    CHECK(!machine->p2p[0][1] && !machine->p2p[1][0]); /* one way only */
    CHECK_STR(found.p2p_source, "NVML");
    CHECK_INT(found.n_users[2], 2);
    CHECK_STR(found.user[2], "pid 4000001");
    CHECK_INT(found.n_users[0], 0);
    CHECK_INT(found.marks, TCCL_MARK_MIG);
    CHECK_STR(found.driver, "999.1");
    CHECK_INT(machine->n_nics, 2);
    CHECK_STR(machine->nics[0].name, "mlx5_0");
    CHECK_STR(found.nic_kind[0], "roce");
    CHECK_STR(machine->nics[0].fabric, "ethernet");
    CHECK(machine->nics[0].gbps == 12.5);
    CHECK_STR(machine->nics[1].name, "mlx5_2");
    CHECK(machine->nics[1].gbps == 25);
    CHECK_STR(found.nic_netdev[1], "ib2");
    CHECK(machine->gpudirect[0][1] && !machine->gpudirect[0][0] && machine->gpudirect[1][3]);
    CHECK(has_note("the link is down") && has_note("0000:44:00.0 is in MIG mode"));
    check_writable();
}

/* No peer memory module: no GPUDirect. Open kernel modules on a new kernel: DMA-BUF does it. */
TEST(gpudirect)
{
    const struct tccl_discover_options options = {.xml = topology("broadwell-2p100"),
                                                  .root = check_folder()};
    fresh();
    put("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54\n");
    put("/proc/sys/kernel/osrelease", "5.11.0-4-amd64\n");
    discover(&options);
    CHECK(!found.site.machine.gpudirect[0][0]);
    CHECK(has_note("no GPUDirect"));
    put("/proc/sys/kernel/osrelease", "6.1.0-4-amd64\n");
    discover(&options);
    CHECK(found.site.machine.gpudirect[0][0] && found.site.machine.gpudirect[0][1]);
}

/* Slots as NCCL has them: the slower of the device and the port above it. */
TEST(slots)
{
    const struct tccl_discover_options options = {.xml = topology("broadwell-2p100"),
                                                  .root = check_folder()};
    const struct tccl_machine *machine = &found.site.machine;
    fresh();
    discover(&options);
    CHECK(machine->gpus[0].slot == 0 && machine->switches[0].slot == 0);
    const char *gpu = check_printf("/sys/devices/p/%s", machine->gpus[0].busid);
    put(check_printf("%s/max_link_speed", gpu), "16.0 GT/s PCIe\n");
    put(check_printf("%s/max_link_width", gpu), "16\n");
    put("/sys/devices/p/max_link_speed", "8.0 GT/s PCIe\n");
    put("/sys/devices/p/max_link_width", "8\n");
    put("/sys/bus/pci/devices/none", "");
    const char *link = check_at("sys/bus/pci/devices/%s", machine->gpus[0].busid);
    CHECK_INT(symlink(check_printf("../../../devices/p/%s", machine->gpus[0].busid), link), 0);
    put(check_printf("/sys/bus/pci/devices/%s/class", machine->gpus[1].busid), "0x030200\n");
    put(check_printf("/sys/bus/pci/devices/%s/max_link_speed", machine->nics[0].busid),
        "5.0 GT/s\n");
    put(check_printf("/sys/bus/pci/devices/%s/max_link_width", machine->nics[0].busid), "4\n");
    discover(&options);
    check_writable();
    CHECK(machine->gpus[0].slot == 6); /* 8 GT/s, 8 lanes */
    CHECK(machine->gpus[1].slot == 12 && machine->switches[0].slot == 0);
    CHECK(machine->nics[0].slot == 6); /* nothing of the port above: 16 lanes, as NCCL takes it */
}

/* GPUs that NVML doesn't list are left out; one that only NVML lists is taken. */
TEST(nvml_differs)
{
    const struct tccl_discover_options options = {.xml = topology("epyc-nps4-4a100"),
                                                  .root = check_folder()};
    fresh();
    setenv("FAKE_NVML_GPUS", "0000:c4:00.0,0000:03:00.0,0007:01:00.0", 1);
    setenv("FAKE_NVML_LOST", "1", 1);
    put("/sys/bus/pci/devices/0007:01:00.0/numa_node", "6\n");
    discover(&options);
    CHECK_INT(found.site.machine.n_gpus, 2);
    CHECK_STR(found.site.machine.gpus[0].busid, "0000:c4:00.0");
    CHECK_STR(found.site.machine.gpus[1].busid, "0007:01:00.0");
    CHECK_INT(found.site.machine.gpus[1].numa, 6);
    CHECK_INT(found.gpu_index[1], 2);
    CHECK(has_note("0000:03:00.0 is left out") && has_note("0007:01:00.0 is not on the PCI tree"));
    check_writable();
    setenv("FAKE_NVML_INIT", "18", 1);
    check_refused(&options, "Driver/library version mismatch");
}

/* NVML lists nothing: /proc says which is which, and who has them open. */
TEST(proc)
{
    const struct tccl_discover_options options = {.xml = topology("broadwell-2p100"),
                                                  .root = check_folder()};
    fresh();
    put("/proc/driver/nvidia/gpus/0000:07:00.0/information",
        "Model: \t\t NVIDIA P100\x07 Test\nIRQ:   \t\t 42\nDevice Minor: \t 3\n");
    put("/proc/4711/comm", "python3\n");
    put("/proc/4712/comm", "nvidia-cuda-mps\n");
    put("/proc/4711/fd/x", "");
    const char *path = check_at("proc/4711/fd/7");
    CHECK_INT(symlink("/dev/nvidia3", path), 0);
    discover(&options);
    CHECK_STR(found.site.machine.gpus[1].model, "NVIDIA P100? Test");
    CHECK_INT(found.site.machine.gpus[1].minor, 3);
    CHECK_INT(found.site.machine.gpus[0].minor, -1);
    CHECK_INT(found.n_users[1], 1);
    CHECK_STR(found.user[1], "python3 (pid 4711)");
    CHECK_INT(found.n_users[0], 0);
    CHECK_INT(found.marks, TCCL_MARK_MPS);
    CHECK(has_note("nvidia-cuda-mps-control"));
}

TEST(stand_ins)
{
    struct tccl_discover_options options = {
        .xml = topology("g5-48xlarge-8a10g"), .root = check_folder(), .devices = 4};
    const struct tccl_machine *machine = &found.site.machine;
    fresh();
    setenv("FAKE_NVML_GPUS", "0000:00:1d.0", 1);
    discover(&options);
    CHECK_INT(machine->n_gpus, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_STR(found.site.gpu_busid[i], "0000:00:1d.0");
        CHECK_INT(found.gpu_index[i], 0);
        CHECK_INT(tccl_machine_find_gpu(machine, machine->gpus[i].busid), i);
    }
    CHECK_STR(machine->gpus[0].busid, "0000:00:1d.0");
    CHECK_STR(machine->gpus[1].model, "Fake GPU (2 of 4 stand-ins)");
    CHECK(machine->p2p[0][3] && !machine->p2p[2][2]);
    CHECK_INT(found.marks, TCCL_MARK_STAND_IN);
    check_writable();
    options.devices = 16; /* more than one device number has functions */
    discover(&options);
    check_writable();
    options.devices = 17;
    check_refused(&options, "at most 16");
    options.root = NULL;
    options.devices = 2;
    check_refused(&options, "has 8 GPUs");
}

/* The place of a text in another, with what replaces it; to be freed. */
static char *replace_all(const char *text, const char *from, const char *to)
{
    char *copy = NULL;
    size_t size;
    FILE *out = open_memstream(&copy, &size);
    CHECK(strstr(text, from));
    for (const char *at; (at = strstr(text, from)); text = at + strlen(from))
        fprintf(out, "%.*s%s", (int)(at - text), text, to);
    fputs(text, out);
    fclose(out);
    return copy;
}

static char *load(const char *name)
{
    static char *text;
    size_t size;
    MUST(tccl_read_file(topology(name), 1 << 20, &text, &size, ERR));
    return text;
}

static const char *save(const char *text)
{
    const char *path = check_at("changed.xml");
    check_write_file(path, text);
    return path;
}

TEST(node_without_memory)
{
    struct tccl_discover_options options = {0};
    const struct tccl_machine *machine = &found.site.machine;
    cleanup_free char *text = load("epyc-nps4-4a100");
    fresh();
    cleanup_free char *none = replace_all(text, "local_memory=\"67636285440\"", "");
    options.xml = save(none);
    check_refused(&options, "no NUMA node with memory");
    /* Node 3, which GPU 0 is next to. */
    char *node = strstr(text, "type=\"NUMANode\" os_index=\"3\"");
    memcpy(strstr(node, "67636285440"), "00000000000", 11);
    options.xml = save(text);
    discover(&options);
    CHECK_INT(machine->n_memories, 7);
    CHECK_INT(machine->nodes[2], 2);
    CHECK_INT(machine->nodes[3], 4);
    CHECK_INT(found.site.machine.nodes[6], 7);
    CHECK_INT(machine->gpus[0].numa, 0); /* 0, 1, 2 are equally near, 4 to 7 farther */
    CHECK_INT(machine->nodes[machine->gpus[2].numa], 7);
    CHECK_INT(found.package_of[2], 0);
    CHECK_INT(found.package_of[3], 1);
    CHECK(has_note("NUMA node 3 has no memory") && has_note("node 0 is near"));
    check_writable();
}

/* GPUs on one bus, as many as wanted. facts: of the processor. */
static char *machine_of(int count, const char *facts)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" "
          "complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "
          "allowed_nodeset=\"0x1\" gp_index=\"1\">\n",
          out);
    fputs(facts, out);
    fputs("<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
          "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"4096\"/>\n"
          "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
          "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"3\"/>\n"
          "<object type=\"Bridge\" gp_index=\"4\" bridge_type=\"0-1\" depth=\"0\" "
          "bridge_pci=\"0000:[00-ff]\">\n",
          out);
    for (int i = 0; i < count; i++)
        fprintf(out,
                "<object type=\"PCIDev\" gp_index=\"%d\" pci_busid=\"0000:%02x:00.0\" "
                "pci_type=\"0302 [10de:20b0] [10de:0000] a1\" pci_link_speed=\"0.0\"/>\n",
                5 + i, i);
    fputs("</object></object></topology>\n", out);
    fclose(out);
    return text;
}

TEST(too_many)
{
    cleanup_free char *sixteen = machine_of(16, ""), *more = machine_of(17, "");
    struct tccl_discover_options options = {.xml = save(sixteen)};
    discover(&options);
    CHECK_INT(found.site.machine.n_gpus, 16);
    CHECK_STR(found.site.machine.gpus[15].busid, "0000:0f:00.0");
    check_writable();
    options.xml = save(more);
    check_refused(&options, "more than 16 GPUs");
}

#define FACT(name, value) "<info name=\"" name "\" value=\"" value "\"/>"
#define CPU(vendor, family, model)                                                                 \
    FACT("CPUVendor", vendor) FACT("CPUFamilyNumber", family) FACT("CPUModelNumber", model)

/* Processors by their numbers, and what NCCL takes them for. */
TEST(cpus)
{
    static const struct {
        const char *facts, *word;
    } cases[] = {
        {CPU("AuthenticAMD", "23", "49"), "amd"},       /* EPYC 7742 */
        {CPU("AuthenticAMD", "25", "1"), "amd-zen3"},   /* EPYC 7763 */
        {CPU("AuthenticAMD", "25", "17"), "amd-zen3"},  /* EPYC 9654 */
        {CPU("AuthenticAMD", "26", "2"), "amd-zen5"},   /* EPYC 9575F */
        {FACT("CPUModel", "AMD EPYC"), "amd"},          /* of which no more is known */
        {CPU("GenuineIntel", "6", "85"), "intel-skl"},  /* Xeon 8280 */
        {CPU("GenuineIntel", "6", "143"), "intel-srp"}, /* Xeon 8480+ */
        {CPU("GenuineIntel", "6", "173"), "intel-srp"}, /* Xeon 6980P, Granite Rapids */
        {CPU("GenuineIntel", "6", "207"), "intel-erp"}, /* Xeon 8592+ */
        {FACT("Architecture", "aarch64"), "arm"},       /* Grace */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        cleanup_free char *text = machine_of(2, cases[i].facts);
        struct tccl_discover_options options = {.xml = save(text)};
        discover(&options);
        CHECK_STR(tccl_cpu_word(found.site.machine.cpu), cases[i].word);
    }
}

TEST(bad_files)
{
    char path[PATH_MAX], deep[64 * 600] = "<topology version=\"2.0\">";
    cleanup_free char *text = load("epyc-nps4-4a100");
    size_t size = strlen(text);
    fresh();
    check_refused(&(struct tccl_discover_options){.xml = "/nonexistent.xml"}, "/nonexistent.xml");
    check_refused(&(struct tccl_discover_options){.xml = save("")},
                  "no XML that lstopo or NCCL wrote");
    check_refused(&(struct tccl_discover_options){.xml = save("<topology>\n")}, "hwloc can't");
    check_refused(&(struct tccl_discover_options){.xml = topology("vm-2core")}, "no GPU");
    for (int i = 0; i < 600; i++)
        strcat(deep + strlen(deep), "<object type=\"Group\">");
    check_refused(&(struct tccl_discover_options){.xml = save(deep)}, "inside each other");
    snprintf(path, sizeof(path), "%s/changed.xml", check_folder());
    CHECK_INT(truncate(path, TCCL_MAX_TOPOLOGY + 1), 0);
    check_refused(&(struct tccl_discover_options){.xml = path}, "changed.xml");
    for (size_t cut = 0; cut < size; cut += size / 60) {
        char kept = text[cut];
        text[cut] = '\0';
        /* Whatever is read is an error or a machine. */
        const struct tccl_discover_options options = {.xml = save(text)};
        if (tccl_discover(&options, &found, ERR) == 0)
            check_writable();
        else
            CHECK(check_err.text[0] && !strchr(check_err.text, '\n'));
        text[cut] = kept;
    }
}

/* ---- topologies that NCCL wrote ---- */

#define PCI(bus, class, more, below)                                                               \
    "<pci busid=\"" bus "\" class=\"" class "\" vendor=\"0x10de\" device=\"0x2684\"" more          \
                                            ">" below "</pci>"
#define GPU(bus, dev) PCI(bus, "0x030000", "", "<gpu dev=\"" dev "\" sm=\"89\" gdr=\"1\"/>")
#define NIC(bus, name, dev, gdr)                                                                   \
    PCI(bus, "0x020700", " link_speed=\"16.0 GT/s PCIe\" link_width='8'",                          \
        "<nic><net name=\"" name "\" dev=\"" dev "\" speed=\"100000\" gdr=\"" gdr "\"/></nic>")
#define CPU_OF(node, host, below)                                                                  \
    "<cpu host_hash=\"" host "\" numaid=\"" node "\" arch=\"x86_64\" vendor=\"GenuineIntel\" "     \
    "familyid=\"6\" modelid=\"143\">" below "</cpu>"

TEST(nccl_topology)
{
    static const char text[] =
        "<?xml version=\"1.0\"?><!-- <gpu> -->\n<system version=\"1\">" CPU_OF(
            "4", "0x1", GPU("0000:81:00.0", "1") "<nic><net name=\"br-1\" dev=\"1\"/></nic>")
            CPU_OF("0", "0x1",
                   PCI("0000:01:00.0", "0x060400",
                       " link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"",
                       PCI("0000:02:00.0", "0x060400", "", GPU("0000:03:00.0", "0"))
                           NIC("0000:04:00.0", "mlx5_0", "3", "1"))
                       NIC("0000:05:00.0", "mlx5-1", "2", "0"))
                CPU_OF("0", "0x2", GPU("0000:81:00.0", "0")) "</system>\n";
    const struct tccl_discover_options options = {.xml = save(text)};
    const struct tccl_machine *machine = &found.site.machine;
    discover(&options);
    check_writable();
    CHECK(found.recorded && machine->cpu == TCCL_CPU_INTEL_SRP);
    CHECK_INT(machine->n_memories, 2);
    CHECK_INT(machine->nodes[1], 4);
    CHECK_INT(machine->n_gpus, 2);
    CHECK_STR(machine->gpus[0].busid, "0000:03:00.0");
    CHECK_STR(machine->gpus[1].model, "10de:2684");
    CHECK(machine->gpus[0].numa == 0 && machine->gpus[1].numa == 1);
    CHECK(machine->gpus[1].slot == 12 && machine->gpus[1].sm == 89 && found.gpu_index[1] == 1);
    CHECK_INT(machine->n_switches, 2);
    CHECK(machine->switches[1].parent == 0 && machine->gpus[0].parent == 1);
    CHECK(machine->switches[0].slot == 48 && machine->switches[1].slot == 12);
    CHECK_INT(machine->n_nics, 2);
    CHECK_STR(machine->nics[0].name, "mlx5_1"); /* in the order of their numbers */
    CHECK(machine->nics[1].gbps == 12.5 && machine->nics[1].slot == 12);
    CHECK(machine->nics[1].parent == 0 && machine->nics[0].parent == -1);
    CHECK(machine->gpudirect[1][0] && machine->gpudirect[1][1] && !machine->gpudirect[0][0]);
    CHECK(!machine->p2p[0][1] && has_note("P2P is assumed") && has_note("br-1"));
}

/* What virtual machines are given names GPUs by their class only, and no CPU. */
TEST(nccl_topology_of_a_vm)
{
    const struct tccl_discover_options options = {
        .xml = save("<system version='1'>\n<cpu numaid='-1'>" PCI(
            "ffff:ff:01.0", "0x060400", "",
            PCI("0000:10:1c.0", "0x030200", "", "")) "</cpu></system>")};
    discover(&options);
    check_writable();
    CHECK_INT(found.site.machine.n_gpus, 1);
    CHECK_INT(found.site.machine.gpus[0].parent, 0);
    CHECK_INT(found.site.machine.gpus[0].sm, 0);
    CHECK(found.site.machine.cpu == TCCL_CPU_UNKNOWN && !has_note("NVLinks"));
}

/* AMD's CPUs as NCCL up to 2.30 writes their family, and as later ones do. */
TEST(nccl_topology_amd)
{
    static const struct {
        const char *family;
        enum tccl_cpu cpu;
    } cpus[] = {{"143", TCCL_CPU_AMD}, {"175", TCCL_CPU_AMD_ZEN3}, {"191", TCCL_CPU_AMD_ZEN5},
                {"23", TCCL_CPU_AMD},  {"25", TCCL_CPU_AMD_ZEN3},  {"26", TCCL_CPU_AMD_ZEN5}};
    for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
        const struct tccl_discover_options options = {
            .xml = save(check_printf(
                "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
                "familyid=\"%s\" modelid=\"1\">" GPU("0000:01:00.0", "0") "</cpu></system>",
                cpus[i].family))};
        discover(&options);
        CHECK_INT(found.site.machine.cpu, cpus[i].cpu);
    }
}

/* On a machine with GPUs 03 and 44 on nodes 0 and 1, 84 and c4: the file of a virtual machine's
 * host comes first, where it says something. */
TEST(virtual_topology)
{
    static const char file[] = "/var/run/nvidia-topologyd/virtualTopology.xml";
    static const char cpu[] = "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
                              "familyid=\"6\" modelid=\"143\"/>";
#define ONE_SWITCH                                                                                 \
    "<system version=\"1\"><cpu numaid=\"1\">"                                                     \
    "<pci busid=\"ffff:ff:01.0\" class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"16\">"      \
    "<pci busid=\"0000:03:00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"8\"/>"      \
    "<pci busid=\"0000:44:00.0\" class=\"0x030200\" link_width=\"8\"/><pci busid=\"%s\" "          \
    "class=\"0x020700\"/>"                                                                         \
    "</pci></cpu></system>"
    const struct {
        const char *text, *trouble; /* NULL: none */
        bool says_cpu, moves;
    } files[] = {
        {"<system version=\"1\"></system>", NULL, false, false},
        {check_printf("<system version=\"1\">%s</system>", cpu), NULL, true, false},
        {check_printf("<system version=\"1\">%s<cpu numaid=\"1\"/></system>", cpu), NULL, true,
         false},
        {"<system><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\"/></system>", NULL,
         false, false},
        {ONE_SWITCH, NULL, false, true},
        {"", "no XML that NCCL wrote", false, false},
        {"<system version=\"1\"><cpu", "no XML that NCCL wrote", false, false},
        {"<system><pci busid=\"0000:03:00.0\" class=\"0x030200\"/></system>", "names no CPU", false,
         false},
        {"<system><cpu numaid=\"77\"><pci busid=\"0000:03:00.0\" class=\"0x030200\"/></cpu>"
         "</system>",
         "NUMA nodes", false, false},
    };
    const struct tccl_discover_options options = {.xml = topology("epyc-nps4-4a100"),
                                                  .root = check_folder()};
    const struct tccl_machine *machine = &found.site.machine;
    fresh();
    put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    discover(&options);
    const struct tccl_machine before = *machine;
    CHECK(before.n_gpus == 4 && before.n_nics >= 1 && before.gpus[0].numa != before.gpus[1].numa);
    for (size_t i = 0; i < COUNT(files); i++) {
        put(file, check_printf(files[i].text, before.nics[0].busid));
        discover(&options);
        check_writable();
        CHECK_INT(found.unforetold, files[i].trouble != NULL);
        CHECK(!files[i].trouble || has_note(files[i].trouble));
        CHECK_INT(machine->cpu, files[i].says_cpu ? TCCL_CPU_INTEL_SRP : before.cpu);
        CHECK_INT(machine->gpus[2].numa, before.gpus[2].numa);
        CHECK_INT(machine->gpus[2].parent < 0, before.gpus[2].parent < 0);
        if (!files[i].moves) {
            CHECK(memcmp(machine->gpus, before.gpus, sizeof(before.gpus)) == 0);
            CHECK(memcmp(machine->nics, before.nics, sizeof(before.nics)) == 0);
            continue;
        }
        CHECK_STR(machine->switches[machine->gpus[0].parent].name, "ffff:ff:01.0");
        CHECK_INT(machine->gpus[1].parent, machine->gpus[0].parent);
        CHECK_INT(machine->nics[0].parent, machine->gpus[0].parent);
        CHECK(machine->switches[machine->gpus[0].parent].slot == 12);
        CHECK(machine->gpus[0].slot == 6 && machine->gpus[1].slot == before.gpus[1].slot);
        CHECK(machine->nodes[machine->gpus[0].numa] == 1 && machine->gpus[1].numa == 1);
        CHECK_INT(machine->nics[0].numa, 1);
        CHECK_STR(machine->nics[0].name, before.nics[0].name);
    }
    put(file, "");
    CHECK_INT(truncate(check_at("%s", file + 1), TCCL_MAX_TOPOLOGY + 1), 0);
    discover(&options);
    CHECK(found.unforetold && has_note("virtualTopology.xml") && has_note("File too large"));
    /* Of a machine that knows no device's node all but one are placed, and then all. */
    const struct tccl_discover_options flat = {.xml = topology("g5-48xlarge-8a10g"),
                                               .root = check_folder()};
    check_remove(check_at("var"));
    discover(&flat);
    CHECK(has_note("0000:00:16.0 and 8 others isn't known"));
    for (int n = 7; n <= 8; n++) {
        char text[2048] = "<system><cpu numaid=\"1\">";
        for (int i = 0; i < n; i++)
            strcat(text,
                   check_printf("<pci busid=\"%s\" class=\"0x030200\"/>", machine->gpus[i].busid));
        strcat(text, check_printf("<pci busid=\"%s\" class=\"0x020000\"/></cpu></system>",
                                  machine->nics[0].busid));
        put(file, text);
        discover(&flat);
        CHECK_INT(found.unforetold, false);
        CHECK_INT(has_note("next to GPU 0000:00:1d.0 isn't known"), n == 7);
        CHECK_INT(has_note("isn't known: the first"), n == 7);
    }
    check_remove(check_at("var"));
#undef ONE_SWITCH
}

static void check_nccl_refused(const char *text, const char *why)
{
    check_refused(&(struct tccl_discover_options){.xml = save(text)}, why);
}

TEST(nccl_topology_bad)
{
    char deep[1 << 14] = "<system version=\"1\">";
    cleanup_free char *whole = strdup(
        "<system version=\"1\"><cpu numaid=\"0\">" GPU("0000:81:00.0", "1") "</cpu></system>");
    size_t size = strlen(whole);
    check_nccl_refused("<system version=\"1\"></system>", "names no GPU");
    check_nccl_refused("<system version=\"1\"></system></system>", "without its beginning");
    check_nccl_refused("<system>" GPU("0000:81:00.0", "0") "</system>", "names no CPU");
    check_nccl_refused("<nic><net name=\"a\"/><system></system></nic>", "names no GPU");
    check_nccl_refused("<system version=1></system>", "no XML that NCCL wrote");
    check_nccl_refused("<system version=\"1></system>", "no XML that NCCL wrote");
    check_nccl_refused("<system version=\"1\"><!-- ", "not whole");
    check_nccl_refused("<system version=\"1\"><cpu numaid=\"0\">" GPU("0000:81:00.0", "0")
                           GPU("0000:81:00.0", "1") "</cpu></system>",
                       "there twice");
    check_nccl_refused(
        "<system version=\"1\"><cpu numaid=\"0\">" GPU("here", "0") "</cpu></system>",
        "bus id \"here\"");
    check_nccl_refused("<system version=\"1\"><cpu numaid=\"5000\"></cpu></system>",
                       "NUMA node 5000");
    for (int i = 0; i < 40; i++)
        strcat(deep, "<pci>");
    check_nccl_refused(deep, "inside each other");
    strcpy(deep, "<system version=\"1\"><cpu numaid=\"0\">");
    for (int i = 0; i < 17; i++)
        snprintf(deep + strlen(deep), sizeof(deep) - strlen(deep), GPU("0000:%02x:00.0", "0"), i);
    check_nccl_refused(deep, "more than 16 GPUs");
    for (size_t cut = 1; cut < size; cut++) {
        char kept = whole[cut];
        whole[cut] = '\0';
        const struct tccl_discover_options options = {.xml = save(whole)};
        CHECK(tccl_discover(&options, &found, ERR) == -1 && check_err.text[0]);
        whole[cut] = kept;
    }
}

TEST(as_v2)
{
    cleanup_free char *three = tccl_topology_as_v2(
        "<?xml version=\"1.0\"?>\r\n<!-- a --><topology version=\"3.1\">"
        "<object type=\"OSDev\" osdev_type=\"48\"/><object type=\"OSDev\" osdev_type=\"16\"/>"
        "<object type=\"OSDev\" osdev_type=\"1\"/><!-- b\n --></topology>",
        ERR);
    cleanup_free char *two =
        tccl_topology_as_v2("<topology version=\"2.0\"> osdev_type=\"48\" </topology>", ERR);
    CHECK_STR(three, "<topology version=\"2.0\">"
                     "<object type=\"OSDev\" osdev_type=\"3\"/>"
                     "<object type=\"OSDev\" osdev_type=\"2\"/>"
                     "<object type=\"OSDev\" osdev_type=\"0\"/></topology>");
    CHECK_STR(two, "<topology version=\"2.0\"> osdev_type=\"48\" </topology>");
    CHECK_STR(check_err.text, "");
    CHECK(!tccl_topology_as_v2("<topology version=\"2.0\"><object type=\"Core\" os_index=\"9\"/>"
                               "<object os_index=\"65536\" type=\"PU\"/></topology>",
                               ERR));
    CHECK(strstr(check_err.text, "from 0 to 65535"));
    CHECK(!tccl_topology_as_v2("<html>", ERR));
    CHECK(check_err.text[0]);
}

TEST(texts)
{
    char text[8];
    long number;
    fresh();
    tccl_sys_clean(text, sizeof(text), "  a\tb\x1b[1mcdefgh");
    CHECK_STR(text, "a b?[1m");
    tccl_sys_clean(text, sizeof(text), NULL);
    CHECK_STR(text, "");
    put("/sys/number", "-1\n");
    CHECK(tccl_sys_number(check_folder(), &number, "/sys/%s", "number"));
    CHECK_INT(number, -1);
    put("/sys/number", "none\n");
    CHECK(!tccl_sys_number(check_folder(), &number, "/sys/%s", "number"));
    CHECK(!tccl_sys_text(check_folder(), text, sizeof(text), "/sys/nothing"));
}

/* Lists of cores are the same by what is in them. */
TEST(cores)
{
    CHECK(!tccl_cores_differ("0-15,32-47", "0-7,8-15,32-47"));
    CHECK(!tccl_cores_differ("3", "3-3"));
    CHECK(tccl_cores_differ("0-15", "0-14"));
    CHECK(tccl_cores_differ("0-15", "16-31"));
    CHECK(!tccl_cores_differ("(null)", "0-15"));
}

SETUP
{
    if (!getenv("TCCL_TOPOLOGIES"))
        exit(1);
}
