/* utf8.h: characters of texts from outside. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the character that a text begins with, and its code. 0: it is none, or a part of one
 * (code is the byte then). */
int tccl_utf8(const char *text, uint32_t *code);
/* Could it move the cursor, hide text or change the writing direction? */
bool tccl_utf8_unsafe(uint32_t code);

/* Puts '?' in the place of each byte of such a character, and of what is no UTF-8. */
void tccl_utf8_clean(char *text);
