/* check-item-profile.c: the items profile and gpus: this machine's profile, and Slurm's GPUs. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fields.h"
#include "check/check-items.h"
#include "discover/discover-topology.h"
#include "discover/discover.h"
#include "doctor/doctor.h"
#include "fill/fill.h"
#include "gres/gres.h"
#include "profile/cache.h"
#include "profile/verdict.h"
#include "report/report.h"

enum {
    DAY = 86400,
    OLD_DAYS = 400,
    SLURM_MS = 3000,
    SPARE_MS = 500 /* kept before the deadline for the rest of the item */
};

/* ---- which machine ---- */

/* Is machine.json the description of this machine? A model's need not be. source: NULL if unknown.
 */
static void compare_machine(const struct check_site *site, const struct tccl_machine *machine,
                            const char *source, struct check_result *result)
{
    bool host = source && strcmp(source, "host") == 0;
    const struct tccl_discover_options how = {.host = host, .devices = host ? machine->n_gpus : 0};
    cleanup_free struct tccl_found *found = calloc(1, sizeof(*found));
    struct tccl_error err = {0};
    char here[TCCL_HASH_HEX], there[TCCL_HASH_HEX];
    if (!found)
        return;
    if (tccl_discover(&how, found, &err) != 0) {
        if (source)
            check_say(result, CHECK_FAIL,
                      "%s describes %d GPUs, but here: %.*s: load the driver, or run tccl-profile "
                      "init",
                      site->conf.machine, machine->n_gpus, (int)strcspn(err.text, ":"), err.text);
        return;
    }
    tccl_machine_id(&found->site.machine, here);
    tccl_machine_id(machine, there);
    if (strcmp(here, there) != 0)
        check_say(result, CHECK_FAIL,
                  "%s is of another machine (%s, this is %s): run tccl-profile init, and "
                  "tccl-profile run if it has no profile",
                  site->conf.machine, there, here);
    if (found->marks)
        check_say(result, CHECK_WARN, "GPUs are in MIG mode or under MPS: they get no ring");
}

/* ---- the profile ---- */

/* Unprivileged users may be unable to see what tccld reads. Returns whether that is the reason. */
static bool say_closed(int code, const char *reason, struct check_result *result)
{
    if (code != EACCES || geteuid() == 0)
        return false;
    check_say(result, CHECK_WARN, "%s: only another user can see this: look as root", reason);
    return true;
}

/* Reads the chain tables of all GPU sets until time is up. */
static void check_tables(const struct check_site *site, struct tccl_profile *profile,
                         struct check_result *result)
{
    cleanup_free uint32_t *masks = NULL;
    cleanup_free uint32_t *wanted = NULL;
    struct tccl_error err = {0};
    int count = tccl_profile_tables(profile, &masks, &err), read = 0, bad = 0;
    int all = tccl_gpusets_all(tccl_profile_machine(profile)->n_gpus, &wanted, NULL);
    if (count < 0) {
        check_say(result, CHECK_FAIL, "%s: run tccl-profile run", err.text);
        return;
    }
    for (; read < count && tccl_now_ms() < site->deadline - SPARE_MS; read++) {
        struct tccl_error reason = {0};
        if (tccl_profile_table(profile, masks[read], &reason) || bad++)
            continue;
        check_say(result, CHECK_FAIL,
                  "%s: remove the file and run tccl-profile run, or copy the profile again",
                  reason.text);
    }
    if (bad > 1)
        check_say(result, CHECK_FAIL, "%d more chain tables are damaged", bad - 1);
    if (count == 0)
        check_say(result, CHECK_FAIL, "no chains for any GPU set: run tccl-profile run");
    else if (count < all)
        check_say(result, CHECK_WARN,
                  "chains for %d of %d GPU sets, others get no ring: run tccl-profile run again",
                  count, all);
    else
        check_say(result, CHECK_OK, "chains for all %d GPU sets%s", count,
                  read < count ? "; not all were read in time" : "");
}

static void check_age(struct tccl_profile *profile, struct check_result *result)
{
    time_t measured = tccl_profile_time(profile), now = time(NULL);
    if (!measured)
        return;
    long days = (long)((now - measured) / DAY);
    if (measured > now + DAY)
        check_say(result, CHECK_WARN, "measured in the future: check the clock");
    else if (days > OLD_DAYS)
        check_say(
            result, CHECK_WARN,
            "measured %ld days ago: check with tccl-profile run --check whether it still holds",
            days);
    else
        check_say(result, CHECK_OK,
                  days > 1 ? "measured %ld days ago"
                  : days   ? "measured yesterday"
                           : "measured today",
                  days);
}

