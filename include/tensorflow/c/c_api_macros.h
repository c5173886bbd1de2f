// What the other headers mark their functions with.
#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

#include <stddef.h>

// Callers that look functions up at run time may have them weak.
#ifdef TF_CAPI_WEAK
#define TF_CAPI_EXPORT __attribute__((visibility("default"), weak))
#else
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#endif

#ifndef TF_Bool
#define TF_Bool unsigned char
#endif

// In C any int may stand for one of an enumeration. C++ has to be told, or it
// takes other numbers than those that are named for impossible.
#ifdef __cplusplus
#define TF_CAPI_ANY_INT : int
#else
#define TF_CAPI_ANY_INT
#endif

// The size of a struct up to the end of one member: what `struct_size` is set
// to.
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) \
  (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))
#endif

#endif  // TENSORFLOW_C_C_API_MACROS_H_
