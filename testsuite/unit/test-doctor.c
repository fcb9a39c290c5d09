/* What tccl-check machine finds: on /sys as recorded and posted machines have it, healthy, and with
 * one fault planted in each; what it reads of a configuration space, beside lspci; files that
 * nobody should believe. */
#include "base/fileio.h"
#include "check.h"
#include "doctor/doctor.h"

enum { MOST_MACHINES = 64 };

static char machines[MOST_MACHINES][64];
static int n_machines;
static const char *root; /* of the machine that is looked at */
static struct tccl_doctor_facts facts;
static struct tccl_doctor_findings findings;
static struct tccl_nvml nvml;
static bool with_nvml;

SETUP
{
    char line[64];
    FILE *names = popen(check_printf("%s/testsuite/unit/lay-out-machines %s",
                                     getenv("TCCL_SOURCES"), check_folder()),
                        "r");
    while (names && n_machines < MOST_MACHINES && fgets(line, sizeof(line), names)) {
        line[strcspn(line, "\n")] = '\0';
        strcpy(machines[n_machines++], line);
    }
    CHECK(names && pclose(names) == 0);
    CHECK(n_machines >= 30);
}

/* Reads and examines again. What is this process's own is as it should be. */
static void look(void)
{
    tccl_doctor_read(root, with_nvml ? &nvml : NULL, "NVML is not asked", &facts);
    facts.shm_gb = 64;
    facts.memlock_gb = -1;
    tccl_doctor_examine(&facts, &findings);
}

static int count(enum tccl_doctor_kind kind)
{
    int found = 0;
    for (int i = 0; i < facts.n_devices; i++)
        found += facts.devices[i].kind == kind;
    return found;
}

/* The n-th device of a kind, -1: there are fewer. */
static int nth(enum tccl_doctor_kind kind, int n)
{
    for (int i = 0; i < facts.n_devices; i++)
        if (facts.devices[i].kind == kind && n-- == 0)
            return i;
    return -1;
}

static const char *file_of(int device, const char *name)
{
    return check_printf("%s/sys/bus/pci/devices/%s/%s", root, facts.devices[device].busid, name);
}

/* A file of the tree while a fault is planted. */
static struct {
    char path[PATH_MAX], text[256];
    bool was;
} planted[64];
static int n_planted;

static void plant_at(const char *path, const char *text)
{
    snprintf(planted[n_planted].path, PATH_MAX, "%s", path);
    planted[n_planted].was = access(path, F_OK) == 0;
    snprintf(planted[n_planted++].text, sizeof(planted[0].text), "%s", check_read_file(path));
    check_write_file(path, text);
}

static void plant(int device, const char *name, const char *text)
{
    plant_at(file_of(device, name), text);
}

static void heal(void)
{
    while (n_planted > 0) {
        n_planted--;
        unlink(planted[n_planted].path);
        if (planted[n_planted].was)
            check_write_file(planted[n_planted].path, planted[n_planted].text);
    }
    with_nvml = false;
}

AFTER
{
    heal();
}

static void print_findings(void)
{
    fprintf(stderr, "%s:\n", root);
    tccl_doctor_print(stderr, &facts, &findings);
}

/* The one finding that there may be, and the device it is about; all that belongs to it is said. */
static void check_one(const char *rule, enum tccl_doctor_level level, int device)
{
    const struct tccl_doctor_finding *only = &findings.list[0];
    int before = check_failures;
    CHECK_INT(findings.count, 1);
    if (findings.count > 0) {
        CHECK_STR(only->rule, rule);
        CHECK_INT(only->level, level);
        CHECK_INT(only->device, device);
        CHECK(only->what[0] && only->cost[0] && only->mend[0] && only->risk[0]);
        CHECK(!strchr(only->mend, '@'));
        if (device >= 0 && strchr(only->mend, '-') && strstr(only->mend, "setpci -s"))
            CHECK_HOLDS(only->mend, facts.devices[device].busid);
    }
    if (check_failures > before)
        print_findings();
}

static void check_none(void)
{
    int before = check_failures;
    CHECK_INT(findings.count, 0);
    if (check_failures > before)
        print_findings();
}

/* The same of what is seen now. */
static void find_one(const char *rule, enum tccl_doctor_level level, int device)
{
    look();
    check_one(rule, level, device);
}

static void find_none(void)
{
    look();
    check_none();
}

static bool has_unknown(const char *text)
{
    for (int i = 0; i < findings.n_unknown; i++)
        if (strstr(findings.unknown[i], text))
            return true;
    return false;
}

/* For each machine, as it is: with device 0 of the kind, if it has one. */
#define ON_EACH(device, kind)                                                                      \
    for (int m_ = 0, device; m_ < n_machines; m_++)                                                \
        if (heal(), root = check_at("%s", machines[m_]), look(), (device = nth(kind, 0)) >= 0)

