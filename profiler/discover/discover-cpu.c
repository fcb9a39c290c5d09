/* discover-cpu.c: who made the CPUs, as far as NCCL tells them apart. */
#include <stdlib.h>
#include <string.h>

#include "discover/discover-parts.h"

/* A fact of the topology, "" if it is not there; older files have a package's facts at the root. */
static const char *fact(hwloc_topology_t topology, const char *name)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *value = package ? hwloc_obj_get_info_by_name(package, name) : NULL;

    if (!value)
        value = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), name);
    return value ? value : "";
}

/* NCCL's generations begin with the models Skylake-SP, Sapphire Rapids and Emerald Rapids. */
static enum tccl_cpu intel(int family, int model)
{
    if (family != 6 || model < 0x55)
        return TCCL_CPU_INTEL_BDW;
    if (model < 0x8f)
        return TCCL_CPU_INTEL_SKL;
    return model < 0xcf ? TCCL_CPU_INTEL_SRP : TCCL_CPU_INTEL_ERP;
}

enum tccl_cpu tccl_scene_cpu(hwloc_topology_t topology)
{
    const char *architecture = fact(topology, "Architecture"),
               *vendor = fact(topology, "CPUVendor");
    int family = atoi(fact(topology, "CPUFamilyNumber"));
    int model = atoi(fact(topology, "CPUModelNumber"));

    if (strncmp(architecture, "ppc64", 5) == 0)
        return TCCL_CPU_POWER;
    if (strcmp(architecture, "aarch64") == 0)
        return TCCL_CPU_ARM;
    if (strcmp(vendor, "AuthenticAMD") == 0 || strncmp(fact(topology, "CPUModel"), "AMD ", 4) == 0)
        return TCCL_CPU_AMD;
    if (strcmp(vendor, "GenuineIntel") == 0 && family > 0 && model > 0)
        return intel(family, model);
    if (strcmp(vendor, "CentaurHauls") == 0 || strstr(vendor, "Shanghai"))
        return family == 7 && model == 0x5b ? TCCL_CPU_YONGFENG : TCCL_CPU_ZHAOXIN;
    return TCCL_CPU_UNKNOWN;
}
