/* doctor-show.c: what the doctor saw and found, for people and as JSON. */
#include <string.h>

#include "base/cleanup.h"
#include "doctor/doctor.h"

static int count(const struct tccl_doctor_facts *facts, enum tccl_doctor_kind kind)
{
    int found = 0;
    for (int i = 0; i < facts->n_devices; i++)
        found += facts->devices[i].kind == kind;
    return found;
}

static void where(const struct tccl_doctor_facts *facts, int device,
                  char text[static TCCL_DOCTOR_PATH + TCCL_NAME + 16])
{
    char name[TCCL_NAME + 8], path[TCCL_DOCTOR_PATH];
    if (device < 0) {
        strcpy(text, "machine");
        return;
    }
    tccl_doctor_name(&facts->devices[device], name);
    tccl_doctor_path(facts, device, path);
    sprintf(text, "%s, %s", name, path);
}

void tccl_doctor_print(FILE *out, const struct tccl_doctor_facts *facts,
                       const struct tccl_doctor_findings *findings)
{
    char place[TCCL_DOCTOR_PATH + TCCL_NAME + 16];
    int gpus = count(facts, TCCL_DOCTOR_GPU), nics = count(facts, TCCL_DOCTOR_NIC);
    int bridges = count(facts, TCCL_DOCTOR_BRIDGE);
    fprintf(out, "%d GPU%s, %d NIC%s, %d bridge%s above them, %d NUMA node%s; %d finding%s\n", gpus,
            gpus == 1 ? "" : "s", nics, nics == 1 ? "" : "s", bridges, bridges == 1 ? "" : "s",
            facts->n_nodes, facts->n_nodes == 1 ? "" : "s", findings->count + findings->more,
            findings->count + findings->more == 1 ? "" : "s");
    char name[TCCL_NAME + 8];
    for (int i = 0; i < facts->n_devices; i++) {
        const struct tccl_doctor_device *device = &facts->devices[i];
        struct tccl_doctor_rate rate = tccl_doctor_link(facts, i);
        if (device->kind == TCCL_DOCTOR_BRIDGE)
            continue;
        tccl_doctor_name(device, name);
        fprintf(out, "      %-12s %s  ", name, device->busid);
        if (rate.state == TCCL_DOCTOR_LINK_UNKNOWN)
            fprintf(out, "link unknown");
        else
            fprintf(out, "x%d %g GT/s of x%d %g, %s", rate.lanes, rate.gts, rate.lanes_most,
                    rate.gts_most, tccl_doctor_link_name(rate.state));
        fprintf(out, device->numa >= 0 ? "; NUMA node %d\n" : "\n", device->numa);
    }
    for (int i = 0; i < findings->count; i++) {
        const struct tccl_doctor_finding *finding = &findings->list[i];
        where(facts, finding->device, place);
        fprintf(out, "%s  %s: %s: %s\n", tccl_doctor_level_name(finding->level), finding->rule,
                place, finding->what);
        fprintf(out, "      costs: %s%s%s%s\n", finding->cost, finding->source ? " (" : "",
                finding->source ? finding->source : "", finding->source ? ")" : "");
        fprintf(out, "      mend:  %s\n", finding->mend);
        fprintf(out, "      risk:  %s\n", finding->risk);
    }
    if (findings->more > 0)
        fprintf(out, "      and %d more\n", findings->more);
    for (int i = 0; i < findings->n_unknown; i++)
        fprintf(out, "unknown  %s\n", findings->unknown[i]);
}

/* Puts a number that is known; else nothing. */
static void put(json_t *to, const char *name, bool known, double value)
{
    if (known && value == (double)(long)value)
        json_object_set_new(to, name, json_integer((json_int_t)value));
    else if (known)
        json_object_set_new(to, name, json_real(value));
}

static void put_text(json_t *to, const char *name, const char *text)
{
    char clean[TCCL_DOCTOR_PATH];
    tccl_sys_clean(clean, sizeof(clean), text);
    if (clean[0])
        json_object_set_new(to, name, json_string(clean));
}