/* A healthy NVML for the machine. */
static void use_nvml(void)
{
    memset(&nvml, 0, sizeof(nvml));
    nvml.knows_p2p = true;
    for (int i = 0; i < facts.n_devices; i++)
        if (facts.devices[i].kind == TCCL_DOCTOR_GPU) {
            struct tccl_nvml_gpu *gpu = &nvml.gpus[nvml.n_gpus];
            *gpu = (struct tccl_nvml_gpu){.index = nvml.n_gpus++, .persistence = 1, .pstate = 8};
            strcpy(gpu->busid, facts.devices[i].busid);
        }
    for (int a = 0; a < nvml.n_gpus; a++)
        for (int b = 0; b < nvml.n_gpus; b++)
            nvml.read[a][b] = nvml.write[a][b] = a != b;
    with_nvml = true;
}

/* ---- a configuration space ---- */

struct space {
    unsigned char bytes[TCCL_DOCTOR_CONFIG];
};

static void put_word(struct space *space, int at, unsigned word)
{
    space->bytes[at] = (unsigned char)word;
    space->bytes[at + 1] = (unsigned char)(word >> 8);
}

/* Power management, then PCI Express; AER, then ACS. */
static struct space make_space(bool bridge, unsigned control, unsigned acs)
{
    struct space space = {{0}};
    put_word(&space, 0, 0x10b5);
    put_word(&space, 2, 0x8796);
    put_word(&space, 6, 0x10);
    put_word(&space, 0x0a, bridge ? 0x0604 : 0x0302);
    space.bytes[0x0e] = bridge;
    space.bytes[0x34] = 0x40;
    put_word(&space, 0x40, 0x4801);
    put_word(&space, 0x48, 0x0010);
    put_word(&space, 0x4a, bridge ? 0x0062 : 0x0002); /* version 2; downstream port, endpoint */
    put_word(&space, 0x50, control);
    put_word(&space, 0x100, 0x0001);
    put_word(&space, 0x102, 0x1401 | 1);
    put_word(&space, 0x140, 0x000d);
    put_word(&space, 0x142, 1);
    put_word(&space, 0x144, 0x7f);
    put_word(&space, 0x146, acs);
    return space;
}

static void plant_space(int device, const struct space *space, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", file_of(device, "config"));
    snprintf(planted[n_planted++].path, PATH_MAX, "%s", path);
    planted[n_planted - 1].was = false;
    FILE *file = fopen(path, "we");
    CHECK(file && fwrite(space->bytes, 1, size, file) == size);
    if (file)
        fclose(file);
}

/* ---- healthy ---- */

TEST(healthy)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        check_none();
        CHECK_STR(tccl_doctor_link_name(tccl_doctor_link(&facts, gpu).state), "full");
        CHECK(has_unknown("ACS, MaxReadReq"));
        CHECK(has_unknown("NVML is not asked"));
        use_nvml();
        find_none();
        CHECK(!has_unknown("NVML"));
    }
}

/* The tree is that of the file, and so are the numbers of GPUs. */
TEST(tree)
{
    char path[TCCL_DOCTOR_PATH], name[TCCL_NAME + 8];
    root = check_at("turin-pex890");
    look();
    CHECK_INT(count(TCCL_DOCTOR_GPU), 8);
    int gpu = nth(TCCL_DOCTOR_GPU, 1);
    tccl_doctor_name(&facts.devices[gpu], name);
    CHECK_STR(name, "GPU 1");
    CHECK_STR(facts.devices[gpu].busid, "0000:15:00.0");
    tccl_doctor_path(&facts, gpu, path);
    CHECK_INT(strlen(path), 3 * 15 + 12); /* root port, switch, its port down */
    CHECK_HOLDS(path, "> 0000:15:00.0");
    CHECK_INT(facts.devices[gpu].numa, 0);
    struct tccl_doctor_rate rate = tccl_doctor_link(&facts, gpu);
    CHECK(fabs(rate.gbps_most - 63.0) < 0.1); /* PCIe 5.0, 16 lanes */
}

/* ---- links ---- */

TEST(half_the_lanes)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        plant(gpu, "current_link_width", "1\n");
        find_one("link", TCCL_DOCTOR_WARN, gpu);
        CHECK_HOLDS(findings.list[0].what, "trained at x1 with");
    }
}

TEST(idle_is_not_degraded)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        plant(gpu, "current_link_speed", "2.5 GT/s PCIe\n");
        if (facts.devices[gpu].above >= 0) /* which is the other end */
            plant(facts.devices[gpu].above, "current_link_speed", "2.5 GT/s PCIe\n");
        find_none();
        CHECK_STR(tccl_doctor_link_name(tccl_doctor_link(&facts, gpu).state), "idle");
        cleanup_json json_t *json = tccl_doctor_to_json(&facts, &findings);
        cleanup_free char *text = json_dumps(json, 0);
        CHECK(!strstr(text, "degraded")); /* nor its port */
        int lanes = facts.devices[gpu].lanes;
        plant(gpu, "current_link_width", "1\n"); /* that won't come back, the speed will */
        find_one("link", TCCL_DOCTOR_WARN, gpu);
        CHECK_HOLDS(findings.list[0].what, "x1 with 2.5 GT/s (at rest), both ends can");
        CHECK_HOLDS(
            findings.list[0].what,
            check_printf("at most %.1f of", tccl_doctor_carried(facts.devices[gpu].gts_most, 1)));
        plant(gpu, "current_link_width", check_printf("%d\n", lanes));
        use_nvml(); /* a process that waits: still at rest */
        nvml.gpus[0].n_users = 1;
        find_none();
        nvml.gpus[0].pstate = 0; /* at work */
        find_one("link", TCCL_DOCTOR_WARN, gpu);
        CHECK_HOLDS(findings.list[0].what, "2.5 GT/s");
    }
}

