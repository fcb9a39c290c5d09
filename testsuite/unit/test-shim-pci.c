/* The PCI tree as NCCL reads it: small trees laid out as the kernel does, and what is refused. */
#include "check.h"
#include "nccl/shim-nccl.h"

/* Makes the folders of a path below check_folder(). */
static void make_folders(const char *path)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof(whole), "%s/%s/", check_folder(), path);
    for (char *at = whole + strlen(check_folder()) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
}

/* A device by the folders above it, such as "pci0000:00/0000:00:01.0/0000:01:00.0". */
static void add_device(const char *place, const char *node)
{
    char folder[512];
    const char *name = strrchr(place, '/') + 1;
    snprintf(folder, sizeof(folder), "sys/devices/%s", place);
    check_write_file(check_at("%s/numa_node", folder), node);
    /* class/pci_bus/DDDD:BB leads to pci_bus/DDDD:BB below the bridge. */
    snprintf(folder, sizeof(folder), "sys/devices/%.*s/pci_bus/%.7s", (int)(name - place - 1),
             place, name);
    make_folders(folder);
    make_folders("sys/class/pci_bus");
    const char *link = check_at("sys/class/pci_bus/%.7s", name), *target = check_at("%s", folder);
    if (symlink(target, link) != 0)
        CHECK(access(link, F_OK) == 0);
}

static tccl_bus bus_of(const char *text)
{
    tccl_bus bus = 0;
    CHECK_INT(tccl_bus_parse(text, &bus), 0);
    return bus;
}

static int read_devices(struct shim_pci *pci, struct tccl_error *why, int n, ...)
{
    tccl_bus devices[SHIM_PCI_DEVICES + 2];
    va_list list;
    va_start(list, n);
    for (int i = 0; i < n; i++)
        devices[i] = bus_of(va_arg(list, const char *));
    va_end(list);
    return shim_pci_read(check_folder(), devices, n, pci, why);
}

static const char *path(const struct shim_pci *pci, const char *a, const char *b)
{
    enum shim_path there = shim_pci_path(pci, bus_of(a), bus_of(b));
    CHECK_INT(shim_pci_path(pci, bus_of(b), bus_of(a)), there);
    return shim_path_name(there);
}

#define SWITCH "pci0000:00/0000:00:01.0/0000:01:00.0"
#define INNER SWITCH "/0000:02:03.0/0000:06:00.0"

SETUP
{
    check_write_file(check_at("proc/cpuinfo"),
                     "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n");
    check_write_file(check_at("sys/devices/system/node/online"), "0-1,9\n");
    /* Two below one switch, two below a switch below that one, a NIC beside the inner switch. */
    add_device("pci0000:00/0000:00:01.0", "0\n");
    add_device(SWITCH, "0\n");
    add_device(SWITCH "/0000:02:01.0/0000:03:00.0", "0\n");
    add_device(SWITCH "/0000:02:02.0/0000:04:00.0", "0\n");
    add_device(SWITCH "/0000:02:04.0/0000:05:00.1", "0\n");
    add_device(INNER, "0\n");
    add_device(INNER "/0000:07:00.0/0000:08:00.0", "0\n");
    add_device(INNER "/0000:07:01.0/0000:09:00.0", "0\n");
    /* At check_folder() ports, on the same and another NUMA node, and on an unknown one. */
    add_device("pci0000:00/0000:00:02.0/0000:0a:00.0", "0\n");
    add_device("pci0000:00/0000:00:03.0/0000:0b:00.0", "0\n");
    add_device("pci0000:80/0000:80:01.0/0000:81:00.0", "1\n");
    add_device("pci0000:c0/0000:c0:01.0/0000:c1:00.0", "-1\n");
    add_device("pci0000:c0/0000:c0:02.0/0000:c2:00.0", "-1\n");
    /* Part of the check_folder() complex: below no bridge. */
    add_device("pci0000:80/0000:80:1f.0", "1\n");
}

