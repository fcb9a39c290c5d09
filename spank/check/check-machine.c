/* check-machine.c: tccl-check machine, and the item of that name: what of this machine slows
 * transfers down. Only NVML and CUDA may hang, as drivers do; a child asks them. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "check/check-items.h"
#include "doctor/doctor.h"
#include "plugin/plugin.h"

enum { DRIVER_MS = 1500 };

/* Filled in by the child, in this order. */
struct answer {
    _Atomic int parts; /* that are there: 1 NVML's, 2 CUDA's, too */
    int code;          /* of tccl_nvml_read */
    struct tccl_error err, cuda_err;
    struct tccl_nvml nvml;
};

struct seen {
    struct tccl_doctor_facts facts;
    struct tccl_doctor_findings findings;
};

/* In a child, which ends, or is killed, within DRIVER_MS: fills in the answer, which is shared. */
static void ask(const void *what, void *all)
{
    struct answer *answer = *(struct answer *const *)what;
    answer->code = tccl_nvml_read(&answer->nvml, &answer->err);
    answer->parts = 1;
    if (answer->code == 0 && answer->nvml.n_gpus > 1)
        tccl_cuda_peers_read(&answer->nvml, &answer->cuda_err);
    answer->parts = 2;
    *(bool *)all = true;
}

static struct seen *look(void)
{
    struct seen *seen = calloc(1, sizeof(*seen));
    struct answer *answer =
        mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen && answer != MAP_FAILED) {
        bool all;
        child_word(ask, &answer, &all, sizeof(all), DRIVER_MS, NULL);
        int parts = answer->parts;
        const bool known = parts > 0 && answer->code == 0;
        const char *trouble = parts == 0 ? "NVML doesn't answer: look for a hanging driver in dmesg"
                              : answer->code > 0 ? "there is no libnvidia-ml.so.1"
                                                 : answer->err.text;
        tccl_doctor_read(NULL, known ? &answer->nvml : NULL, trouble, &seen->facts);
        seen->facts.nvml.knows_cuda &= parts == 2;
        if (!seen->facts.nvml.knows_cuda)
            tccl_sys_clean(seen->facts.cuda_trouble, sizeof(seen->facts.cuda_trouble),
                           parts == 2 ? answer->cuda_err.text : "it did not answer in time");
        tccl_doctor_examine(&seen->facts, &seen->findings);
    }
    if (answer != MAP_FAILED)
        munmap(answer, sizeof(*answer));
    return seen;
}

static bool has_failed(const struct tccl_doctor_findings *findings)
{
    return findings->count > 0 && findings->list[0].level == TCCL_DOCTOR_FAIL;
}

int check_machine(const struct check_options *options)
{
    cleanup_free struct seen *seen = look();
    if (!seen) {
        fprintf(stderr, "tccl: out of memory\n");
        return 1;
    }
    if (!options->json) {
        tccl_doctor_print(stdout, &seen->facts, &seen->findings);
        return has_failed(&seen->findings);
    }
    cleanup_json json_t *json = tccl_doctor_to_json(&seen->facts, &seen->findings);
    if (!json || json_object_set_new(json, "version", json_string(TCCL_VERSION)) != 0 ||
        json_dumpf(json, stdout, JSON_INDENT(2) | TCCL_JSON_SHOWN) != 0)
        return 1;
    putchar('\n');
    return has_failed(&seen->findings);
}

/* The first of each rule, with the number of the others. */
void check_item_machine(const struct check_site *site UNUSED, struct check_result *result)
{
    static const enum check_level levels[TCCL_DOCTOR_LEVELS] = {
        [TCCL_DOCTOR_NOTE] = CHECK_OK,
        [TCCL_DOCTOR_WARN] = CHECK_WARN,
        [TCCL_DOCTOR_FAIL] = CHECK_WARN}; /* steps on the other GPUs get rings */
    cleanup_free struct seen *seen = look();
    const struct tccl_doctor_findings *findings = seen ? &seen->findings : NULL;
    for (int i = 0; findings && i < findings->count; i++) {
        const struct tccl_doctor_finding *finding = &findings->list[i];
        char name[TCCL_NAME + 8] = "";
        int first = 0, others = 0;
        while (strcmp(findings->list[first].rule, finding->rule) != 0)
            first++;
        for (int j = i + 1; j < findings->count; j++)
            others += strcmp(findings->list[j].rule, finding->rule) == 0;
        if (first < i)
            continue;
        if (finding->device >= 0)
            tccl_doctor_name(&seen->facts.devices[finding->device], name);
        check_say(result, levels[finding->level], "%s%s%s%s%s", name, *name ? " " : "",
                  finding->device >= 0 ? seen->facts.devices[finding->device].busid : "",
                  *name ? ": " : "", finding->what);
        if (others > 0)
            check_say(result, levels[finding->level], "and %d more of this", others);
    }
    if (findings && findings->count > 0)
        check_say(result, result->level,
                  "tccl-check machine says what they cost, and what mends them");
    else
        check_say(result, CHECK_OK, "nothing found that slows transfers down%s",
                  findings && findings->n_unknown ? "; tccl-check machine says what can't be seen"
                                                  : "");
}
