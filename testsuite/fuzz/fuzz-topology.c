/* Topologies recorded by lstopo or NCCL: whatever the XML is, an error or a machine within its
 * bounds that can be written and read again. hwloc's reader of XML is part of what is tried: it may
 * break in the process that tries it first, which is no failure. */
#include <pthread.h>

#include "discover/discover.h"
#include "fuzz.h"

static void check_machine(const struct tccl_machine *machine)
{
    struct tccl_machine again;
    cleanup_json json_t *json = tccl_machine_to_json(machine);
    FUZZ_CHECK(machine->n_gpus > 0 && machine->n_gpus <= TCCL_MAX_GPUS);
    FUZZ_CHECK(machine->n_memories > 0 && machine->n_memories <= TCCL_MAX_MEMORIES);
    FUZZ_CHECK(json && tccl_machine_from_json(json, &again, ERR) == 0);
}

extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* libFuzzer would take the end of that process for its own, and keep the input as a crash. */
static void forget_libfuzzer(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU};
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(NULL);
    for (size_t i = 0; i < COUNT(signals); i++)
        signal(signals[i], SIG_DFL);
}

__attribute__((constructor)) static void see_forks(void)
{
    pthread_atfork(NULL, NULL, forget_libfuzzer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tccl_found found;
    char path[FUZZ_PATH];
    int fd = fuzz_file(data, size, path);
    const struct tccl_discover_options options = {.xml = path};
    if (tccl_discover(&options, &found, ERR) == 0)
        check_machine(&found.site.machine);
    else
        FUZZ_CHECK(check_err.text[0]);
    close(fd);
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    static const char seed[] =
        "<topology version=\"3.0\"><object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" "
        "complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "
        "allowed_nodeset=\"0x1\" gp_index=\"1\">"
        "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"4096\"/>"
        "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"3\"/>"
        "<object type=\"Bridge\" gp_index=\"4\" bridge_type=\"0-1\" depth=\"0\" "
        "bridge_pci=\"0000:[00-ff]\">"
        "<object type=\"PCIDev\" gp_index=\"5\" pci_busid=\"0000:01:00.0\" "
        "pci_type=\"0302 [10de:20b0] [10de:0000] a1\" pci_link_speed=\"0.0\"/>"
        "<object type=\"PCIDev\" gp_index=\"6\" pci_busid=\"0000:02:00.0\" "
        "pci_type=\"0207 [15b3:101b] [119f:1bc5] 00\" pci_link_speed=\"31.5\">"
        "<object type=\"OSDev\" gp_index=\"7\" name=\"mlx5_0\" osdev_type=\"48\">"
        "<info name=\"Port1State\" value=\"4\"/></object></object>"
        "</object></object></topology>\n";
    static const char nccl[] =
        "<system version=\"1\"><!-- by hand --><cpu host_hash=\"0x1\" numaid=\"1\" arch=\"x86_64\" "
        "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">"
        "<pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\"><pci busid=\"0000:02:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
        "device=\"0x20b5\"><gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\">"
        "<nvlink target=\"0000:03:00.0\" count=\"4\"/></gpu></pci>"
        "<pci busid=\"0000:04:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_0\" dev=\"0\" "
        "speed=\"200000\" port=\"1\" gdr=\"1\"/></nic></pci></pci></cpu>"
        "<cpu numaid=\"0\"><nic><net name=\"br-1\"/></nic></cpu></system>\n";
    add(context, seed, sizeof(seed) - 1);
    add(context, nccl, sizeof(nccl) - 1);
}
