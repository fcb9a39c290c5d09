/* utf8.c: well-formed UTF-8 (RFC 3629), and the characters in it that are not for showing. */
#include "base/utf8.h"

int tccl_utf8(const char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *c = (const unsigned char *)text;
    *code = *c;
    if (*c < 0x80)
        return 1;
    int size = *c >= 0xf0 ? 4 : *c >= 0xe0 ? 3 : 2;
    uint32_t all = *c & (0x7fU >> size);
    for (int i = 1; i < size; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        all = all << 6 | (c[i] & 0x3f);
    }
    if (*c < 0xc2 || *c > 0xf4 || all < least[size] || all > 0x10ffff ||
        (all >= 0xd800 && all <= 0xdfff))
        return 0;
    *code = all;
    return size;
}

bool tccl_utf8_unsafe(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0xfeff ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c <= 0xe007f);
}

void tccl_utf8_clean(char *text)
{
    while (*text) {
        uint32_t code;
        int size = tccl_utf8(text, &code);
        bool shown = size > 0 && !tccl_utf8_unsafe(code);
        for (int i = 0; i < (size ? size : 1); i++, text++)
            if (!shown)
                *text = '?';
    }
}
