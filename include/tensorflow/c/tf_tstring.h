// Strings as they lie in tensors: 24 bytes each, in one of four forms that the
// two lowest bits of the first byte tell apart. The sizes in them are shifted
// left by two.
#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Up to 22 bytes lie in the struct; longer ones in memory of malloc, or, for an
// offset, so many bytes behind the struct; a view is memory of somebody else's.
typedef enum TF_TString_Type TF_CAPI_ANY_INT {
  TF_TSTR_SMALL = 0x00,
  TF_TSTR_LARGE = 0x01,
  TF_TSTR_OFFSET = 0x02,
  TF_TSTR_VIEW = 0x03,
  TF_TSTR_TYPE_MASK = 0x03,
} TF_TString_Type;
enum { TF_TString_SmallCapacity = 22 };

// Who keeps the memory of a view, counted; null: nobody.
typedef struct TStringOwnerCApi {
  void (*ref)(struct TStringOwnerCApi* self);
  bool (*unref)(struct TStringOwnerCApi* self);
  void* obj;
} TStringOwnerCApi;
typedef struct TF_TString_Small {
  uint8_t size;
  char str[TF_TString_SmallCapacity + 1];
} TF_TString_Small;
typedef struct TF_TString_Large {
  size_t size;
  size_t cap;
  char* ptr;
} TF_TString_Large;
typedef struct TF_TString_Offset {
  uint32_t size;
  uint32_t offset;
  uint32_t count;
} TF_TString_Offset;
typedef struct TF_TString_View {
  size_t size;
  const char* ptr;
  TStringOwnerCApi* owner_ref;
} TF_TString_View;
typedef struct TF_TString_Raw {
  uint8_t raw[24];
} TF_TString_Raw;
typedef struct TF_TString {
  union {
    TF_TString_Small smll;
    TF_TString_Large large;
    TF_TString_Offset offset;
    TF_TString_View view;
    TF_TString_Raw raw;
  } u;
} TF_TString;

// Of memory that holds no string yet: empty.
TF_CAPI_EXPORT void TF_StringInit(TF_TString* t);

// A copy, or a view, of `size` bytes. What the string had is freed.
TF_CAPI_EXPORT void TF_StringCopy(TF_TString* dst, const char* src,
                                  size_t size);
TF_CAPI_EXPORT void TF_StringAssignView(TF_TString* dst, const char* src,
                                        size_t size);

// What it holds; data of copies end in a zero byte.
TF_CAPI_EXPORT const char* TF_StringGetDataPointer(const TF_TString* tstr);
TF_CAPI_EXPORT size_t TF_StringGetSize(const TF_TString* tstr);
TF_CAPI_EXPORT size_t TF_StringGetCapacity(const TF_TString* str);
TF_CAPI_EXPORT TF_TString_Type TF_StringGetType(const TF_TString* str);

// Frees what it has; it is empty then.
TF_CAPI_EXPORT void TF_StringDealloc(TF_TString* tstr);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_TSTRING_H_
