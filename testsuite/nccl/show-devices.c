/* show-devices.c: the numbers that the runtime shim finds for the devices of this machine, without
 * an NCCL: a line for each thing that is asked for.
 *   show-devices VERSION [cuda] [verbs] [set N] [current] [device N] [nvml BUSID]
 *                [nvlink BUSID,BUSID…] [nic NAME] …
 * cuda and verbs load these libraries, set N is cudaSetDevice. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "nccl/shim-nccl.h"

static void show_bus(int status, const tccl_bus *bus, const struct tccl_error *why)
{
    char text[TCCL_BUS_TEXT];
    if (status == 0)
        tccl_bus_format(*bus, text);
    printf("%s\n", status == 0 ? text : why->text);
}

static void show_nvlink(char *list)
{
    static const char *const words[] = {"none", "some", "all"};
    bool linked[SHIM_GPUS][SHIM_GPUS];
    struct tccl_error why = {0};
    tccl_bus gpus[SHIM_GPUS];
    int n = 0, found;
    for (char *rest, *one = strtok_r(list, ",", &rest); one && n < SHIM_GPUS;
         one = strtok_r(NULL, ",", &rest))
        if (tccl_bus_parse(one, &gpus[n]) == 0)
            n++;
    found = shim_device_nvlink(gpus, n, linked, &why);
    printf("%s", found < 0 ? why.text : words[found]);
    for (int a = 0; found > 0 && a < n; a++)
        for (int b = a + 1; b < n; b++)
            if (linked[a][b] && linked[b][a])
                printf(" %d-%d", a, b);
    printf("\n");
}

static void show_number(int number, const struct tccl_error *why)
{
    if (number >= 0)
        printf("%d\n", number);
    else
        printf("%s\n", why->text);
}

static void show(const char *what, char *of, uint32_t version)
{
    struct shim_nccl nccl = {.version = version};
    struct tccl_error why = {0};
    tccl_bus bus = 0;
    int number = -1;
    if (strcmp(what, "device") == 0) {
        show_bus(shim_device_bus(atoi(of), &bus, &why), &bus, &why);
    } else if (strcmp(what, "nvml") == 0) {
        if (tccl_bus_parse(of, &bus) == 0 && shim_device_nvml(bus, &number, &why) != 0)
            number = -1;
        show_number(number, &why);
    } else if (strcmp(what, "nvlink") == 0) {
        show_nvlink(of);
    } else if (strcmp(what, "nic") == 0) {
        show_number(shim_nic_number(of, &nccl, &why), &why);
    }
}

/* Loaded as a program's extensions are, where dlsym(RTLD_DEFAULT) does not look. */
static void *load(const char *name)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    return handle;
}

static void set_device(void *runtime, int ordinal)
{
    int (*set)(int) = NULL;
    if (runtime)
        *(void **)&set = dlsym(runtime, "cudaSetDevice");
    if (!set || set(ordinal) != 0)
        printf("can't be set\n");
}

int main(int argc, char **argv)
{
    uint32_t version = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
    struct tccl_error why = {0};
    void *runtime = NULL;
    tccl_bus bus = 0;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "cuda") == 0) {
            runtime = load("libcudart.so.13");
        } else if (strcmp(argv[i], "verbs") == 0) {
            load("libibverbs.so.1");
        } else if (strcmp(argv[i], "current") == 0) {
            memset(&why, 0, sizeof(why));
            show_bus(shim_device_current(&bus, &why), &bus, &why);
        } else if (i + 1 < argc && strcmp(argv[i], "set") == 0) {
            set_device(runtime, atoi(argv[++i]));
        } else if (i + 1 < argc) {
            show(argv[i], argv[i + 1], version);
            i++;
        }
    }
    return 0;
}