/* Switches don't rest. */
TEST(slow_uplink)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        int port = facts.devices[gpu].above, up = port < 0 ? -1 : facts.devices[port].above;
        if (up < 0 || facts.devices[up].above < 0)
            continue;
        plant(up, "current_link_speed", "5.0 GT/s PCIe\n");
        find_one("link", TCCL_DOCTOR_WARN, up);
    }
}

TEST(nic_with_room)
{
    ON_EACH(nic, TCCL_DOCTOR_NIC)
    {
        struct tccl_doctor_rate rate = tccl_doctor_link(&facts, nic);
        int lanes = rate.lanes / 2;
        if (lanes < 1)
            continue;
        plant(nic, "current_link_width", check_printf("%d\n", lanes));
        find_one("link", TCCL_DOCTOR_WARN, nic); /* its rate isn't known */
        plant_at(
            check_printf("%s/sys/class/infiniband/%s/ports/1/rate", root, facts.devices[nic].name),
            check_printf("%.0f Gb/sec (4X)\n", rate.gbps_most * 8 * 0.4));
        find_one("link", TCCL_DOCTOR_NOTE, nic);
        plant_at(
            check_printf("%s/sys/class/infiniband/%s/ports/1/rate", root, facts.devices[nic].name),
            check_printf("%.0f Gb/sec (4X)\n", rate.gbps_most * 8 * 0.9));
        find_one("link", TCCL_DOCTOR_WARN, nic);
    }
}

/* A card of 16 lanes in a slot of 4 isn't badly trained; it is worth a word where a like one is
 * better off. */
TEST(narrow_slot)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        int above = facts.devices[gpu].above;
        int lanes = facts.devices[gpu].lanes_most, like = nth(TCCL_DOCTOR_GPU, 1);
        if (above < 0 || lanes < 8)
            continue;
        plant(above, "max_link_width", "4\n");
        plant(above, "current_link_width", "4\n");
        plant(gpu, "current_link_width", "4\n");
        look();
        if (like >= 0 && facts.devices[like].above == above)
            continue; /* a virtual machine's flat bus */
        check_one("slot", like >= 0 ? TCCL_DOCTOR_WARN : TCCL_DOCTOR_NOTE, gpu);
        CHECK_HOLDS(findings.list[0].what, check_printf("4 of the %d lanes", lanes));
        heal(); /* that the BIOS holds at a lower generation */
        plant(above, "max_link_speed", "2.5 GT/s PCIe\n");
        plant(gpu, "current_link_speed", "2.5 GT/s PCIe\n");
        look();
        if (like >= 0)
            check_one("slot", TCCL_DOCTOR_WARN, gpu);
        else
            check_none(); /* an old board */
    }
}

/* What a link's two ends say may be nonsense, as bridges of virtual machines do. */
TEST(virtual_bridge)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        int above = facts.devices[gpu].above;
        plant(above, "max_link_speed", "2.5 GT/s PCIe\n");
        plant(above, "max_link_width", "1\n");
        find_none();
        CHECK(has_unknown("width and speed of"));
        plant(above, "max_link_speed", "Unknown\n");
        plant(gpu, "max_link_width", "255\n");
        plant(gpu, "current_link_width", "0\n");
        find_none();
    }
}

/* A sound card, a disk, a slow Ethernet interface, with what links they like. */
TEST(others_are_left_alone)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        static const char *const classes[] = {"0x040300", "0x010802", "0x020000"};
        int devices = facts.n_devices;
        for (size_t i = 0; i < COUNT(classes); i++) {
            const char *folder = check_printf("%s/sys/bus/pci/devices/00ff:0%zu:00.0", root, i);
            check_write_file(check_printf("%s/class", folder), check_printf("%s\n", classes[i]));
            check_write_file(check_printf("%s/vendor", folder), "0x1102\n");
            check_write_file(check_printf("%s/max_link_width", folder), "16\n");
            check_write_file(check_printf("%s/current_link_width", folder), "4\n");
            check_write_file(check_printf("%s/max_link_speed", folder), "16.0 GT/s PCIe\n");
            check_write_file(check_printf("%s/current_link_speed", folder), "2.5 GT/s PCIe\n");
            if (i == 2)
                check_write_file(check_printf("%s/net/eno1/address", folder), "\n");
        }
        check_write_file(check_printf("%s/sys/class/net/eno1/speed", root), "1000\n");
        find_none();
        CHECK_INT(facts.n_devices, devices);
        for (size_t i = 0; i < COUNT(classes); i++)
            check_remove(check_printf("%s/sys/bus/pci/devices/00ff:0%zu:00.0", root, i));
        check_remove(check_printf("%s/sys/class/net/eno1", root));
    }
}

