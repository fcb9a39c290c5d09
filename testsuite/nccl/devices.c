/* devices.c: the machine that the stand-in libraries pretend to be on. */
#include "devices.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rig_devices devices;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool add_gpu(const char *line)
{
    struct rig_gpu gpu = {0};
    if (devices.n_gpus == RIG_GPUS ||
        sscanf(line, "gpu %x:%x:%x.0 %d %d %63s %63[^\n]", &gpu.domain, &gpu.bus, &gpu.slot,
               &gpu.minor, &gpu.sm, gpu.uuid, gpu.name) != 7)
        return false;
    devices.gpus[devices.n_gpus++] = gpu;
    return true;
}

static bool add_nic(const char *line)
{
    struct rig_nic nic = {0};
    if (devices.n_nics == RIG_NICS || sscanf(line, "nic %63s %d", nic.name, &nic.rate) != 2)
        return false;
    devices.nics[devices.n_nics++] = nic;
    return true;
}

static bool add_p2p(const char *line)
{
    unsigned a, b;
    if (sscanf(line, "p2p %u %u", &a, &b) != 2 || a >= RIG_GPUS || b >= RIG_GPUS)
        return false;
    devices.p2p[a][b] = devices.p2p[b][a] = true;
    return true;
}

static bool add_nvlink(int from, int to)
{
    if (from < 0 || from >= devices.n_gpus || to >= devices.n_gpus ||
        devices.gpus[from].n_nvlinks == RIG_NVLINKS)
        return false;
    devices.gpus[from].nvlinks[devices.gpus[from].n_nvlinks++] = to;
    return true;
}

/* "nvlink 0 1", "nvlink 0 switch" */
static bool add_nvlinks(const char *line)
{
    int a, b, length = 0;
    if (sscanf(line, "nvlink %d switch%n", &a, &length) == 1 && length > 0)
        return add_nvlink(a, RIG_SWITCH);
    return sscanf(line, "nvlink %d %d", &a, &b) == 2 && b >= 0 && add_nvlink(a, b) &&
           add_nvlink(b, a);
}

static bool add_mig(const char *line)
{
    int gpu;
    if (sscanf(line, "mig %d", &gpu) != 1 || gpu < 0 || gpu >= devices.n_gpus)
        return false;
    return devices.gpus[gpu].mig = true;
}

static bool add_line(const char *line)
{
    if (strncmp(line, "nvlink ", 7) == 0)
        return add_nvlinks(line);
    if (strncmp(line, "mig ", 4) == 0)
        return add_mig(line);
    if (strncmp(line, "gpu ", 4) == 0)
        return add_gpu(line);
    if (strncmp(line, "nic ", 4) == 0)
        return add_nic(line);
    if (strncmp(line, "p2p ", 4) == 0)
        return add_p2p(line);
    if (strcmp(line, "gpudirect\n") == 0)
        return devices.gpudirect = true;
    return sscanf(line, "driver %d", &devices.driver) == 1;
}

/* $TCCL_RIG_SEEN, "2,3": the only GPUs that this process sees, as in a device cgroup of its own. */
static void hide_gpus(const char *seen)
{
    static struct rig_devices all;
    unsigned gpu, of[RIG_GPUS] = {0};
    int length;
    all = devices;
    devices.n_gpus = 0;
    memset(devices.p2p, 0, sizeof(devices.p2p));
    for (; sscanf(seen, "%u%n", &gpu, &length) == 1 && gpu < (unsigned)all.n_gpus;
         seen += length + (seen[length] == ',')) {
        of[devices.n_gpus] = gpu;
        devices.gpus[devices.n_gpus] = all.gpus[gpu];
        for (int i = 0; i < all.gpus[gpu].n_nvlinks; i++)
            devices.gpus[devices.n_gpus].nvlinks[i] = RIG_SWITCH; /* to something out of sight */
        devices.n_gpus++;
    }
    for (int a = 0; a < devices.n_gpus; a++)
        for (int b = 0; b < devices.n_gpus; b++)
            devices.p2p[a][b] = all.p2p[of[a]][of[b]];
}

static void read_devices(void)
{
    const char *path = getenv("TCCL_RIG_DEVICES");
    FILE *file = path ? fopen(path, "re") : NULL;
    char line[256];
    bool good = file;
    while (good && fgets(line, sizeof(line), file))
        good = add_line(line);
    if (file)
        fclose(file);
    if (good && getenv("TCCL_RIG_SEEN"))
        hide_gpus(getenv("TCCL_RIG_SEEN"));
    if (good)
        return;
    fprintf(stderr,
            "tccl rig: no description of devices in %s ($TCCL_RIG_DEVICES): there are none\n",
            path ? path : "the environment");
    memset(&devices, 0, sizeof(devices));
}

const struct rig_devices *rig_devices(void)
{
    pthread_once(&once, read_devices);
    return &devices;
}

int rig_find_gpu(const char *busid)
{
    const struct rig_devices *all = rig_devices();
    unsigned domain, bus, slot;
    if (sscanf(busid, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return -1;
    for (int i = 0; i < all->n_gpus; i++)
        if (all->gpus[i].domain == domain && all->gpus[i].bus == bus && all->gpus[i].slot == slot)
            return i;
    return -1;
}

void rig_refuse(const char *what)
{
    fprintf(stderr, "tccl rig: %s refused: no device here can do it, this is a stand-in\n", what);
}
