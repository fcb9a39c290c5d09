/* log.h: the shim's own log. Silent unless TCCL_DEBUG is set: WARN (only what was left undone, and
 * why), INFO (also one line for each communicator), in the manner of NCCL_DEBUG. It goes to stderr,
 * or to TCCL_DEBUG_FILE (%h host name, %p process id), appended with one write a line. */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

enum shim_level { SHIM_LOG_WARN = 1, SHIM_LOG_INFO };

/* "host:pid:tid TCCL INFO …" */
void shim_log(enum shim_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
