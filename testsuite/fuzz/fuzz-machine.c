/* machine.json: what is accepted is within its bounds, and is the same when written and read again.
 */
#include "fuzz.h"
#include "sample.h"

static void check_again(const struct tccl_machine *machine)
{
    char id[TCCL_HASH_HEX], again_id[TCCL_HASH_HEX];
    struct tccl_machine again;
    cleanup_json json_t *json = tccl_machine_to_json(machine);
    FUZZ_CHECK(json && tccl_machine_from_json(json, &again, ERR) == 0);
    tccl_machine_id(machine, id);
    tccl_machine_id(&again, again_id);
    FUZZ_CHECK(strcmp(id, again_id) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tccl_machine machine;
    cleanup_json json_t *json = fuzz_json(data, size);
    json_t *inner = json_object_get(json, "machine"); /* of a model file */
    if (json && tccl_machine_from_json(inner ? inner : json, &machine, ERR) == 0) {
        FUZZ_CHECK(machine.n_gpus >= 0 && machine.n_gpus <= TCCL_MAX_GPUS);
        FUZZ_CHECK(machine.n_memories >= 0 && machine.n_memories <= TCCL_MAX_MEMORIES);
        FUZZ_CHECK(machine.n_nics >= 0 && machine.n_nics <= TCCL_MAX_NICS);
        for (int i = 0; i < machine.n_gpus; i++)
            FUZZ_CHECK(machine.gpus[i].numa >= 0 && machine.gpus[i].numa < machine.n_memories);
        for (int i = 0; i < machine.n_nics; i++)
            FUZZ_CHECK(machine.nics[i].numa >= 0 && machine.nics[i].numa < machine.n_memories);
        check_again(&machine);
        tccl_table_free(tccl_table_new(&machine, 1));
    } else {
        FUZZ_CHECK(!json || check_err.text[0]);
    }
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    struct tccl_machine machine = sample_machine();
    fuzz_add_json(add, context, tccl_machine_to_json(&machine));
}
