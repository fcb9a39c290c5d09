/* A chain as the runtime shim reads it: names that mean something without the machine. */
#include "tccld/net/links.h"

#include "base/cleanup.h"
#include "chain/chain.h"
#include "check.h"
#include "machines.h"

/* What is in an edge or port of the text, in the words of profiler/client/README.md, worked out by
 * hand. */
static void check_links(const struct tccl_machine *machine, const char *text, const char *expected)
{
    struct tccl_chain chain;
    struct tccl_error err = {0};
    CHECK_INT(tccl_chain_parse(text, machine, &chain, &err), 0);
    CHECK_STR(err.text, "");
    cleanup_json json_t *links = links_to_json(&chain, machine);
    cleanup_free char *found = json_dumps(links, JSON_COMPACT);
    CHECK_STR(found, expected);
}

static void test_links(struct tccl_machine machine)
{
    for (int i = 0; i < machine.n_gpus; i++)
        snprintf(machine.gpus[i].busid, TCCL_BUSID, "0000:%x1:00.0", i + 1);
    strcpy(machine.nics[0].busid, "0000:a0:00.0");
    machine.nodes[0] = 0;
    machine.nodes[1] = 8; /* the kernel's numbers have gaps */
    memset(machine.gpudirect, 1, sizeof(machine.gpudirect));
    memset(machine.p2p, 1, sizeof(machine.p2p));
    char open[512], closed[512], one[512];
    const char *nic = machine.nics[0].name;
    snprintf(open, sizeof(open), "%s -m1> 2 -w> 0 -m1> 1 -g> %s", nic, nic);
    snprintf(closed, sizeof(closed), "0 -m0> 2 -m1> 0");
    snprintf(one, sizeof(one), "%s -g> 3 -m0> %s", nic, nic);
    char expected[1024];
    snprintf(expected, sizeof(expected),
             "{\"closed\":false,\"gpus\":[\"0000:31:00.0\",\"0000:11:00.0\",\"0000:21:00.0\"],"
             "\"edges\":[{\"kind\":\"p2p-write\",\"node\":-1},{\"kind\":\"bounce\",\"node\":8}],"
             "\"entry\":{\"nic\":\"%s\",\"busid\":\"0000:a0:00.0\",\"gpudirect\":false,\"node\":8},"
             "\"exit\":{\"nic\":\"%s\",\"busid\":\"0000:a0:00.0\",\"gpudirect\":true,\"node\":-1}}",
             nic, nic);
    check_links(&machine, open, expected);
    check_links(&machine, closed,
                "{\"closed\":true,\"gpus\":[\"0000:11:00.0\",\"0000:31:00.0\"],"
                "\"edges\":[{\"kind\":\"bounce\",\"node\":0},{\"kind\":\"bounce\",\"node\":8}]}");
    snprintf(expected, sizeof(expected),
             "{\"closed\":false,\"gpus\":[\"0000:41:00.0\"],\"edges\":[],"
             "\"entry\":{\"nic\":\"%s\",\"busid\":\"0000:a0:00.0\",\"gpudirect\":true,\"node\":-1},"
             "\"exit\":{\"nic\":\"%s\",\"busid\":\"0000:a0:00.0\",\"gpudirect\":false,\"node\":0}}",
             nic, nic);
    check_links(&machine, one, expected);
}

static void test_fabrics(struct tccl_machine machine)
{
    machine.n_nics = 2;
    strcpy(machine.nics[0].fabric, "ib0");
    strcpy(machine.nics[1].fabric, "ib0");
    CHECK(links_one_fabric(&machine));
    strcpy(machine.nics[1].fabric, "ib1");
    CHECK(!links_one_fabric(&machine));
    machine.n_nics = 1;
    CHECK(links_one_fabric(&machine));
    machine.n_nics = 0;
    CHECK(!links_one_fabric(&machine));
}

/* No bandwidth is written with an exponent, whatever it is. */
static void test_numbers(void)
{
    srand((unsigned)check_seed());
    for (int i = 0; i < 10000; i++) {
        double gbps = i < 20 ? 1 / (double)(1ULL << 2 * i) : rand() / (1 + 1e6 * (rand() % 1000));
        cleanup_json json_t *number = json_real(links_gbps(gbps));
        cleanup_free char *text = json_dumps(number, JSON_ENCODE_ANY);
        CHECK_INT(strspn(text, "0123456789."), strlen(text));
        CHECK(links_gbps(gbps) - gbps < 1e-4 && gbps - links_gbps(gbps) < 1e-4);
    }
}

int main(void)
{
    struct tccl_model *model = load_machine("intel-4gpu");
    const struct tccl_machine *machine = tccl_model_machine(model);
    test_links(*machine);
    test_fabrics(*machine);
    test_numbers();
    cleanup_json json_t *some = links_busids(5, machine);
    CHECK_INT(json_array_size(some), 2);
    CHECK_STR(json_string_value(json_array_get(some, 0)), machine->gpus[0].busid);
    CHECK_STR(json_string_value(json_array_get(some, 1)), machine->gpus[2].busid);
    tccl_model_free(model);
    return check_result();
}
