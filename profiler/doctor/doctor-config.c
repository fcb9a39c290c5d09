/* doctor-config.c: what a PCI device's configuration space says: the capability lists are walked, a
 * bounded number of steps. (libpci would read as much, and be one more dependency of all
 * programs.) */
#include "doctor/doctor.h"

enum {
    STATUS = 0x06,
    HAS_LIST = 0x10, /* of STATUS */
    FIRST = 0x34,
    EXPRESS = 0x10, /* capability */
    CONTROL = 8,    /* of it: Device Control */
    RELAXED = 0x10, /* of Device Control; bits 12 to 14: MaxReadReq */
    EXTENDED = 0x100,
    ACS = 0x0d, /* extended capability */
    ACS_CONTROL = 6,
    MOST_STEPS = 48,
    SEEN_BY_ALL = 64
};

static unsigned word(const unsigned char *config, size_t size, size_t at)
{
    return at + 2 <= size ? config[at] | (unsigned)config[at + 1] << 8 : 0;
}

static void read_express(const unsigned char *config, size_t size,
                         struct tccl_doctor_device *device)
{
    size_t at = config[FIRST] & 0xfcU;
    for (int i = 0; i < MOST_STEPS && at >= SEEN_BY_ALL && at + 2 <= size; i++) {
        if (config[at] == EXPRESS && at + CONTROL + 2 <= size) {
            unsigned control = word(config, size, at + CONTROL);
            device->relaxed = (control & RELAXED) != 0;
            device->read_request = 128 << (control >> 12 & 7);
            return;
        }
        at = config[at + 1] & 0xfcU;
    }
}

void tccl_doctor_config(const unsigned char *config, size_t size, struct tccl_doctor_device *device)
{
    device->acs = device->relaxed = -1;
    device->read_request = 0;
    device->lost = size >= 4 && word(config, size, 0) == 0xffff && word(config, size, 2) == 0xffff;
    device->seen_config = size > SEEN_BY_ALL;
    if (device->lost || !device->seen_config || !(config[STATUS] & HAS_LIST))
        return;
    read_express(config, size, device);
    size_t at = EXTENDED;
    for (int i = 0; i < MOST_STEPS && at >= EXTENDED && at + ACS_CONTROL + 2 <= size; i++) {
        unsigned id = word(config, size, at);
        if (id == 0 || id == 0xffff)
            return;
        if (id == ACS) {
            device->acs = (int)word(config, size, at + ACS_CONTROL);
            return;
        }
        at = word(config, size, at + 2) >> 4 & 0xffcU;
    }
}
