// Bytes that cross the C interface, most often a serialised proto.
#ifndef TENSORFLOW_C_TF_BUFFER_H_
#define TENSORFLOW_C_TF_BUFFER_H_

#include <stddef.h>

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

// A buffer below owns what it points to when it has a deallocator;
// TF_DeleteBuffer calls it.
typedef struct TF_Buffer {
  const void* data;
  size_t length;                                        // bytes
  void (*data_deallocator)(void* data, size_t length);  // or null
} TF_Buffer;

// A copy of the bytes; an empty buffer, for functions that fill it. Both are
// the caller's to delete.
TF_CAPI_EXPORT TF_Buffer* TF_NewBufferFromString(const void* proto,
                                                 size_t proto_len);
TF_CAPI_EXPORT TF_Buffer* TF_NewBuffer(void);

// TF_GetBuffer copies the struct, not the bytes. Deleting null does nothing.
TF_CAPI_EXPORT void TF_DeleteBuffer(TF_Buffer*);
TF_CAPI_EXPORT TF_Buffer TF_GetBuffer(TF_Buffer* buffer);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_BUFFER_H_