TEST(paths)
{
    struct shim_pci pci;
    CHECK_INT(read_devices(&pci, ERR, 12, "0000:03:00.0", "0000:04:00.0", "0000:05:00.1",
                           "0000:08:00.0", "0000:09:00.0", "0000:0a:00.0", "0000:0b:00.0",
                           "0000:81:00.0", "0000:c1:00.0", "0000:c2:00.0", "0000:80:1f.0",
                           "0000:03:00.0"),
              0);
    CHECK_STR(check_err.text, "");
    CHECK_INT(pci.n, 11);
    CHECK_INT(pci.devices[0].depth, 1);
    CHECK(pci.devices[0].above[0] == bus_of("0000:01:00.0"));
    CHECK_INT(pci.devices[3].depth, 2);
    CHECK_INT(pci.devices[5].depth, 0);
    CHECK_STR(path(&pci, "0000:03:00.0", "0000:04:00.0"), "PIX");
    CHECK_STR(path(&pci, "0000:03:00.0", "0000:05:00.1"), "PIX");
    CHECK_STR(path(&pci, "0000:08:00.0", "0000:09:00.0"), "PIX");
    CHECK_STR(path(&pci, "0000:03:00.0", "0000:08:00.0"), "PXB");
    CHECK_STR(path(&pci, "0000:03:00.0", "0000:0a:00.0"), "PHB");
    CHECK_STR(path(&pci, "0000:0a:00.0", "0000:0b:00.0"), "PHB");
    CHECK_STR(path(&pci, "0000:0a:00.0", "0000:81:00.0"), "SYS");
    CHECK_STR(path(&pci, "0000:c1:00.0", "0000:c2:00.0"), "PHB");
    CHECK_STR(path(&pci, "0000:c1:00.0", "0000:0a:00.0"), "SYS");
    CHECK_STR(path(&pci, "0000:81:00.0", "0000:80:1f.0"), "PHB");
    CHECK_STR(path(&pci, "0000:81:00.0", "0000:ff:00.0"), "SYS");
    CHECK(pci.nodes[0] == (1 << 0 | 1 << 1 | 1 << 9) && pci.nodes[1] == 0);
    CHECK(pci.amd && !pci.cautious && !pci.vendor[0] && pci.family == -1);
}

TEST(makers)
{
    static const char file[] = "virtualTopology.xml", folder[] = "var/run/nvidia-topologyd";
    struct shim_pci pci;
    check_write_file(check_at("proc/cpuinfo"),
                     "vendor_id\t: GenuineIntel\nmodel name: AuthenticAMD\n");
    CHECK_INT(read_devices(&pci, NULL, 1, "0000:81:00.0"), 0);
    CHECK(!pci.amd && pci.cautious);
    check_write_file(
        check_at("%s/%s", folder, file),
        "<system version=\"1\">\n<cpu numaid=\"0\" vendor=\"AuthenticAMD\" familyid=\"25\" "
        "modelid=\"1\"></cpu>\n<cpu vendor=\"x\"/></system>\n");
    CHECK_INT(read_devices(&pci, NULL, 1, "0000:81:00.0"), 0);
    CHECK(pci.amd && !pci.cautious && pci.family == 25 && pci.model == 1);
    CHECK_STR(pci.vendor, "AuthenticAMD");
    check_write_file(check_at("%s/%s", folder, file),
                     "<system version=\"1\"><cpu><pci busid=\"0000:81:00.0\"/></cpu>");
    CHECK_SAYS(read_devices(&pci, ERR, 1, "0000:81:00.0") == -1, file);
    const char *path_ = check_at("%s/%s", folder, file);
    CHECK_INT(unlink(path_), 0);
}

TEST(refused)
{
    struct shim_pci pci;
    tccl_bus far = UINT64_C(0x10000) << 16, many[SHIM_PCI_DEVICES + 1];
    CHECK_FAILS(read_devices(&pci, ERR, 1, "0000:99:00.0"),
                "the place of 0000:99:00.0 can't be read in /sys");
    CHECK_INT(shim_pci_read(check_folder(), &far, 1, &pci, NULL), -1);
    check_write_file(check_at("sys/devices/pci0000:00/0000:00:03.0/0000:0b:00.0/numa_node"),
                     "one\n");
    CHECK_INT(read_devices(&pci, NULL, 1, "0000:0b:00.0"), -1);
    for (int i = 0; i <= SHIM_PCI_DEVICES; i++) {
        char place[64];
        snprintf(place, sizeof(place), "pci0000:00/0000:00:04.0/0000:e%x:00.%x", i / 8, i % 8);
        add_device(place, "0\n");
        many[i] = bus_of(strrchr(place, '/') + 1);
    }
    CHECK_INT(shim_pci_read(check_folder(), many, SHIM_PCI_DEVICES, &pci, NULL), 0);
    CHECK_INT(shim_pci_read(check_folder(), many, SHIM_PCI_DEVICES + 1, &pci, NULL), -1);
    make_folders("sys/kernel/pci_switch_link/virtual_switch_links");
    CHECK_INT(read_devices(&pci, NULL, 1, "0000:81:00.0"), -1);
}
