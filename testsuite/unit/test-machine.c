/* test-machine.c: reading, writing and asking machine descriptions. */
#include "base/fileio.h"
#include "machines.h"

/* Two switches at memory 0, the second below the first; a GPU below each, one alone at memory 1. */
static const char sample[] =
    "{\"name\": \"sample\", \"memories\": 2,"
    " \"switches\": [{\"name\": \"top\", \"numa\": 0, \"parent\": null},"
    "  {\"name\": \"low\", \"numa\": 0, \"parent\": \"top\"}],"
    " \"gpus\": [{\"busid\": \"00000000:1A:00.0\", \"model\": \"A\", \"numa\": 0, \"minor\": 1,"
    "   \"sm\": 80, \"parent\": \"top\"},"
    "  {\"busid\": \"1b:00.0\", \"model\": \"A\", \"numa\": 0, \"parent\": \"low\"},"
    "  {\"busid\": \"0001:02:00.0\", \"model\": \"A\", \"numa\": 1}],"
    " \"nics\": [{\"name\": \"mlx5_0\", \"busid\": \"1c:00.1\", \"numa\": 0, \"gbps\": 12.1,"
    "   \"fabric\": \"ib0\", \"parent\": \"low\"},"
    "  {\"name\": \"mlx5_1\", \"busid\": \"0001:03:00.0\", \"numa\": 1, \"gbps\": 12.1}],"
    " \"p2p\": [[0, 1]], \"gpudirect\": [[\"mlx5_0\", 1]]}";

/* The sample with the first place of "from" replaced by "to". */
static json_t *sample_with(const char *from, const char *to)
{
    char text[sizeof(sample) + 4096];
    const char *place = strstr(sample, from);
    if (!place) {
        fprintf(stderr, "the sample has no %s\n", from);
        exit(1);
    }
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(place - sample), sample, to,
             place + strlen(from));
    json_t *json = json_loads(text, 0, NULL);
    if (!json) {
        fprintf(stderr, "not JSON: %s\n", text);
        exit(1);
    }
    return json;
}

static void load(const char *from, const char *to, struct tccl_machine *machine)
{
    cleanup_json json_t *json = sample_with(from, to);
    CHECK_OK(tccl_machine_from_json(json, machine, ERR));
}

static void check_refused(const char *from, const char *to, const char *why)
{
    cleanup_json json_t *json = sample_with(from, to);
    struct tccl_machine machine;
    CHECK_FAILS(tccl_machine_from_json(json, &machine, ERR), why);
}

TEST(sample)
{
    struct tccl_machine machine;
    load("sample", "sample", &machine);
    CHECK_INT(machine.n_gpus, 3);
    CHECK_INT(machine.n_memories, 2);
    CHECK_INT(machine.n_nics, 2);
    CHECK_STR(machine.gpus[0].busid, "0000:1a:00.0");
    CHECK_STR(machine.gpus[1].busid, "0000:1b:00.0");
    CHECK_INT(machine.gpus[0].minor, 1);
    CHECK_INT(machine.gpus[1].minor, -1);
    CHECK_INT(machine.gpus[1].parent, 1);
    CHECK_INT(machine.gpus[2].parent, -1);
    CHECK(machine.p2p[0][1] && machine.p2p[1][0] && !machine.p2p[0][2] && !machine.p2p[0][0]);
    CHECK(machine.gpudirect[0][1] && !machine.gpudirect[0][0] && !machine.gpudirect[1][1]);
    CHECK_INT(tccl_machine_find_gpu(&machine, "1B:00.0"), 1);
    CHECK_INT(tccl_machine_find_gpu(&machine, "00000001:02:00.0"), 2);
    CHECK_INT(tccl_machine_find_gpu(&machine, "0000:02:00.0"), -1);
    CHECK_INT(tccl_machine_find_gpu(&machine, ""), -1);
    CHECK_INT(tccl_machine_find_gpu(&machine, "1b:00.0 "), -1);
    CHECK_INT(tccl_machine_find_nic(&machine, "mlx5_1"), 1);
    CHECK_INT(tccl_machine_find_nic(&machine, "mlx5"), -1);
}