/* ---- configuration ---- */

/* Is the bridge between a GPU and another GPU or NIC below one more bridge? By the drawing: its
 * bus is one of several on a switch. */
static int switch_port(void)
{
    for (int i = 0; i < facts.n_devices; i++) {
        int port = facts.devices[i].above, up = port < 0 ? -1 : facts.devices[port].above;
        if (facts.devices[i].kind != TCCL_DOCTOR_GPU || up < 0)
            continue;
        for (int j = 0; j < facts.n_devices; j++)
            if (j != port && facts.devices[j].kind == TCCL_DOCTOR_BRIDGE &&
                facts.devices[j].above == up)
                return port;
    }
    return -1;
}

static int root_of(int device)
{
    while (facts.devices[device].above >= 0)
        device = facts.devices[device].above;
    return device;
}

TEST(acs)
{
    const struct space on = make_space(true, 0x2810, 0x1c), off = make_space(true, 0x2810, 0x11);
    int tried = 0;
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        int port = switch_port();
        if (port < 0)
            continue;
        tried++;
        plant_space(port, &on, 4096);
        find_one("acs", TCCL_DOCTOR_WARN, port);
        CHECK_HOLDS(findings.list[0].what, "request and completion redirect");
        CHECK_HOLDS(findings.list[0].cost, "50 GB/s both ways in place of 103");
        heal();
        plant_space(port, &off, 4096);
        find_none();
        heal();
        plant_space(port, &on, 64); /* what a user sees */
        find_none();
        CHECK(has_unknown("ACS"));
        heal();
        /* At the root, transfers go up anyway. */
        int top = root_of(port);
        plant_space(top, &on, 4096);
        find_none();
    }
    CHECK(tried > 5);
}

/* Of one port of several it says nothing: nothing passes between two of them then. */
TEST(acs_at_root_ports)
{
    const struct space on = make_space(true, 0x2810, 0x1c), off = make_space(true, 0x2810, 0x11);
    int tried = 0;
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        const int first = root_of(gpu);
        int other = -1;
        for (int i = 0; i < facts.n_devices && other < 0; i++)
            if (facts.devices[i].kind == TCCL_DOCTOR_GPU && root_of(i) != first &&
                facts.devices[root_of(i)].kind == TCCL_DOCTOR_BRIDGE)
                other = root_of(i);
        if (other < 0 || facts.devices[first].kind != TCCL_DOCTOR_BRIDGE)
            continue;
        tried++;
        plant_space(first, &on, 4096);
        plant_space(other, &off, 4096);
        find_none();
        plant_space(other, &on, 4096);
        find_one("acs-root", TCCL_DOCTOR_NOTE, first < other ? first : other);
        CHECK_HOLDS(findings.list[0].what, "at 1 other root port above GPUs");
    }
    CHECK(tried > 5);
}

TEST(ordering_and_reads)
{
    const struct space usual = make_space(false, 0x2810, 0), strict = make_space(false, 0x2800, 0);
    const struct space small = make_space(false, 0x0810, 0), large = make_space(false, 0x5810, 0);
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        int other = nth(TCCL_DOCTOR_GPU, 1);
        plant_space(gpu, &strict, 256);
        find_none(); /* nobody else's is known, or there is nobody */
        CHECK_INT(facts.devices[gpu].relaxed, 0);
        CHECK_INT(facts.devices[gpu].read_request, 512);
        heal();
        plant_space(gpu, &small, 256);
        find_one("reads", TCCL_DOCTOR_WARN, gpu);
        heal();
        if (other < 0 || facts.devices[other].device != facts.devices[gpu].device)
            continue;
        plant_space(gpu, &strict, 4096);
        plant_space(other, &usual, 4096);
        find_one("ordering", TCCL_DOCTOR_WARN, gpu);
        heal();
        plant_space(gpu, &usual, 4096);
        plant_space(other, &large, 4096);
        find_one("reads", TCCL_DOCTOR_WARN, gpu);
    }
}

/* Another reader of the same bytes. */
TEST(beside_lspci)
{
    char text[16384];
    if (system("command -v lspci >/dev/null") != 0) {
        fprintf(stderr, "lspci is not here: not compared\n");
        return;
    }
    for (int i = 0; i < 20; i++) {
        unsigned control = roll(8) << 5 | roll(6) << 12 | roll(2) << 4, acs = roll(128);
        const struct space space = make_space(true, control, acs);
        struct tccl_doctor_device device = {.number = -1};
        FILE *dump = fopen(check_at("dump"), "we");
        fprintf(dump, "00:01.0 bridge\n");
        for (int at = 0; at < TCCL_DOCTOR_CONFIG; at++)
            fprintf(dump, "%s%02x%s", at % 16 ? " " : check_printf("%02x: ", at), space.bytes[at],
                    at % 16 == 15 ? "\n" : "");
        fclose(dump);
        FILE *said = popen(check_printf("lspci -vvv -F %s 2>/dev/null", check_at("dump")), "r");
        text[said ? fread(text, 1, sizeof(text) - 1, said) : 0] = '\0';
        if (said)
            text[sizeof(text) - 1] = '\0', pclose(said);
        tccl_doctor_config(space.bytes, sizeof(space.bytes), &device);
        CHECK_HOLDS(text, check_printf("MaxReadReq %d bytes", device.read_request));
        CHECK_HOLDS(text, device.relaxed ? "RlxdOrd+" : "RlxdOrd-");
        CHECK_HOLDS(text, check_printf("ACSCtl:\tSrcValid%c TransBlk%c ReqRedir%c CmpltRedir%c",
                                       device.acs & 1 ? '+' : '-', device.acs & 2 ? '+' : '-',
                                       device.acs & 4 ? '+' : '-', device.acs & 8 ? '+' : '-'));
    }
}

