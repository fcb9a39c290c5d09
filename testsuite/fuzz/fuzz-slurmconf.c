/* slurm.conf and plugstack.conf, as tccl-check reads them. Their includes are followed within a
 * folder of their own; inputs that would lead out of it are left out. */
#include "fuzz.h"
#include "gres/slurm-conf.h"

static char path[PATH_MAX];

static void begin(void)
{
    if (*path)
        return;
    strcpy(path, check_at("slurm.conf"));
    check_write_file(check_at("other.conf"),
                     "NodeName=n9 Gres=gpu:1\noptional spank_tccl.so\ninclude other.conf\n");
    atexit(check_clear);
}

static int count_node(void *context, const struct tccl_slurm_node *node)
{
    FUZZ_CHECK(memchr(node->name, '\0', sizeof(node->name)) && *node->name);
    FUZZ_CHECK(memchr(node->hostname, '\0', sizeof(node->hostname)) && *node->hostname);
    FUZZ_CHECK(node->gpus >= 0);
    ++*(size_t *)context;
    return 0;
}

static void read_slurm(void)
{
    struct tccl_slurm_conf conf;
    size_t nodes = 0;
    if (tccl_slurm_conf_read(path, &conf, ERR) != 0) {
        FUZZ_CHECK(check_err.text[0]);
        tccl_slurm_conf_clear(&conf);
        return;
    }
    FUZZ_CHECK(conf.count <= TCCL_SLURM_ENTRIES);
    for (size_t i = 0; i < conf.count; i++) {
        const struct tccl_slurm_entry *entry = &conf.entries[i];
        FUZZ_CHECK(*entry->key && !strpbrk(entry->key, " \t=\n"));
        FUZZ_CHECK(tccl_slurm_get(&conf, entry->key));
        tccl_slurm_lists(entry->value, "task/cgroup");
        FUZZ_CHECK(tccl_slurm_gpus(entry->value) >= 0);
    }
    FUZZ_CHECK(tccl_slurm_nodes(&conf, count_node, &nodes) == nodes);
    tccl_slurm_conf_clear(&conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = fuzz_text(data, size);
    const char *include = strcasestr(text, "include");
    begin();
    if (include && (strchr(include, '/') || strstr(include, "..")))
        return 0;
    FUZZ_CHECK(tccl_slurm_gpus(text) >= 0);
    check_write_file(path, text);
    read_slurm();
    struct tccl_plugstack stack;
    FUZZ_CHECK(tccl_plugstack_read(path, &stack, NULL) == 0);
    FUZZ_CHECK(stack.there && stack.n_args >= 0 && stack.n_args <= TCCL_PLUGIN_ARGS);
    FUZZ_CHECK(stack.found == (stack.times > 0) && stack.found == (stack.line > 0));
    const char *config = tccl_plugstack_config(&stack);
    FUZZ_CHECK(!config || stack.found);
    return 0;
}

FUZZ_SEEDS("# slurm.conf\nClusterName=c \\\n x=1\nTaskPlugin=task/cgroup,task/affinity # both\n"
           "NodeName=DEFAULT Gres=gpu:2\nNodeName=n[1-4] NodeHostname=\"h[1-4]\" CPUs=8\n"
           "NodeName=m1 gres = gpu:a100:4(S:0-1),shard:8\nPartitionName = p Nodes=n[1-4]\n",
           "include other.conf\nPlugStackConfig=plugstack.conf\nKey+=value\n+=value\n",
           "include *.conf\nNodeName=a\\#b\n",
           "required lib/spank_tccl.so config=x  Timeout=1s\noptional y.so\ninclude other.conf\n",
           "gpu:a100:4(S:0-1),shard:8,gpu,gpu:2,gpu:2147483647,gpu(IDX:0)")
