// Tensors: an element type, sizes and memory.
#ifndef TENSORFLOW_C_TF_TENSOR_H_
#define TENSORFLOW_C_TF_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Opaque. Elements lie densely, row by row.
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_AllocatorAttributes {
  size_t struct_size;
  TF_Bool on_host;
} TF_AllocatorAttributes;
#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE \
  TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)

// A tensor of memory that the caller has: `deallocator(data, len, arg)` runs
// when nobody needs it any more, perhaps at once and on any thread (a null one:
// never). Null, and the memory given back, where `len` is less than the
// elements take or a size is negative. Strings are TF_TStrings, which the
// deallocator sees to as well.
TF_CAPI_EXPORT TF_Tensor* TF_NewTensor(
    TF_DataType, const int64_t* dims, int num_dims, void* data, size_t len,
    void (*deallocator)(void* data, size_t len, void* arg),
    void* deallocator_arg);

// A tensor of `len` bytes of new memory, aligned so much; strings begin empty.
// Null as above, and where memory ends.
TF_CAPI_EXPORT TF_Tensor* TF_AllocateTensor(TF_DataType, const int64_t* dims,
                                            int num_dims, size_t len);
TF_CAPI_EXPORT size_t TF_TensorDefaultAlignment(void);
TF_CAPI_EXPORT bool TF_TensorIsAligned(const TF_Tensor*);

// The tensor itself where the caller alone has its memory, which then is the
// result's; else null, and nothing changes.
TF_CAPI_EXPORT TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor);

// Frees what the functions above and runs gave. Null is allowed.
TF_CAPI_EXPORT void TF_DeleteTensor(TF_Tensor*);

// What it is. TF_Dim gives -1 for a dimension that is not there.
TF_CAPI_EXPORT TF_DataType TF_TensorType(const TF_Tensor*);
TF_CAPI_EXPORT int TF_NumDims(const TF_Tensor*);
TF_CAPI_EXPORT int64_t TF_Dim(const TF_Tensor* tensor, int dim_index);
TF_CAPI_EXPORT size_t TF_TensorByteSize(const TF_Tensor*);
TF_CAPI_EXPORT void* TF_TensorData(const TF_Tensor*);
TF_CAPI_EXPORT int64_t TF_TensorElementCount(const TF_Tensor* tensor);

// Other sizes of the same count; a call that does not fit changes nothing.
TF_CAPI_EXPORT void TF_SetShape(TF_Tensor* tensor, const int64_t* dims,
                                int num_dims);

// Makes `to` the memory of `from` as another type and other sizes of as many
// bytes.
TF_CAPI_EXPORT void TF_TensorBitcastFrom(const TF_Tensor* from,
                                         TF_DataType type, TF_Tensor* to,
                                         const int64_t* new_dims,
                                         int num_new_dims, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_TENSOR_H_