/* Any bytes, of any length: bounded, and nothing read that isn't there (by the sanitizers). */
TEST(any_configuration)
{
    for (int i = 0; i < 20000; i++) {
        size_t size = roll(4) ? roll(TCCL_DOCTOR_CONFIG + 1) : roll(300);
        unsigned char *bytes = malloc(size ? size : 1);
        struct tccl_doctor_device device = {.number = -1};
        for (size_t at = 0; at < size; at++)
            bytes[at] = (unsigned char)(roll(3) ? roll(256) : roll(2) ? 0x10 : 0x0d);
        tccl_doctor_config(bytes, size, &device);
        CHECK(device.acs >= -1 && device.acs <= 0xffff);
        CHECK(device.read_request >= 0 && device.read_request <= 16384);
        free(bytes);
    }
}

TEST(lost)
{
    struct space gone;
    memset(&gone, 0xff, sizeof(gone));
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        plant_space(gpu, &gone, 64); /* users see that, too */
        find_one("lost", TCCL_DOCTOR_FAIL, gpu);
        heal();
        if (nth(TCCL_DOCTOR_GPU, 1) < 0)
            continue;
        use_nvml();
        for (int i = 0; i + 1 < nvml.n_gpus; i++)
            nvml.gpus[i] = nvml.gpus[i + 1];
        nvml.n_gpus--;
        find_one("lost", TCCL_DOCTOR_FAIL, gpu);
        const char *driver = check_printf("%s/sys/bus/pci/drivers/vfio-pci", root);
        check_write_file(check_printf("%s/bind", driver), "");
        CHECK_INT(symlink(driver, file_of(gpu, "driver")), 0);
        find_none(); /* a virtual machine has it */
        unlink(file_of(gpu, "driver"));
        find_one("lost", TCCL_DOCTOR_FAIL, gpu);
        /* The others have the numbers that everybody else gives them. */
        CHECK_INT(facts.devices[gpu].number, -1);
        CHECK_INT(facts.devices[nth(TCCL_DOCTOR_GPU, 1)].number, 0);
    }
}

/* ---- the machine ---- */

TEST(iommu)
{
    static const struct {
        const char *type;
        bool translates;
    } types[] = {{"identity", false}, {"DMA", true}, {"DMA-FQ", true}};
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    for (size_t i = 0; i < COUNT(types); i++) {
        int second = nth(TCCL_DOCTOR_GPU, 1);
        check_write_file(check_printf("%s/sys/kernel/iommu_groups/7/type", root),
                         check_printf("%s\n", types[i].type));
        for (int d = 0; d < 2; d++)
            if (d == 0 || second >= 0)
                CHECK_INT(symlink(check_printf("%s/sys/kernel/iommu_groups/7", root),
                                  file_of(d ? second : gpu, "iommu_group")),
                          0);
        look();
        if (types[i].translates)
            check_one("iommu", second >= 0 ? TCCL_DOCTOR_WARN : TCCL_DOCTOR_NOTE, -1);
        else
            check_none();
        unlink(file_of(gpu, "iommu_group"));
        if (second >= 0)
            unlink(file_of(second, "iommu_group"));
    }
}

TEST(numa_nodes)
{
    root = check_at("epyc-8gpu"); /* four nodes a socket */
    look();
    for (int node = 0; node < 8; node++) {
        plant_at(check_printf("%s/sys/devices/system/node/node%d/cpulist", root, node),
                 check_printf("%d-%d\n", node * 16, node * 16 + 15));
        plant_at(check_printf("%s/sys/devices/system/cpu/cpu%d/topology/physical_package_id", root,
                              node * 16),
                 check_printf("%d\n", node / 4));
    }
    look();
    CHECK_INT(facts.n_nodes, 8);
    check_none(); /* each has a GPU */
    for (int i = 0; i < facts.n_devices; i++)
        if (facts.devices[i].numa == 3)
            plant(i, "numa_node", "2\n");
    find_one("nodes", TCCL_DOCTOR_NOTE, -1);
    CHECK_HOLDS(findings.list[0].what, "4 NUMA nodes a socket");
    CHECK_HOLDS(findings.list[0].what, "1 of them (3)");
}