/* Driver, kernel and firmware may have changed since the measurements. */
static void check_system(struct tccl_profile *profile, struct check_result *result)
{
    const struct tccl_system *then = tccl_profile_system(profile);
    struct tccl_system now;
    tccl_system_read(NULL, &now);
    const struct {
        const char *what, *then, *now;
    } words[] = {{"the driver", then->driver, now.driver},
                 {"the kernel", then->kernel, now.kernel},
                 {"the firmware", then->firmware, now.firmware}};
    bool changed = false;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (!*words[i].then || !*words[i].now || strcmp(words[i].then, words[i].now) == 0)
            continue;
        check_say(result, CHECK_WARN, "%s was %s when it was measured, and is %s", words[i].what,
                  words[i].then, words[i].now);
        changed = true;
    }
    if (changed)
        check_say(
            result, CHECK_WARN,
            "check with tccl-profile run --check whether the profile still holds; if it does, "
            "tccl-profile run records the new versions");
}

/* Does this node know that what is in it holds here? (That tccld refuses it, tccld says.) */
static void check_verdict(const struct check_site *site, struct tccl_profile *profile,
                          struct check_result *result)
{
    struct tccl_verdict verdict;
    bool known = tccl_verdict_read(site->conf.cache_dir, site->conf.node, tccl_profile_id(profile),
                                   &verdict) == 0;
    if (!known && strcmp(tccl_profile_source(profile), "cuda") == 0)
        check_say(result, CHECK_FAIL,
                  "it was neither measured nor checked on this node, so steps get no rings here: "
                  "tccl-profile verify --quick checks it in a minute");
    else if (known && strcmp(verdict.found, "drifted") == 0 && !tccl_verdict_refuses(&verdict))
        check_say(result, CHECK_WARN,
                  "it has drifted on this node (its best rings have %.2f at least): look at "
                  "tccl-check machine, and measure anew",
                  verdict.worst);
}

static void check_source(const char *source, struct check_result *result)
{
    bool cuda = strcmp(source, "cuda") == 0;
    /* GPUs of this machine, by the driver or the PCI bus; 0: none. */
    const struct tccl_discover_options live = {0};
    cleanup_free struct tccl_found *found = cuda ? NULL : calloc(1, sizeof(*found));
    int gpus = found && tccl_discover(&live, found, NULL) == 0 ? found->site.machine.n_gpus : 0;
    if (gpus > 0)
        check_say(result, CHECK_WARN,
                  "its source is \"%s\"%s, but this node has %d GPUs: measure them with "
                  "tccl-profile run",
                  source, strncmp(source, "model", 5) == 0 ? " (computed, not measured)" : "",
                  gpus);
    else
        check_say(result, CHECK_OK, "%s \"%s\"%s", cuda ? "source" : "no GPUs here, source", source,
                  strncmp(source, "model", 5) == 0 ? ": computed from a model, not measured" : "");
}

/* Lists the machines of which there is a profile. */
static int note_id(void *context, const char *id)
{
    char *list = context;
    size_t used = strlen(list);
    snprintf(list + used, 128 - used, "%s%s", used ? ", " : "", id);
    return used > 80;
}

static void say_missing(const struct check_site *site, const char *id, const char *reason,
                        struct check_result *result)
{
    char others[128] = "", folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s/%s", PATH_MAX - 64, site->conf.cache_dir, id);
    bool there = access(folder, F_OK) == 0;
    if (!there && say_closed(errno, folder, result))
        return;
    if (there) {
        check_say(result, CHECK_FAIL, "%s: run tccl-profile verify, or copy the profile again",
                  reason);
        return;
    }
    tccl_cache_list(site->conf.cache_dir, note_id, others, NULL);
    if (*others)
        check_say(result, CHECK_FAIL,
                  "%s is a machine %s, and %s has only profiles of others (%s): run tccl-profile "
                  "run, or copy the profile directory of a node of the same kind",
                  site->conf.machine, id, site->conf.cache_dir, others);
    else
        check_say(result, CHECK_FAIL,
                  "no profile in %s: run tccl-profile run, or copy the profile directory of a node "
                  "of the "
                  "same kind",
                  site->conf.cache_dir);
}

