/* What the runtime shim reads from tccld: plan files, and chains; what it makes of these is a graph
 * and a topology file. */
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "nccl/graph.h"
#include "nccl/islands.h"

static void check_chain(const struct shim_chain *chain)
{
    char text[16384] = "";
    struct shim_text line = {text, sizeof text, 0, false};
    FUZZ_CHECK(chain->n >= 1 && chain->n <= SHIM_GPUS && (chain->n > 1 || !chain->closed));
    FUZZ_CHECK(chain->gbps > 0 && chain->gbps <= 1e6 && chain->baseline_gbps >= 0);
    for (int i = 0; i < chain->n; i++) {
        FUZZ_CHECK(chain->edges[i].kind <= SHIM_BOUNCE);
        FUZZ_CHECK(chain->edges[i].kind == SHIM_BOUNCE || chain->edges[i].node <= 0);
        for (int other = 0; other < i; other++)
            FUZZ_CHECK(chain->gpus[i] != chain->gpus[other]);
    }
    shim_chain_format(chain, &line);
    FUZZ_CHECK(!line.full && strlen(text) == line.length);
    for (size_t i = 0; i < line.length; i++)
        FUZZ_CHECK(text[i] >= ' ' && text[i] < 0x7f);
}

static void check_files(const struct shim_chain *chain)
{
    static struct shim_pci pci;
    static char text[16384];
    static bool linked[SHIM_GPUS][SHIM_GPUS];
    struct shim_numbers numbers = {.entry = 1, .exit = 2};
    struct shim_text file = {text, sizeof text, 0, false};
    struct shim_why why = {""};
    memset(&pci, 0, sizeof pci);
    for (int i = 0; i < chain->n; i++)
        pci.devices[pci.n++] =
            (struct shim_pci_device){.bus = chain->gpus[i], .node = (int16_t)(i % 3)};
    FUZZ_CHECK(shim_graph(chain, &numbers, SHIM_SYS, SHIM_SYS, true, &file, &why) == 0);
    file = (struct shim_text){text, sizeof text, 0, false};
    int islands = shim_islands(chain, &pci, linked, true, 22907, &file, &why);
    FUZZ_CHECK((islands < 0) == (why.text[0] != '\0'));
}

static void check_plan(const struct shim_plan *plan)
{
    struct shim_json key;
    FUZZ_CHECK(plan->socket[0] == '/' && plan->index < plan->n_nodes && plan->n_gpus >= 1);
    FUZZ_CHECK(plan->chain.n == plan->n_gpus && plan->chain.closed == (plan->n_nodes == 1));
    FUZZ_CHECK(shim_json_parse(plan->key, strlen(plan->key), &key, NULL) == 0);
    check_chain(&plan->chain);
    check_files(&plan->chain);
}

/* Every value of a text that was taken for JSON. */
static void walk(struct shim_json value, struct shim_json all)
{
    struct shim_json item = {0};
    char text[32];
    int64_t integer;
    double number;
    bool truth;
    int count = 0;
    FUZZ_CHECK(value.text >= all.text && value.text + value.size <= all.text + all.size);
    FUZZ_CHECK(value.size > 0 && shim_json_text(value, text, sizeof text) < (long)sizeof text);
    shim_json_integer(value, INT64_MIN, INT64_MAX, &integer);
    shim_json_number(value, -1e300, 1e300, &number);
    shim_json_bool(value, &truth);
    while (count++ < 100 && (item = shim_json_next(value, item)).text)
        walk(item, all);
    static const char *const names[] = {"links", "gpus", "edges", "a", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((item = shim_json_member(value, names[i])).text)
            walk(item, all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const shim_bus gpus[] = {0x100, 0x4100};
    static struct shim_plan plan;
    struct shim_chain chain;
    struct shim_json value;
    struct shim_why why = {""};
    /* Without a zero byte behind: the reader must keep to the size. */
    char *text = malloc(size ? size : 1);
    if (!text)
        abort();
    for (size_t i = 0; i < size; i++)
        text[i] = (char)data[i];
    if (shim_json_parse(text, size, &value, NULL) == 0)
        walk(value, value);
    if (shim_plan_parse(text, size, &plan, &why) == 0)
        check_plan(&plan);
    else
        FUZZ_CHECK(why.text[0]);
    for (int closed = 0; closed < 2; closed++) {
        why.text[0] = '\0';
        int answer = shim_chain_parse(text, size, gpus, 2, closed, &chain, &why);
        FUZZ_CHECK(!answer == !why.text[0]);
        if (answer == 0)
            check_chain(&chain);
    }
    free(text);
    return 0;
}

#define CHAIN                                                                                      \
    "\"gbps\":12.5,\"baseline_gbps\":6.25,\"source\":\"model\",\"links\":{\"closed\":true,"        \
    "\"gpus\":[\"0000:41:00.0\",\"0000:01:00.0\"],\"edges\":[{\"kind\":\"bounce\",\"node\":1},"    \
    "{\"kind\":\"p2p-write\",\"node\":-1}]}"
#define OPEN                                                                                       \
    "\"gbps\":3,\"baseline_gbps\":0,\"source\":\"host\",\"links\":{\"closed\":false,\"gpus\":["    \
    "\"0000:01:00.0\",\"0000:41:00.0\"],\"edges\":[{\"kind\":\"p2p-read\",\"node\":-1}],"          \
    "\"entry\":{\"nic\":\"mlx5_0\",\"busid\":\"0000:02:00.0\",\"gpudirect\":true,\"node\":-1},"    \
    "\"exit\":{\"nic\":\"ib.1\",\"busid\":\"0000:02:00.1\",\"gpudirect\":false,\"node\":2}}"
#define PLAN(nodes)                                                                                \
    "{\"version\":1,\"key\":{\"cluster\":\"c\",\"job\":7,\"het_job\":0,\"het_offset\":0,"          \
    "\"step\":4294967291,\"restart\":0,\"run\":17},\"node\":\"n1\",\"index\":0,\"n_nodes\":" nodes \
    ",\"state\":\"applied\",\"socket\":\"/s\",\"uid\":1,\"gpus\":[\"0000:01:00.0\","               \
    "\"0000:41:00.0\"],\"step_gpus\":0,\"one_fabric\":true,"

void fuzz_seeds(fuzz_add *add, void *context)
{
    static const char *const seeds[] = {
        PLAN("1") CHAIN "}",
        PLAN("3") OPEN ",\"chain\":{\"gpus\":[3,1]},\"ring\":\"n1[x]\"}",
        "{\"v\":1,\"type\":\"chain\",\"state\":\"applied\",\"reason\":\"\"," CHAIN "}",
        "{\"v\":1,\"type\":\"chain\",\"state\":\"applied\",\"reason\":\"\"," OPEN "}",
        "{\"v\":1,\"type\":\"chain\",\"state\":\"nothing-to-do\",\"reason\":\"as \\u00e9\"}",
        "[[1,-2.5e3,{\"a\":null}],\"\\ud83d\\ude00\\n\",true,false]",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        add(context, seeds[i], strlen(seeds[i]));
}