TEST(place)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        for (int node = 0; node < 2; node++)
            plant_at(check_printf("%s/sys/devices/system/node/node%d/cpulist", root, node),
                     check_printf("%d\n", node));
        int is = facts.devices[gpu].numa;
        plant(gpu, "numa_node", check_printf("%d\n", is ? 0 : 1));
        look();
        int behind = 0;
        for (int i = 0; i < facts.n_devices; i++)
            behind += facts.devices[i].above == facts.devices[gpu].above;
        if (behind > 1)
            check_none(); /* a virtual machine's flat bus */
        else
            check_one("place", TCCL_DOCTOR_WARN, gpu);
        plant(gpu, "numa_node", "-1\n");
        find_one("place", TCCL_DOCTOR_WARN, gpu);
    }
}

TEST(peers)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        use_nvml();
        if (nvml.n_gpus < 3)
            continue;
        nvml.read[0][2] = false;
        find_one("peers", TCCL_DOCTOR_WARN, -1);
        CHECK_HOLDS(findings.list[0].what, "GPUs 0 and 2");
        CHECK(!strstr(findings.list[0].what, "more pair"));
        nvml.write[2][1] = false;
        find_one("peers", TCCL_DOCTOR_WARN, -1);
        CHECK_HOLDS(findings.list[0].what, "only (and 1 more pair)");
        nvml.write[2][1] = true;
        nvml.write[0][2] = nvml.read[2][0] = nvml.write[2][0] = false;
        find_one("peers", TCCL_DOCTOR_NOTE, -1);
        CHECK_HOLDS(findings.list[0].what, "not between 0 and 2");
        nvml.knows_cuda = true; /* so does CUDA, but one way is closed, or both */
        for (int a = 0; a < nvml.n_gpus; a++)
            for (int b = 0; b < nvml.n_gpus; b++)
                nvml.reach[a][b] = a != b && a + b != 2;
        find_one("peers", TCCL_DOCTOR_NOTE, -1);
        nvml.reach[1][0] = false;
        look();
        CHECK_INT(findings.count, 2);
        CHECK_HOLDS(findings.list[0].what, "GPUs 0 and 1");
        CHECK_HOLDS(findings.list[0].what, "in one direction only by CUDA");
        nvml.reach[0][1] = false;
        look();
        CHECK_INT(findings.count, 2);
        CHECK_HOLDS(findings.list[0].what, "CUDA, which programs ask, refuses it");
        nvml.knows_p2p = false; /* an old NVML */
        find_one("peers", TCCL_DOCTOR_NOTE, -1);
        CHECK_HOLDS(findings.list[0].what, "not between 0 and 1");
        memset(nvml.reach, 0, sizeof(nvml.reach));
        find_none();
        nvml.knows_p2p = true;
        nvml.knows_cuda = false;
        memset(nvml.read, 0, sizeof(nvml.read)); /* GeForce: nobody has any */
        memset(nvml.write, 0, sizeof(nvml.write));
        find_none();
    }
}

TEST(drivers_and_limits)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        use_nvml();
        nvml.gpus[0].persistence = 0;
        find_one("persistence", TCCL_DOCTOR_NOTE, -1);
        nvml.gpus[0].persistence = -1;
        nvml.gpus[0].mig = true;
        find_one("mig", TCCL_DOCTOR_NOTE, gpu);
        heal();
        look();
        for (int i = 0; i < 3; i++) { /* Docker's, a bare chroot's, and one without limit */
            facts.shm_gb = (double[]){0.067, 0, -1}[i];
            tccl_doctor_examine(&facts, &findings);
            if (i < 2 && count(TCCL_DOCTOR_GPU) > 1)
                check_one("shm", TCCL_DOCTOR_WARN, -1);
            else
                check_none();
        }
        facts.shm_gb = 64;
        for (int i = 0; i < 3; i++) { /* 128 GB: an eighth of the memory, as systemd has it */
            facts.memlock_gb = (double[]){0, 8e-3, 128}[i];
            tccl_doctor_examine(&facts, &findings);
            if (nth(TCCL_DOCTOR_NIC, 0) >= 0)
                check_one("memlock", i < 2 ? TCCL_DOCTOR_WARN : TCCL_DOCTOR_NOTE, -1);
            else
                check_none();
        }
    }
}