/* Have steps reached what it promises? */
static void check_reached(const json_t *answer, struct check_result *result)
{
    size_t i;
    const json_t *each;
    json_array_foreach(json_object_get(answer, "evidence"), i, each)
    {
        long nodes = (long)tccl_number_of(each, "n_nodes");
        char where[64] = "";
        if (nodes > 1)
            snprintf(where, sizeof(where), " of %ld nodes, this one the first,", nodes);
        if (json_is_true(json_object_get(each, "untrue")))
            check_say(result, CHECK_WARN,
                      "no longer true here: measure again (tccl-profile run): steps with rings on "
                      "GPUs %.63s%s reach %.2f of the %.1f GB/s that it promises",
                      tccl_text_of(each, "what"), where, tccl_real_of(each, "reached"),
                      tccl_real_of(each, "promised_gbps"));
    }
}

/* Jobs side by side whose copies slow each other down: no fault, but to be known where jobs share
 * the node. */
static void check_collapses(struct tccl_profile *profile, struct check_result *result)
{
    struct tccl_set first;
    char text[TCCL_SET_TEXT];
    int pairs = tccl_together_collapsed(tccl_profile_together(profile, NULL), &first);
    if (pairs == 0)
        return;
    tccl_set_format(&first, text);
    check_say(result, CHECK_OK,
              "%d pair%s of copies of two jobs collapse beside each other, such as %.40s: jobs of "
              "one PCIe switch should share no node, or have rings (tccl-path place, tccl-profile "
              "gres)",
              pairs, pairs == 1 ? "" : "s", text);
}

/* What plans do without since it was measured; tccld looks for it in the same way. By a model it
 * searches anew (modelled), else it chooses among what was found then. */
static void check_since(const struct check_site *site, const struct tccl_machine *machine,
                        bool modelled, struct check_result *result)
{
    cleanup_free struct tccl_since *since = malloc(sizeof(*since));
    char more[32] = "";
    if (!since)
        return;
    tccl_since_look(NULL, site->conf.machine, site->conf.cache_dir, since);
    if (since->narrowed.n > 1)
        snprintf(more, sizeof(more), " (and %d more)", since->narrowed.n - 1);
    if (since->narrowed.n > 0)
        check_say(result, CHECK_WARN,
                  "%s%s: rings are planned for what is left; tccl-check machine says what mends it"
                  "%s",
                  since->narrowed.links[0].text, more,
                  modelled ? ""
                           : "; rings that were not measured may be better now: if it is to stay "
                             "so, measure anew");
    for (int i = 0; i < machine->n_gpus; i++)
        if (since->gone >> i & 1)
            check_say(result, CHECK_FAIL,
                      "GPU %d (%s) is not on the PCI bus any more: steps that have it get no ring; "
                      "look in dmesg, and drain the node",
                      i, machine->gpus[i].busid);
    for (int i = 0; i < machine->n_nics; i++)
        if (since->gone_nics >> i & 1)
            check_say(
                result, CHECK_FAIL,
                "%s (%s) is not on the PCI bus any more: rings take other NICs; look in dmesg",
                machine->nics[i].name, machine->nics[i].busid);
}