TEST(bad)
{
    check_refused("\"memories\": 2", "\"memories\": 17",
                  "\"memories\" is not a whole number from 1 to 16");
    check_refused("\"memories\": 2,", "", "\"memories\" is missing");
    check_refused("\"numa\": 1}]", "\"numa\": 2}]",
                  "gpus[2]: \"numa\" is not a whole number from 0 to 1");
    check_refused("1b:00.0", "0a:00.0",
                  "gpus[1]: GPUs must be listed in the order of their bus ids, each once");
    check_refused("1b:00.0", "1a:00.0",
                  "gpus[1]: GPUs must be listed in the order of their bus ids, each once");
    check_refused("1b:00.0", "1b:20.0",
                  "gpus[1]: \"busid\" is \"1b:20.0\", which is no PCI bus id");
    check_refused("1b:00.0", "b", "gpus[1]: \"busid\" is \"b\", which is no PCI bus id");
    check_refused("1b:00.0", "000000000:1b:00.0",
                  "gpus[1]: \"busid\" is \"000000000:1b:00.0\", which is no PCI bus id");
    check_refused("\"parent\": \"low\"}", "\"parent\": \"no\"}",
                  "gpus[1]: \"parent\": no switch \"no\" is listed before this");
    check_refused("\"numa\": 0, \"parent\": \"top\"}", "\"numa\": 1, \"parent\": \"top\"}",
                  "switches[1]: \"numa\" is 1, but the switch above is at 0");
    check_refused("\"low\"", "\"top\"", "switches[1]: switch \"top\" is listed twice");
    check_refused("mlx5_1", "mlx5_0", "nics[1]: NIC \"mlx5_0\" is listed twice");
    check_refused("\"mlx5_1\"", "\"5_1\"",
                  "nics[1]: \"name\" is \"5_1\"; wanted: a letter, then letters, digits, _ and .");
    check_refused("12.1", "-1", "nics[0]: \"gbps\" is not a number from 0.001 to 10000");
    check_refused("[[0, 1]]", "[[0, 3]]", "p2p[0]: not a pair of two GPUs of this machine");
    check_refused("[[0, 1]]", "[0]", "p2p[0]: not a pair of two GPUs of this machine");
    check_refused("[[0, 1]]", "7", "\"p2p\" is not a list of at most 256");
    check_refused("[\"mlx5_0\", 1]", "[\"x\", 1]",
                  "gpudirect[0]: not a pair of a NIC and a GPU of this machine");
    check_refused("\"minor\"", "\"mini\"", "gpus[0]: unknown member \"mini\"");
    check_refused("\"name\": \"sample\"", "\"name\": \"a\\nb\"",
                  "\"name\" has characters that are not printable ASCII");
    check_refused("\"name\": \"sample\"", "\"format\": \"tccl-model\"",
                  "the format is \"tccl-model\", not \"tccl-machine\"");
    check_refused("\"name\": \"sample\"", "\"format\": \"tccl-machine\", \"version\": 2",
                  "the version of the format is not 1");
}

TEST(too_many)
{
    struct tccl_machine machine;
    cleanup_json json_t *json = json_pack("{s:i, s:[], s:b}", "memories", 1, "gpus", "p2p", 0);
    CHECK_FAILS(tccl_machine_from_json(json, &machine, ERR), "\"gpus\" is empty");
    for (int i = 0; i < 17; i++) {
        json_array_append_new(
            json_object_get(json, "gpus"),
            json_pack("{s:s, s:i}", "busid", check_printf("%02x:00.0", i), "numa", 0));
    }
    CHECK_FAILS(tccl_machine_from_json(json, &machine, ERR),
                "\"gpus\" is not a list of at most 16");
    CHECK_FAILS(tccl_machine_from_json(NULL, &machine, ERR), "an object was expected");
}