TEST(nics)
{
    int near = 0;
    ON_EACH(nic, TCCL_DOCTOR_NIC)
    {
        const char *module = check_printf("%s/sys/module/nvidia_peermem", root);
        int other = nth(TCCL_DOCTOR_NIC, 1);
        if (access(module, F_OK) == 0) {
            CHECK_INT(rename(module, check_printf("%s-away", module)), 0);
            look();
            near += findings.count > 0;
            if (findings.count > 0)
                check_one("gpudirect", TCCL_DOCTOR_WARN, findings.list[0].device);
            CHECK_INT(rename(check_printf("%s-away", module), module), 0);
        }
        if (other < 0)
            continue;
        const char *ports =
            check_printf("%s/sys/class/infiniband/%s/ports/1/state", root, facts.devices[nic].name);
        plant_at(ports, "1: DOWN\n");
        find_one("nic", TCCL_DOCTOR_WARN, nic);
        heal();
        for (int i = 0; i < count(TCCL_DOCTOR_NIC); i++)
            plant_at(check_printf("%s/sys/class/infiniband/%s/fw_ver", root,
                                  facts.devices[nth(TCCL_DOCTOR_NIC, i)].name),
                     "28.39.1002\n");
        find_none();
        int last = nth(TCCL_DOCTOR_NIC, count(TCCL_DOCTOR_NIC) - 1);
        plant_at(check_printf("%s/sys/class/infiniband/%s/fw_ver", root, facts.devices[last].name),
                 "28.36.1010\n");
        find_one("firmware", TCCL_DOCTOR_WARN, last);
        if (count(TCCL_DOCTOR_NIC) < 3)
            continue;
        heal(); /* the first is the odd one: the others are not */
        for (int i = 0; i < count(TCCL_DOCTOR_NIC); i++)
            plant_at(check_printf("%s/sys/class/infiniband/%s/fw_ver", root,
                                  facts.devices[nth(TCCL_DOCTOR_NIC, i)].name),
                     i ? "28.39.1002\n" : "28.36.1010\n");
        find_one("firmware", TCCL_DOCTOR_WARN, nic);
    }
    CHECK(near > 3);
}

/* ---- several at once ---- */

/* Each returns the device that is to be found, -1 the machine, NOWHERE: not on this one. */
enum { NOWHERE = -2 };
static struct tccl_doctor_device *of(enum tccl_doctor_kind kind, int n)
{
    int device = nth(kind, n);
    return device >= 0 ? &facts.devices[device] : NULL;
}

static int plant_lost(void)
{
    int last = nth(TCCL_DOCTOR_GPU, count(TCCL_DOCTOR_GPU) - 1);
    facts.devices[last].lost = true;
    return last;
}

static int plant_link(void)
{
    struct tccl_doctor_device *gpu = of(TCCL_DOCTOR_GPU, 0);
    gpu->lanes /= 2;
    gpu->gts = 2.5;
    return nth(TCCL_DOCTOR_GPU, 0);
}

static int plant_slot(void)
{
    const struct tccl_doctor_device *gpu = of(TCCL_DOCTOR_GPU, 1);
    if (gpu->above < 0 || facts.devices[gpu->above].lanes_most == 0)
        return NOWHERE;
    of(TCCL_DOCTOR_GPU, 1)->lanes_most *= 2;
    return nth(TCCL_DOCTOR_GPU, 1);
}

static int plant_acs(void)
{
    int port = switch_port();
    if (port < 0)
        return NOWHERE;
    facts.devices[port].acs = 4;
    return port;
}

static int plant_iommu(void)
{
    strcpy(of(TCCL_DOCTOR_GPU, 0)->iommu, "DMA-FQ");
    return -1;
}

static int plant_ordering(void)
{
    if (of(TCCL_DOCTOR_GPU, 0)->device != of(TCCL_DOCTOR_GPU, 1)->device)
        return NOWHERE;
    of(TCCL_DOCTOR_GPU, 0)->relaxed = 0;
    of(TCCL_DOCTOR_GPU, 1)->relaxed = 1;
    return nth(TCCL_DOCTOR_GPU, 0);
}

static int plant_reads(void)
{
    of(TCCL_DOCTOR_GPU, 1)->read_request = 128;
    return nth(TCCL_DOCTOR_GPU, 1);
}

static int plant_peers(void)
{
    facts.nvml.write[0][1] = false;
    return -1;
}

static int plant_nic(void)
{
    if (count(TCCL_DOCTOR_NIC) < 2 ||
        of(TCCL_DOCTOR_NIC, 0)->device != of(TCCL_DOCTOR_NIC, 1)->device)
        return NOWHERE;
    of(TCCL_DOCTOR_NIC, 0)->link = TCCL_LINK_DOWN;
    of(TCCL_DOCTOR_NIC, 1)->link = TCCL_LINK_UP;
    return nth(TCCL_DOCTOR_NIC, 0);
}

static int plant_shm(void)
{
    facts.shm_gb = 0.067;
    return -1;
}

static int plant_memlock(void)
{
    facts.memlock_gb = 8e-3;
    return count(TCCL_DOCTOR_NIC) ? -1 : NOWHERE;
}

static int plant_persistence(void)
{
    facts.nvml.gpus[0].persistence = 0;
    return -1;
}

static int plant_mig(void)
{
    facts.nvml.gpus[1].mig = true;
    return nth(TCCL_DOCTOR_GPU, 1);
}

