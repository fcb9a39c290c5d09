/* clearing.h: NCCL from 2.29.7 on has a table of 0.9 GB made and cleared before it reads a graph
 * file, of which it then uses some entries. What malloc has just got from the kernel reads as zero
 * already, and has no memory until it is written. So the one memset that follows the answer, in
 * this thread, by this library, gives the pages back to the kernel in place of writing them.
 *
 * For that the library's own pointer to memset (symbols.h) leads to the shim meanwhile. Nothing is
 * done, and NCCL clears its table as without us, where that pointer is not as the loader leaves it,
 * or is write-protected. Calls of other threads, and smaller ones, go on to memset. */
#ifndef SHIM_CLEARING_H
#define SHIM_CLEARING_H

#include <stdbool.h>
#include <stddef.h>

/* Can it be left out of the object that holds the address? */
bool shim_clearing_can(const void *caller);
/* The calling thread's next large memset, by the object that holds the caller. Until
 * shim_clearing_stop, or the call has come. */
void shim_clearing_leave_out(const void *caller);
/* It does not come any more. (Of a thread that waits for none: nothing.) */
void shim_clearing_stop(void);

/* Clears memory by giving its pages back to the kernel. False: it is not such memory (a file, or
 * locked), and the bytes may be anything. */
bool shim_clear_pages(void *at, size_t size);

#endif
