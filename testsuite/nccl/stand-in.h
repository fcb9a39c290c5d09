/* stand-in.h: functions of a library that something stands in for. ANSWER: what they return, of
 * which 0 is success; said before this is included. */
#pragma once

/* A function that does what is said, and succeeds; one that answers so. */
#define DOES(name, arguments, ...)                                                                 \
    ANSWER name arguments                                                                          \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
        return 0;                                                                                  \
    }
#define SAYS(name, arguments, ...)                                                                 \
    ANSWER name arguments                                                                          \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