TEST(several)
{
    static const struct {
        const char *rule;
        int (*plant)(void);
    } faults[] = {
        {"lost", plant_lost},   {"link", plant_link},       {"slot", plant_slot},
        {"acs", plant_acs},     {"iommu", plant_iommu},     {"ordering", plant_ordering},
        {"reads", plant_reads}, {"peers", plant_peers},     {"nic", plant_nic},
        {"shm", plant_shm},     {"memlock", plant_memlock}, {"persistence", plant_persistence},
        {"mig", plant_mig},
    };
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        if (count(TCCL_DOCTOR_GPU) < 3 || facts.devices[gpu].lanes < 2)
            continue;
        use_nvml();
        for (unsigned try = 0; try < 8; try++) {
            unsigned chosen = try ? roll(1U << COUNT(faults)) : ~0U;
            int expected = 0, before = check_failures;
            int at[COUNT(faults)];
            look();
            for (size_t i = 0; i < COUNT(faults); i++) {
                at[i] = chosen >> i & 1 ? faults[i].plant() : NOWHERE;
                expected += at[i] != NOWHERE;
            }
            tccl_doctor_examine(&facts, &findings);
            CHECK_INT(findings.count, expected);
            for (int f = 0; f < findings.count; f++) {
                const struct tccl_doctor_finding *finding = &findings.list[f];
                bool planned = false;
                for (size_t i = 0; i < COUNT(faults); i++)
                    planned |= at[i] == finding->device && !strcmp(faults[i].rule, finding->rule);
                CHECK(planned);
                CHECK(finding->what[0] && finding->mend[0] && finding->risk[0]);
                CHECK(f == 0 || finding->level <= findings.list[f - 1].level);
            }
            if (check_failures > before)
                print_findings();
        }
    }
}

/* ---- nothing to see, and too much ---- */

TEST(container)
{
    root = check_at("nothing");
    look();
    CHECK(!facts.pci);
    CHECK_INT(facts.n_devices, 0);
    check_none();
    CHECK(has_unknown("outside of the container"));
    /* NVML is there: peer access is looked at all the same. */
    root = check_at("turin-pex890");
    look();
    use_nvml();
    nvml.read[0][1] = false;
    root = check_at("nothing");
    find_one("peers", TCCL_DOCTOR_WARN, -1);
}

/* A tree that no machine has: bridges inside each other, more devices than fit, wild files. */
TEST(too_much)
{
    char path[PATH_MAX] = "", busid[16];
    const char *devices;
    root = check_at("much");
    devices = check_at("much/sys/bus/pci/devices");
    snprintf(path, sizeof(path), "%s/sys/devices/pci0000:00", root);
    for (int i = 1; i < 60; i++)
        snprintf(path + strlen(path), 32, "/0000:%02x:00.0", i);
    check_write_file(check_printf("%s/class", path), "0x030200\n");
    check_write_file(check_printf("%s/vendor", path), "0x10de\n");
    check_write_file(check_printf("%s/x", devices), "");
    CHECK_INT(symlink(path, check_printf("%s/0000:3b:00.0", devices)), 0);
    for (int i = 0; i < 400; i++) {
        snprintf(busid, sizeof(busid), "%04x:%02x:00.0", 1 + i / 200, i % 200);
        check_write_file(check_printf("%s/%s/class", devices, busid), "0x030200\n");
        check_write_file(check_printf("%s/%s/vendor", devices, busid), "0x10de\n");
        for (const char *const *name =
                 (const char *const[]){"current_link_speed", "numa_node", "current_link_width",
                                       "max_link_width", NULL};
             *name; name++)
            check_write_file(check_printf("%s/%s/%s", devices, busid, *name),
                             roll(2) ? "99999999999999999999999999999999999999 %n%s\n"
                                     : "-1e999 \x1b[31m \xff\n");
    }
    look();
    CHECK(facts.crowded);
    CHECK_INT(facts.n_devices, TCCL_DOCTOR_DEVICES);
    CHECK(has_unknown("devices after the first"));
    cleanup_json json_t *json = tccl_doctor_to_json(&facts, &findings);
    cleanup_free char *text = json_dumps(json, 0);
    CHECK(text && !strchr(text, '\x1b'));
    cleanup_free char *printed = PRINTED(out, tccl_doctor_print(out, &facts, &findings));
    CHECK(printed && !strchr(printed, '\x1b'));
}

/* Every finding at once: the JSON has what the text has, worst first, and what has no room is
 * counted. */
TEST(shown)
{
    ON_EACH(gpu, TCCL_DOCTOR_GPU)
    {
        use_nvml();
        for (int i = 0; i < facts.n_devices; i++) {
            plant(i, "current_link_width", "1\n");
            if (n_planted == 60)
                break;
        }
        nvml.gpus[0].mig = true;
        look();
        facts.shm_gb = 0.01;
        tccl_doctor_examine(&facts, &findings);
        cleanup_json json_t *json = tccl_doctor_to_json(&facts, &findings);
        CHECK(json);
        CHECK_INT(json_array_size(json_object_get(json, "findings")), findings.count);
        CHECK_INT(json_array_size(json_object_get(json, "devices")), facts.n_devices);
        cleanup_free char *text = PRINTED(out, tccl_doctor_print(out, &facts, &findings));
        for (int i = 0; i < findings.count; i++) {
            CHECK(i == 0 || findings.list[i].level <= findings.list[i - 1].level);
            CHECK_HOLDS(text, findings.list[i].what);
            CHECK_HOLDS(text, findings.list[i].mend);
        }
    }
}
