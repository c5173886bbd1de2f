// Whether a call succeeded, and if not, why.
#ifndef TENSORFLOW_C_TF_STATUS_H_
#define TENSORFLOW_C_TF_STATUS_H_

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

// The numbers are those of gRPC and of every TensorFlow language.
typedef enum TF_Code TF_CAPI_ANY_INT {
  TF_OK = 0,
  TF_CANCELLED = 1,
  TF_UNKNOWN = 2,
  TF_INVALID_ARGUMENT = 3,
  TF_DEADLINE_EXCEEDED = 4,
  TF_NOT_FOUND = 5,
  TF_ALREADY_EXISTS = 6,
  TF_PERMISSION_DENIED = 7,
  TF_RESOURCE_EXHAUSTED = 8,
  TF_FAILED_PRECONDITION = 9,
  TF_ABORTED = 10,
  TF_OUT_OF_RANGE = 11,
  TF_UNIMPLEMENTED = 12,
  TF_INTERNAL = 13,
  TF_UNAVAILABLE = 14,
  TF_DATA_LOSS = 15,
  TF_UNAUTHENTICATED = 16,
} TF_Code;

// A status begins as TF_OK with an empty message.
typedef struct TF_Status TF_Status;

TF_CAPI_EXPORT TF_Status* TF_NewStatus(void);
TF_CAPI_EXPORT void TF_DeleteStatus(TF_Status*);

// Replaces code and message, and forgets payloads. A null message is empty.
TF_CAPI_EXPORT void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg);

// Notes about an error by key; none are kept while the code is TF_OK.
typedef void (*TF_PayloadVisitor)(const char* key, const char* value,
                                  void* capture);

TF_CAPI_EXPORT void TF_SetPayload(TF_Status* s, const char* key,
                                  const char* value);
TF_CAPI_EXPORT void TF_ForEachPayload(const TF_Status* s,
                                      TF_PayloadVisitor visitor, void* capture);

// The code that fits an errno, with "context; what the system says" as message.
TF_CAPI_EXPORT void TF_SetStatusFromIOError(TF_Status* s, int error_code,
                                            const char* context);

// The message lives until the status changes or goes.
TF_CAPI_EXPORT TF_Code TF_GetCode(const TF_Status* s);
TF_CAPI_EXPORT const char* TF_Message(const TF_Status* s);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_STATUS_H_
