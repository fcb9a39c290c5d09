/* test-since.c: what has become worse since a profile was made, by a /sys of the test's: each link
 * of a machine trained badly in turn, devices that are gone, and files that say nothing. */
#include "base/fileio.h"
#include "doctor/doctor.h"
#include "machines.h"
#include "profile/cache.h"

static const char *const name = "quad-8gpu";
static const char *machine_json, *cache;
static struct tccl_since since;

/* Below which bridges: 0 the GPU itself, 1 the port above it, 2 the switch, 3 the root port. */
static const char *device_above(const char *busid, int up)
{
    char real[PATH_MAX];
    if (!realpath(check_at("sys/bus/pci/devices/%s", busid), real))
        return "";
    for (; up > 0 && strrchr(real, '/'); up--)
        *strrchr(real, '/') = '\0';
    return check_intern(strrchr(real, '/') + 1);
}

static void put(const char *busid, const char *file, const char *text)
{
    check_write_file(check_at("sys/bus/pci/devices/%s/%s", busid, file), text);
}

static void heal(void)
{
    check_remove(check_at("sys"));
    CHECK_INT(system(check_printf("'%s/testsuite/nccl/describe-machine' '%s' '%s' >/dev/null",
                                  getenv("TCCL_SOURCES"), machine_file(name), check_folder())),
              0);
}

SETUP
{
    struct tccl_profile *profile;
    cleanup_json json_t *model = json_load_file(machine_file(name), 0, NULL);
    cleanup_json json_t *machine = tccl_machine_to_json(machine_of(name));
    machine_json = check_intern(check_at("machine.json"));
    cache = check_intern(check_at("cache"));
    MUST(tccl_write_json(machine_json, 0644, machine, ERR));
    MUST(tccl_profile_create(cache, machine_of(name), "model", model, &profile, ERR));
    tccl_profile_close(profile);
    heal();
}

static void look(void)
{
    tccl_since_look(check_folder(), machine_json, cache, &since);
}

static void check_none(void)
{
    look();
    CHECK_INT(since.narrowed.n, 0);
    CHECK_INT(since.gone, 0);
    CHECK_INT(since.gone_nics, 0);
}

static void check_link(uint32_t gpus, uint32_t nics, double gbps, const char *text)
{
    look();
    CHECK_INT(since.narrowed.n, 1);
    CHECK_INT(since.narrowed.links[0].gpus, gpus);
    CHECK_INT(since.narrowed.links[0].nics, nics);
    CHECK(fabs(since.narrowed.links[0].gbps[0] - gbps) < 0.01);
    CHECK_STR(since.narrowed.links[0].text, text);
}

TEST(healthy)
{
    check_none();
    CHECK_INT(strlen(since.machine), TCCL_HASH_HEX - 1);
}

TEST(lanes_of_a_gpu)
{
    const struct tccl_machine *machine = machine_of(name);
    for (int i = 0; i < machine->n_gpus; i++) {
        const char *busid = machine->gpus[i].busid, *port = device_above(busid, 1);
        put(busid, "current_link_width", "4\n");
        put(port, "current_link_width", "4\n"); /* the other end says the same */
        check_link(UINT32_C(1) << i, 0, 24.6 / 4,
                   check_printf("link of GPU %d (%s) is x4, not x16 as measured", i, busid));
        put(busid, "current_link_width", "16\n");
        put(port, "current_link_width", "16\n");
        check_none();
    }
}

/* At rest its link is slow, and the port above shows the same link. */
TEST(idle)
{
    const char *busid = machine_of(name)->gpus[2].busid;
    put(busid, "current_link_speed", "2.5 GT/s PCIe\n");
    put(device_above(busid, 1), "current_link_speed", "2.5 GT/s PCIe\n");
    check_none();
    put(busid, "current_link_width", "8\n"); /* and this is no rest */
    check_link(4, 0, 24.6 / 2,
               check_printf("link of GPU 2 (%s) is x8, not x16 as measured", busid));
    heal();
}

TEST(above_a_switch)
{
    const char *busid = machine_of(name)->gpus[4].busid, *up = device_above(busid, 2);
    put(up, "current_link_speed", "8.0 GT/s PCIe\n");
    put(device_above(busid, 3), "current_link_speed", "8.0 GT/s PCIe\n");
    check_link(
        0xf0, 2, 24.6 / 2,
        check_printf("link of the switch above GPUs 4-7 (%s) is x16 at 8 GT/s, not x16 at 16 "
                     "as measured",
                     up));
    heal();
}

/* A NIC's line was the slower one: it has what its link carries. */
TEST(nic)
{
    const struct tccl_nic *nic = &machine_of(name)->nics[1];
    put(nic->busid, "current_link_width", "8\n");
    check_link(0, 2, 0.92 * 16 * 8 / 8 * 128 / 130,
               check_printf("link of %s (%s) is x8, not x16 as measured", nic->name, nic->busid));
    CHECK_INT(unlink(check_at("sys/bus/pci/devices/%s", nic->busid)), 0);
    look();
    CHECK_INT(since.narrowed.n, 0);
    CHECK_INT(since.gone_nics, 2);
    heal();
}

