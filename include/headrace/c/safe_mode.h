/* Safe mode: which ops of a stranger's graph or model may run, and what they
   may use. TensorFlow has none, so this is a header of our own beside
   tensorflow/c/c_api.h.

   While a thread is in a mode, what it runs is confined, and so is, for ever,
   what it makes or imports: graphs and functions that are loaded or imported
   then are refused the same things whoever runs them, in whatever thread.

     HR_SafeMode* mode = HR_NewSafeMode(NULL, 0, status);
     HR_EnterSafeMode(mode, status);
     TF_GraphImportGraphDef(graph, graph_def, options, status);
     HR_LeaveSafeMode(mode, status);
     TF_SessionRun(...);

   Statuses: TF_PERMISSION_DENIED for ops that are not permitted,
   TF_RESOURCE_EXHAUSTED and TF_DEADLINE_EXCEEDED for limits; they name node,
   op and what would permit it. */
#ifndef HEADRACE_C_SAFE_MODE_H_
#define HEADRACE_C_SAFE_MODE_H_

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HR_SafeMode HR_SafeMode;

/* A mode of a policy in text, `length` bytes: lines "allow: prints ReadFile",
   "deny: OP", "only: OP OP", "memory: 512 MiB", "time: 2.5" (seconds of a
   call), "nodes: 10000", "recursion: 50", "output: 16 MiB" (of one tensor);
   "none" lifts a limit, '#' begins a comment. What is not said, and NULL, is
   the default: nothing is allowed beyond tensors, 4 GiB, 60 seconds, 1,000,000
   nodes, 200 deep, 1 GiB. NULL and TF_INVALID_ARGUMENT, which names the line,
   for what is none. */
TF_CAPI_EXPORT extern HR_SafeMode* HR_NewSafeMode(const char* policy,
                                                  size_t length,
                                                  TF_Status* status);
/* What was made in the mode stays confined. Not while a thread is in it. */
TF_CAPI_EXPORT extern void HR_DeleteSafeMode(HR_SafeMode* mode);

/* The calling thread is in the mode, and in those that it was in, until it
   leaves it. */
TF_CAPI_EXPORT extern void HR_EnterSafeMode(HR_SafeMode* mode,
                                            TF_Status* status);
/* TF_FAILED_PRECONDITION where it is not the one that the thread entered last.
 */
TF_CAPI_EXPORT extern void HR_LeaveSafeMode(HR_SafeMode* mode,
                                            TF_Status* status);

/* Bytes that count against the mode's limit of memory now. */
TF_CAPI_EXPORT extern int64_t HR_SafeModeMemoryInUse(const HR_SafeMode* mode);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_C_SAFE_MODE_H_ */