void check_item_profile(const struct check_site *site, struct check_result *result)
{
    cleanup_free struct tccl_machine *machine = calloc(1, sizeof(*machine));
    struct tccl_profile *profile;
    struct tccl_error err = {0};
    char id[TCCL_HASH_HEX];
    if (!site->compute && access(site->conf.machine, F_OK) != 0) {
        check_say(result, CHECK_OK, "not needed here: this is no compute node");
        return;
    }
    if (!machine)
        return;
    if (tccl_machine_read(site->conf.machine, machine, &err) != 0) {
        bool missing = access(site->conf.machine, F_OK) != 0;
        if (say_closed(access(site->conf.machine, R_OK) != 0 ? errno : 0, err.text, result))
            return;
        if (missing && site->gpus == 0)
            check_say(result, CHECK_OK, "none: Slurm has no GPUs on this node");
        else
            check_say(result, CHECK_FAIL, "%s: run tccl-profile init%s", err.text,
                      missing ? ", then tccl-profile run" : "");
        return;
    }
    tccl_machine_id(machine, id);
    errno = 0;
    if (tccl_profile_open(site->conf.cache_dir, id, &profile, &err) != 0) {
        if (!say_closed(errno, err.text, result))
            say_missing(site, id, err.text, result);
        compare_machine(site, machine, NULL, result);
        return;
    }
    check_say(result, CHECK_OK, "%s", id);
    if (strcmp(tccl_profile_source(profile), "model") != 0)
        compare_machine(site, machine, tccl_profile_source(profile), result);
    /* Can tccld use the profile that we can read? */
    cleanup_json json_t *answer = check_site_ask(site, true, SLURM_MS, NULL);
    const char *why = tccl_text_of(answer, "profile_why");
    if (*why)
        check_say(result, CHECK_FAIL,
                  "tccld can't use it: %.300s: make it readable for the user of TccldUser=", why);
    check_reached(answer, result);
    check_source(tccl_profile_source(profile), result);
    check_tables(site, profile, result);
    check_collapses(profile, result);
    check_since(site, machine, strcmp(tccl_profile_source(profile), "model") == 0, result);
    check_system(profile, result);
    check_verdict(site, profile, result);
    check_age(profile, result);
    tccl_profile_close(profile);
}

/* ---- GPUs ---- */

/* The number of GPUs according to slurmctld, else slurm.conf; -1: unknown. */
static int slurm_gpus(const struct check_site *site)
{
    const char *const ask[] = {"scontrol", "show", "node", site->conf.node, NULL};
    cleanup_free char *output = check_site_run(site, SLURM_MS, ask);
    char *gres = output ? strstr(output, " Gres=") : NULL;
    if (!gres)
        return site->gpus;
    gres += 6;
    gres[strcspn(gres, " \n")] = '\0';
    return tccl_slurm_gpus(gres);
}

/* slurmd's list, as this node's tccld has it. Returns whether it is known. */
static bool read_numbers(const struct check_site *site, struct tccl_gres *list,
                         struct check_result *result)
{
    struct tccl_error err = {""};
    cleanup_json json_t *answer = check_site_ask(site, true, SLURM_MS, NULL);
    const char *text = tccl_text_of(answer, "gpus"), *why = tccl_text_of(answer, "gpus_why");
    int pid;
    int64_t started;
    if (*text && tccl_gres_from_text(list, text, strlen(text), &pid, &started, &err) == 0)
        return true;
    if (!answer)
        check_say(result, CHECK_OK,
                  "slurmd's list of them is not known without tccld: see the item daemon");
    else
        check_say(result, CHECK_WARN, "slurmd's list of GPUs: %s",
                  *text  ? err.text
                  : *why ? why
                         : "tccld is older than this: restart it");
    return false;
}

/* Where Links= would serve here (tccl-profile gres): are those of gres.conf what was measured? */
static void check_links(const struct check_site *site, const struct tccl_machine *machine,
                        const struct tccl_gres *list, const int *gpus, struct check_result *result)
{
    int links[TCCL_MAX_GPUS][TCCL_MAX_GPUS];
    const char *texts[TCCL_MAX_GPUS];
    char id[TCCL_HASH_HEX], version[CHECK_VERSION];
    struct tccl_profile *profile;
    unsigned number = check_site_version(site, "slurmd", version);
    tccl_machine_id(machine, id);
    for (int i = 0; i < list->count && i < TCCL_MAX_GPUS; i++)
        texts[i] = list->devices[i].links;
    if (list->count > TCCL_MAX_GPUS || !tccl_links_said(texts, list->count) || !number ||
        !tccl_links_serve((int)(number >> 16), (int)(number >> 8 & 0xff)) ||
        tccl_profile_open(site->conf.cache_dir, id, &profile, NULL) != 0)
        return;
    int off = tccl_links_from_profile(profile, NULL, NULL, links, NULL) == 0
                  ? tccl_links_differ(links, gpus, list->count, texts)
                  : -1;
    tccl_profile_close(profile);
    if (off >= 0)
        check_say(result, CHECK_WARN,
                  "Links=%s of %s in gres.conf are not as measured: tccl-profile gres prints those "
                  "that are",
                  texts[off], list->devices[off].file);
}

