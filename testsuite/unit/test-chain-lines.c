/* A chain as the runtime shim reads it: names that mean something without the machine. */
#include "tccld/join/chain-lines.h"

#include "machines.h"

/* The lines of a chain, worked out by hand. */
static void check_lines(const struct tccl_machine *machine, const char *text,
                        const struct tccl_tree *tree, const char *expected)
{
    struct tccl_ring_set set;
    struct tccl_line_writer writer;
    char buffer[2048];
    CHECK_OK(tccl_ring_set_parse(text, machine, &set, ERR));
    tccl_lines_begin(&writer, buffer, sizeof(buffer), "test", 1);
    chain_lines_put(&writer, &set, tree, machine);
    CHECK_INT(tccl_lines_end(&writer), 0);
    CHECK_STR(buffer, check_printf("test 1\n%send\n", expected));
}

static void test_lines(struct tccl_machine machine)
{
    for (int i = 0; i < machine.n_gpus; i++)
        snprintf(machine.gpus[i].busid, TCCL_BUSID, "0000:%x1:00.0", i + 1);
    strcpy(machine.nics[0].busid, "0000:a0:00.0");
    machine.n_memories = 2;
    machine.nodes[0] = 0;
    machine.nodes[1] = 8; /* the kernel's numbers have gaps */
    memset(machine.gpudirect, 1, sizeof(machine.gpudirect));
    memset(machine.p2p, 1, sizeof(machine.p2p));
    char open[512], one[512], expected[1024];
    const struct tccl_tree none = {0}, tree = {5.25, 4.00006, 1, {1, 2, 0}};
    const char *nic = machine.nics[0].name;
    snprintf(open, sizeof(open), "%s -m1> 2 -w> 0 -m1> 1 -g> %s", nic, nic);
    snprintf(one, sizeof(one), "%s -g> 3 -m0> %s", nic, nic);
    snprintf(expected, sizeof(expected),
             "chain %s -m1> 0000:31:00.0 -w> 0000:11:00.0 -m1> 0000:21:00.0 -g> %s\n"
             "nodes 0 8\nnic %s 0000:a0:00.0\n",
             nic, nic, nic);
    check_lines(&machine, open, &none, expected);
    check_lines(&machine, "0 -m0> 2 -m1> 0", &none,
                "chain 0000:11:00.0 -m0> 0000:31:00.0 -m1> 0000:11:00.0\nnodes 0 8\n");
    snprintf(expected, sizeof(expected),
             "chain %s -g> 0000:41:00.0 -m0> %s\nnodes 0 8\nnic %s 0000:a0:00.0\n", nic, nic, nic);
    check_lines(&machine, one, &none, expected);
    machine.n_nics = 2;
    strcpy(machine.nics[1].name, "other");
    strcpy(machine.nics[1].busid, "0000:b0:00.0");
    snprintf(one, sizeof(one), "%s -m0> 3 -m0> other", nic);
    snprintf(expected, sizeof(expected),
             "chain %s -m0> 0000:41:00.0 -m0> other\nnodes 0 8\nnic %s 0000:a0:00.0\n"
             "nic other 0000:b0:00.0\n",
             nic, nic);
    check_lines(&machine, one, &none, expected);
    snprintf(expected, sizeof(expected),
             "chain %s -m1> 0000:31:00.0 -w> 0000:11:00.0 -m1> 0000:21:00.0 -g> %s\n"
             "nodes 0 8\nnic %s 0000:a0:00.0\n"
             "tree 4.0001 5.2500 other 0000:21:00.0 0000:31:00.0 0000:11:00.0\n"
             "nic other 0000:b0:00.0\n",
             nic, nic, nic);
    check_lines(&machine, open, &tree, expected);
    snprintf(one, sizeof(one), "other -g> 0 -g> %s | %s -m1> 0 -m1> %s | %s -g> 0 -g> other", nic,
             nic, nic, nic);
    snprintf(expected, sizeof(expected),
             "chain other -g> 0000:11:00.0 -g> %s | %s -m1> 0000:11:00.0 -m1> %s | "
             "%s -g> 0000:11:00.0 -g> other\nnodes 0 8\nnic other 0000:b0:00.0\n"
             "nic %s 0000:a0:00.0\n",
             nic, nic, nic, nic, nic);
    check_lines(&machine, one, &tree, expected);
    check_lines(&machine, "0 -m0> 2 -m1> 0 | 2 -m0> 0 -m1> 2", &none,
                "chain 0000:11:00.0 -m0> 0000:31:00.0 -m1> 0000:11:00.0 | 0000:31:00.0 -m0> "
                "0000:11:00.0 -m1> 0000:31:00.0\nnodes 0 8\n");
}

/* No bandwidth is written with an exponent, or with a comma, whatever it is. */
TEST(numbers)
{
    for (int i = 0; i < 10000; i++) {
        double gbps = i < 20 ? 1 / (double)(1ULL << 2 * i) : rand() / (1 + 1e6 * (rand() % 1000));
        char buffer[128], text[64];
        struct tccl_line_writer writer;
        struct tccl_lines lines;
        double read = -1;
        tccl_lines_begin(&writer, buffer, sizeof(buffer), "test", 1);
        chain_lines_put_rates(&writer, gbps, "model");
        CHECK_INT(tccl_lines_end(&writer), 0);
        CHECK_INT(tccl_lines_open(buffer, writer.length, &lines, NULL), 0);
        CHECK(tccl_line_text(&lines, "gbps", text, sizeof(text)) > 0);
        CHECK_INT(strspn(text, "0123456789."), strlen(text));
        CHECK_INT(tccl_line_number(&lines, "gbps", 0, 1e12, &read), 0);
        CHECK(read - gbps < 1e-4 && gbps - read < 1e-4);
    }
}

static void test_gpus(const struct tccl_machine *machine)
{
    char buffer[512];
    struct tccl_line_writer writer;
    struct tccl_lines lines;
    tccl_bus gpus[TCCL_MAX_GPUS], first;
    tccl_lines_begin(&writer, buffer, sizeof(buffer), "test", 1);
    chain_lines_put_gpus(&writer, 5, machine);
    CHECK_INT(tccl_lines_end(&writer), 0);
    CHECK_STR(buffer, check_printf("test 1\ngpus %s %s\nend\n", machine->gpus[0].busid,
                                   machine->gpus[2].busid));
    CHECK_INT(tccl_lines_open(buffer, writer.length, &lines, NULL), 0);
    CHECK_INT(chain_lines_get_gpus(&lines, gpus), 2);
    CHECK(tccl_bus_parse(machine->gpus[0].busid, &first) == 0 && gpus[0] == first);
}

TEST(chain_lines)
{
    const struct tccl_machine *machine = machine_of("intel-4gpu");
    test_lines(*machine);
    test_gpus(machine);
}