/* What is written is read as the same machine, by way of a file too. */
static void check_round_trip(const struct tccl_machine *machine)
{
    cleanup_json json_t *json = tccl_machine_to_json(machine);
    struct tccl_machine back;
    const char *path = check_at("machine.json");
    CHECK_INT(tccl_machine_from_json(json, &back, ERR), 0);
    CHECK(memcmp(machine, &back, sizeof(back)) == 0);
    CHECK_INT(tccl_write_json(path, 0600, json, ERR), 0);
    CHECK_INT(tccl_machine_read(path, &back, ERR), 0);
    CHECK(memcmp(machine, &back, sizeof(back)) == 0);
    CHECK_INT(tccl_write_file(path, 0600, "{}", 2, ERR), 0);
    CHECK_INT(tccl_machine_read(path, &back, ERR), -1);
    CHECK(strncmp(check_err.text, path, strlen(path)) == 0);
}

/* The CPU's maker need not be there, is kept, and is no part of the id. */
TEST(cpu)
{
    struct tccl_machine machine;
    load("sample", "sample", &machine);
    CHECK_INT(machine.cpu, TCCL_CPU_UNKNOWN);
    check_round_trip(&machine);
    load("\"memories\": 2", "\"cpu\": \"intel-srp\", \"memories\": 2", &machine);
    CHECK_INT(machine.cpu, TCCL_CPU_INTEL_SRP);
    check_round_trip(&machine);
    for (int cpu = TCCL_CPU_AMD; cpu <= TCCL_CPU_YONGFENG; cpu++)
        CHECK_INT(tccl_cpu_parse(tccl_cpu_word((enum tccl_cpu)cpu)), cpu);
    CHECK(!tccl_cpu_word(TCCL_CPU_UNKNOWN));
    check_refused("\"memories\": 2", "\"cpu\": \"intel\", \"memories\": 2",
                  "\"cpu\" is \"intel\"; wanted: amd, amd-zen3, amd-zen5, intel-bdw, intel-skl, "
                  "intel-srp, intel-erp, arm, "
                  "power, zhaoxin or zhaoxin-yongfeng");
}

static void check_id(const char *from, const char *to, bool same)
{
    struct tccl_machine machine;
    char id[TCCL_HASH_HEX], other[TCCL_HASH_HEX];
    load("sample", "sample", &machine);
    tccl_machine_id(&machine, id);
    CHECK_INT(strspn(id, "0123456789abcdef"), 32);
    load(from, to, &machine);
    tccl_machine_id(&machine, other);
    if ((strcmp(id, other) == 0) != same)
        fprintf(stderr, "with %s: ", to);
    CHECK_INT(strcmp(id, other) == 0, same);
}

TEST(ids)
{
    check_id("\"name\": \"sample\"", "\"name\": \"other\", \"about\": \"x\"", true);
    check_id("\"memories\": 2", "\"cpu\": \"amd\", \"memories\": 2", true);
    check_id("\"minor\": 1", "\"minor\": 5", true);
    check_id("ib0", "ib1", true);
    check_id("1b:00.0", "0000:1B:00.0", true);
    check_id("1A:00.0", "19:00.0", false);
    check_id("\"model\": \"A\"", "\"model\": \"B\"", false);
    check_id("\"sm\": 80", "\"sm\": 86", false);
    check_id("\"memories\": 2", "\"memories\": 3", false);
    check_id("\"parent\": \"low\"}", "\"parent\": \"top\"}", false);
    check_id("12.1", "24", false);
    check_id("[[0, 1]]", "true", false);
    check_id("[[\"mlx5_0\", 1]]", "false", false);
}

static enum tccl_path path(const struct tccl_machine *machine, const char *a, const char *b)
{
    struct tccl_device ends[2];
    const char *const texts[] = {a, b};
    for (int i = 0; i < 2; i++)
        ends[i] = (struct tccl_device){.kind = (uint8_t)(strchr("gmn", texts[i][0]) - "gmn"),
                                       .index = (uint8_t)atoi(texts[i] + 1)};
    enum tccl_path forth = tccl_machine_path(machine, ends[0], ends[1]);
    CHECK_INT(tccl_machine_path(machine, ends[1], ends[0]), forth);
    return forth;
}