/* Has the node the cores of Cores=? Slurm takes any in place of those that it hasn't. */
static bool check_cores_exist(const struct tccl_gres *list, struct check_result *result)
{
    for (int i = 0; i < list->count; i++) {
        const struct tccl_gres_device *device = &list->devices[i];
        if (!*device->cores || !device->core_count ||
            tccl_gres_cores_exist(device->cores, device->core_count))
            continue;
        check_say(result, CHECK_WARN,
                  "Cores=%.60s of %s in gres.conf are no cores of this node, 0 to %d as Slurm "
                  "counts: tccl-profile gres prints lines for gres.conf",
                  device->cores, device->file, device->core_count - 1);
        return false;
    }
    return true;
}

/* Is Cores= of gres.conf, where it is said, what is next to the GPUs? */
static void check_cores(const struct tccl_machine *machine, const struct tccl_gres *list,
                        const int *gpus, struct check_result *result)
{
    char cores[TCCL_CORES_TEXT];
    hwloc_topology_t topology;
    bool said = false;
    for (int i = 0; i < list->count; i++)
        said |= list->devices[i].cores[0] != '\0';
    if (!said || tccl_topology_live(&topology, NULL) != 0)
        return;
    for (int i = 0; i < list->count; i++) {
        const struct tccl_gres_device *device = &list->devices[i];
        if (!*device->cores || tccl_gpu_cores(topology, machine, gpus[i], cores, NULL) != 0 ||
            !tccl_cores_differ(device->cores, cores))
            continue;
        check_say(result, CHECK_WARN,
                  "Cores=%.60s of %s in gres.conf are not those next to that GPU, %.60s: "
                  "tccl-profile gres prints lines for gres.conf",
                  device->cores, device->file, cores);
        break;
    }
    hwloc_topology_destroy(topology);
}

/* Which GPU is each of Slurm's numbers? */
static void check_numbers(const struct check_site *site, const struct tccl_machine *machine,
                          struct check_result *result)
{
    cleanup_free struct tccl_gres *list = malloc(sizeof(*list));
    if (!list || !read_numbers(site, list, result))
        return;
    int gpus[TCCL_GRES_MAX], known = 0;
    for (int i = 0; i < list->count; i++) {
        struct tccl_error why = {0};
        gpus[i] = tccl_gres_find(list, machine, false, i, &why);
        known += gpus[i] >= 0;
        if (gpus[i] < 0)
            check_say(result, CHECK_FAIL, "%s", why.text);
    }
    if (known < list->count)
        return;
    if (*list->refused)
        check_say(result, CHECK_WARN,
                  "Links=%s in gres.conf is none that slurmd can read, so it is left out: numbers "
                  "such as -1,4,0,0 are wanted, with -1 for the GPU itself, as tccl-profile gres "
                  "prints them",
                  list->refused);
    else
        check_links(site, machine, list, gpus, result);
    if (check_cores_exist(list, result))
        check_cores(machine, list, gpus, result);
}

void check_item_gpus(const struct check_site *site, struct check_result *result)
{
    cleanup_free struct tccl_machine *machine = calloc(1, sizeof(*machine));
    int gpus = site->compute ? slurm_gpus(site) : -1;
    if (!site->compute || !machine) {
        check_say(result, CHECK_OK, "this is no compute node");
    } else if (gpus < 0) {
        check_say(result, CHECK_WARN,
                  "neither scontrol nor slurm.conf gives the number of GPUs of %s",
                  site->conf.node);
    } else if (tccl_machine_read(site->conf.machine, machine, NULL) != 0) {
        if (gpus)
            check_say(result, CHECK_WARN,
                      "Slurm has %d; there is no description of the machine to compare with: see "
                      "the item profile",
                      gpus);
        else
            check_say(result, CHECK_OK, "Slurm has none");
    } else {
        if (gpus != machine->n_gpus)
            check_say(result, gpus > machine->n_gpus ? CHECK_FAIL : CHECK_WARN,
                      "Slurm has %d, the machine %d (%s): correct Gres= and gres.conf, or run "
                      "tccl-profile init",
                      gpus, machine->n_gpus, site->conf.machine);
        else
            check_say(result, CHECK_OK, "%d, as Slurm has them", gpus);
        check_numbers(site, machine, result);
    }
}