static json_t *device_to_json(const struct tccl_doctor_facts *facts, int i)
{
    static const char *const kinds[] = {"gpu", "nic", "bridge"};
    static const char *const links[] = {NULL, "down", "up"};
    const struct tccl_doctor_device *device = &facts->devices[i];
    struct tccl_doctor_rate rate = tccl_doctor_link(facts, i);
    char path[TCCL_DOCTOR_PATH];
    json_t *json = json_object();
    tccl_doctor_path(facts, i, path);
    put_text(json, "kind", kinds[device->kind]);
    put_text(json, "busid", device->busid);
    put_text(json, "path", path);
    put_text(json, "name", device->name);
    put(json, "number", device->number >= 0, device->number);
    /* That of one that leads down is the link of the device there, which may rest. */
    if (!tccl_doctor_leads_down(facts, i))
        put_text(json, "link", tccl_doctor_link_name(rate.state));
    put(json, "lanes", rate.lanes > 0, rate.lanes);
    put(json, "lanes_most", rate.lanes_most > 0, rate.lanes_most);
    put(json, "gts", rate.gts > 0, rate.gts);
    put(json, "gts_most", rate.gts_most > 0, rate.gts_most);
    put(json, "numa", device->numa >= 0, device->numa);
    put_text(json, "iommu", device->iommu);
    put(json, "acs", device->acs >= 0, device->acs);
    put(json, "max_read_request", device->read_request > 0, device->read_request);
    put(json, "relaxed_ordering", device->relaxed >= 0, device->relaxed);
    put_text(json, "port", links[device->link]);
    put_text(json, "firmware", device->firmware);
    put(json, "persistence", device->nvml && device->nvml->persistence >= 0,
        device->nvml ? device->nvml->persistence : 0);
    return json;
}

static json_t *finding_to_json(const struct tccl_doctor_facts *facts,
                               const struct tccl_doctor_finding *finding)
{
    char place[TCCL_DOCTOR_PATH + TCCL_NAME + 16], what[TCCL_DOCTOR_WHAT];
    where(facts, finding->device, place);
    tccl_sys_clean(what, sizeof(what), finding->what);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "level", tccl_doctor_level_name(finding->level),
                  "rule", finding->rule, "what", what, "cost", finding->cost, "mend", finding->mend,
                  "risk", finding->risk);
    if (!json)
        return NULL;
    put_text(json, "where", place);
    put_text(json, "busid", finding->device >= 0 ? facts->devices[finding->device].busid : "");
    put_text(json, "source", finding->source);
    return json;
}

json_t *tccl_doctor_to_json(const struct tccl_doctor_facts *facts,
                            const struct tccl_doctor_findings *findings)
{
    cleanup_json json_t *devices = json_array();
    cleanup_json json_t *found = json_array();
    cleanup_json json_t *unknown = json_array();
    cleanup_json json_t *nodes = json_array();
    for (int i = 0; i < facts->n_devices; i++)
        json_array_append_new(devices, device_to_json(facts, i));
    for (int i = 0; i < facts->n_nodes; i++)
        json_array_append_new(nodes, json_pack("{s:i, s:i, s:b}", "number", facts->nodes[i].number,
                                               "socket", facts->nodes[i].socket, "devices",
                                               facts->nodes[i].used));
    for (int i = 0; i < findings->count; i++)
        json_array_append_new(found, finding_to_json(facts, &findings->list[i]));
    for (int i = 0; i < findings->n_unknown; i++)
        json_array_append_new(unknown, json_string(findings->unknown[i]));
    return json_pack("{s:s, s:b, s:f, s:f, s:b, s:O, s:O, s:O, s:i, s:O}", "level",
                     findings->count ? tccl_doctor_level_name(findings->list[0].level) : "ok",
                     "root", facts->root, "shm_gb", facts->shm_gb, "memlock_gb", facts->memlock_gb,
                     "gpudirect", facts->gpudirect, "devices", devices, "nodes", nodes, "findings",
                     found, "more", findings->more, "unknown", unknown);
}