TEST(paths)
{
    struct tccl_machine machine;
    load("sample", "sample", &machine);
    CHECK_INT(path(&machine, "g0", "g1"), TCCL_PATH_SWITCH);
    CHECK_INT(path(&machine, "g0", "n0"), TCCL_PATH_SWITCH);
    CHECK_INT(path(&machine, "g0", "m0"), TCCL_PATH_NODE);
    CHECK_INT(path(&machine, "g2", "n1"), TCCL_PATH_NODE);
    CHECK_INT(path(&machine, "g0", "g2"), TCCL_PATH_SYSTEM);
    CHECK_INT(path(&machine, "m0", "n1"), TCCL_PATH_SYSTEM);
    CHECK_INT(path(&machine, "m0", "m1"), TCCL_PATH_SYSTEM);
}

static void check_allows(const char *text, const char *why)
{
    struct tccl_machine machine;
    struct tccl_set set = parse_set(text);
    load("sample", "sample", &machine);
    CHECK_INT(tccl_machine_allows(&machine, set.transfers[0], ERR), *why ? -1 : 0);
    CHECK_STR(check_err.text, why);
}

/* Nodes of memories: written, and part of the id, only where they aren't 0, 1, 2... */
TEST(nodes)
{
    struct tccl_machine plain, same, other, again;
    char ids[3][TCCL_HASH_HEX];
    load("", "", &plain);
    load("\"memories\": 2", "\"memories\": 2, \"nodes\": [0, 1]", &same);
    load("\"memories\": 2", "\"memories\": 2, \"nodes\": [0, 8]", &other);
    CHECK_INT(plain.nodes[1], 1);
    CHECK_INT(other.nodes[0], 0);
    CHECK_INT(other.nodes[1], 8);
    tccl_machine_id(&plain, ids[0]);
    tccl_machine_id(&same, ids[1]);
    tccl_machine_id(&other, ids[2]);
    CHECK_STR(ids[1], ids[0]);
    CHECK(strcmp(ids[2], ids[0]) != 0);
    cleanup_json json_t *without = tccl_machine_to_json(&same);
    cleanup_json json_t *with = tccl_machine_to_json(&other);
    CHECK(!json_object_get(without, "nodes"));
    CHECK_INT(tccl_machine_from_json(with, &again, ERR), 0);
    CHECK_INT(again.nodes[1], 8);
    memset(other.nodes, 0, sizeof(other.nodes)); /* made by a program that doesn't know of them */
    tccl_machine_id(&other, ids[2]);
    CHECK_STR(ids[2], ids[0]);
    check_refused("\"memories\": 2", "\"memories\": 2, \"nodes\": [0]",
                  "\"nodes\" has 1 entries; there are 2 memories");
    check_refused("\"memories\": 2", "\"memories\": 2, \"nodes\": [1, 1]",
                  "nodes[1]: wanted: NUMA nodes from 0 to 4095, rising");
    check_refused("\"memories\": 2", "\"memories\": 2, \"nodes\": [-1, 1]",
                  "nodes[0]: wanted: NUMA nodes from 0 to 4095, rising");
    check_refused("\"memories\": 2", "\"memories\": 2, \"nodes\": [0, 4096]",
                  "nodes[1]: wanted: NUMA nodes from 0 to 4095, rising");
    check_refused("\"memories\": 2", "\"memories\": 2, \"nodes\": [0, \"x\"]",
                  "nodes[1]: wanted: NUMA nodes from 0 to 4095, rising");
    check_refused("\"memories\": 2", "\"memories\": 2, \"nodes\": 2",
                  "\"nodes\" is not a list of at most 16");
}

TEST(allows)
{
    check_allows("g0>g1", "");
    check_allows("g1<g0", "");
    check_allows("g2>m1", "");
    check_allows("n0<g1", "");
    check_allows("n1<m0", "");
    check_allows("g0>g2", "g0>g2: the machine has no P2P between the two");
    check_allows("n0>g0", "n0>g0: the machine has no GPUDirect between the two");
    check_allows("g3>m0", "g3>m0: no such transfer: the machine has 3 GPUs, 2 memories, 2 NICs");
    check_allows("g0>m2", "g0>m2: no such transfer: the machine has 3 GPUs, 2 memories, 2 NICs");
}

TEST(round_trips)
{
    for (int i = 0; i < MACHINE_NAMES; i++) {
        check_round_trip(machine_of(machine_names[i]));
    }
}
