/* each-text.h: lists of short texts in one. */
#pragma once

#include "check.h"

/* The next text of what is left of a list, with | between them; NULL: there is none. It stays. */
static inline const char *next_text(const char **left)
{
    const char *text = *left;
    if (!text)
        return NULL;
    int length = (int)strcspn(text, "|");
    *left = text[length] ? text + length + 1 : NULL;
    return check_intern(check_printf("%.*s", length, text));
}

#define EACH_TEXT(text, list) for (const char *left_ = (list), *text; (text = next_text(&left_));)