TEST(gone)
{
    const struct tccl_machine *machine = machine_of(name);
    static const unsigned char ones[64] = {[0 ... 63] = 0xff};
    CHECK_INT(unlink(check_at("sys/bus/pci/devices/%s", machine->gpus[3].busid)), 0);
    FILE *config = fopen(check_at("sys/bus/pci/devices/%s/config", machine->gpus[5].busid), "we");
    CHECK(config && fwrite(ones, 1, sizeof(ones), config) == sizeof(ones));
    if (config)
        fclose(config);
    look();
    CHECK_INT(since.gone, 1 << 3 | 1 << 5);
    CHECK_INT(since.narrowed.n, 0);
    heal();
    for (int i = 0; i < machine->n_gpus; i++) /* another machine's /sys, or none */
        CHECK_INT(unlink(check_at("sys/bus/pci/devices/%s", machine->gpus[i].busid)), 0);
    check_none();
    CHECK_STR(since.machine, "");
    heal();
}

/* A profile that was measured while links were so, and transfers of GPU 0 had this much. */
static const char *measured_with(int lanes, double gbps)
{
    const struct tccl_machine *machine = machine_of(name);
    struct tccl_trained_links links = {0};
    struct tccl_profile *profile;
    if (lanes > 0)
        tccl_trained_add(&links, machine->gpus[0].busid, lanes, 2.5); /* it was at rest */
    check_remove(check_at("measured"));
    MUST(tccl_profile_create(check_at("measured"), machine, "cuda", NULL, &profile, ERR));
    MUST(tccl_profile_claim(profile, "kernel copies", ERR));
    for (int way = 0; way < 2; way++) {
        struct tccl_set set = parse_set(way ? "g0>m0" : "g0<m0");
        MUST(tccl_profile_append(profile, &set, &(struct tccl_measurement){.gbps = gbps}, ERR));
    }
    MUST(tccl_profile_set_links(profile, &links, ERR));
    tccl_profile_close(profile);
    return check_intern(check_at("measured"));
}

/* What a link was while it was measured counts, not what it could be. Its rate (31.5 GB/s with 16
 * lanes) says little where transfers had much less. */
TEST(as_measured)
{
    const char *before = cache, *busid = machine_of(name)->gpus[0].busid;
    static const struct {
        int was, is;
        double gbps, left; /* left 0: nothing has become worse */
    } cases[] = {
        {16, 8, 25, 12.5}, {16, 4, 25, 6.25}, {8, 8, 12, 0},     {8, 4, 12, 6}, {8, 16, 12, 0},
        {16, 8, 11, 0},    {16, 4, 11, 5.51}, {0, 8, 25, 14.49}, {0, 8, 11, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        cache = measured_with(cases[i].was, cases[i].gbps);
        put(busid, "current_link_width", check_printf("%d\n", cases[i].is));
        if (cases[i].left > 0)
            check_link(1, 0, cases[i].left,
                       check_printf("link of GPU 0 (%s) is x%d, not x%d as measured", busid,
                                    cases[i].is, cases[i].was ? cases[i].was : 16));
        else
            check_none();
    }
    cache = before;
    heal();
}

/* Whatever files say, nothing worse than nothing comes of it. */
TEST(nonsense)
{
    static const char *const texts[] = {"",    "0\n",    "-4\n",  "255\n", "Unknown\n",
                                        "x16", "e999\n", "nan\n", "63\n",  "\xff\xfe"};
    static const char *const files[] = {"current_link_width", "max_link_width",
                                        "current_link_speed", "max_link_speed"};
    const char *busid = machine_of(name)->gpus[1].busid;
    for (size_t t = 0; t < COUNT(texts); t++)
        for (size_t f = 0; f < COUNT(files); f++) {
            put(busid, files[f], texts[t]);
            check_none();
            put(busid, files[f], f % 2 || f == 0 ? "16\n" : "16.0 GT/s PCIe\n");
            put(busid, "max_link_speed", "16.0 GT/s PCIe\n");
        }
    CHECK_INT(unlink(check_at("sys/bus/pci/devices/%s/current_link_width", busid)), 0);
    check_none();
    put(busid, "current_link_width", "1\n");
    cache = check_intern(check_at("none"));
    check_none();
    cache = check_intern(check_at("cache"));
    heal();
}

TEST(compared)
{
    const char *busid = machine_of(name)->gpus[0].busid;
    struct tccl_since before = since, worse;
    look();
    before = since;
    put(busid, "current_link_width", "8\n");
    look();
    worse = since;
    CHECK(!tccl_since_no_worse(&worse, &before) && tccl_since_no_worse(&before, &worse));
    CHECK(tccl_since_equal(&worse, &since) && !tccl_since_equal(&worse, &before));
    put(busid, "current_link_width", "4\n");
    look();
    CHECK(!tccl_since_no_worse(&since, &worse) && tccl_since_no_worse(&worse, &since));
    heal();
}
