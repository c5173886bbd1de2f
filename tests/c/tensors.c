// Tensors, strings, buffers and statuses.
#include "check.h"

static int freed = 0;

static void CountFree(void* data, size_t len, void* arg) {
  free(data);
  ++*(int*)arg;
  (void)len;
}

static void Numbers(void) {
  const int64_t dims[] = {2, 3};
  float* data = malloc(6 * sizeof(float));
  for (int i = 0; i < 6; ++i) data[i] = (float)i;
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 2, data, 6 * sizeof(float),
                              CountFree, &freed);
  CHECK(t != NULL);
  CHECK(TF_TensorType(t) == TF_FLOAT && TF_NumDims(t) == 2);
  CHECK(TF_Dim(t, 0) == 2 && TF_Dim(t, 1) == 3);
  CHECK(TF_TensorElementCount(t) == 6 && TF_TensorByteSize(t) == 24);
  CHECK(((float*)TF_TensorData(t))[5] == 5.0f);
  TF_DeleteTensor(t);
  CHECK(freed == 1);
  // Too few bytes: no tensor, and the memory is given back.
  t = TF_NewTensor(TF_FLOAT, dims, 2, malloc(8), 8, CountFree, &freed);
  CHECK(t == NULL && freed == 2);
  // Nothing in it.
  const int64_t none[] = {0, 4};
  t = TF_AllocateTensor(TF_INT64, none, 2, 0);
  CHECK(t != NULL && TF_TensorElementCount(t) == 0);
  TF_DeleteTensor(t);
}

static void Sizes(void) {
  CHECK(TF_DataTypeSize(TF_FLOAT) == 4 && TF_DataTypeSize(TF_COMPLEX128) == 16);
  CHECK(TF_DataTypeSize(TF_STRING) == 0 && TF_DataTypeSize(TF_BOOL) == 1);
  CHECK(TF_DataTypeSize(TF_RESOURCE) == 0 && TF_DataTypeSize(TF_VARIANT) == 0);
  CHECK(TF_DataTypeSize(TF_HALF) == 2 && TF_DataTypeSize(TF_INT4) == 1);
  CHECK(sizeof(TF_TString) == 24);
}

static void Bitcasts(void) {
  TF_Status* s = TF_NewStatus();
  const int64_t dims[] = {4};
  const float values[] = {1, 2, 3, 4};
  TF_Tensor* from = Floats(dims, 1, values);
  const int64_t to_dims[] = {2};
  TF_Tensor* to = TF_AllocateTensor(TF_INT8, NULL, 0, 1);
  TF_TensorBitcastFrom(from, TF_UINT64, to, to_dims, 1, s);
  CHECK_OK(s);
  CHECK(TF_TensorType(to) == TF_UINT64 && TF_Dim(to, 0) == 2);
  CHECK(memcmp(TF_TensorData(to), values, 16) == 0);
  TF_TensorBitcastFrom(from, TF_UINT64, to, dims, 1, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT);
  TF_DeleteTensor(from);
  TF_DeleteTensor(to);
  TF_DeleteStatus(s);
}

static void Strings(void) {
  TF_TString s;
  TF_StringInit(&s);
  CHECK(TF_StringGetType(&s) == TF_TSTR_SMALL && TF_StringGetSize(&s) == 0);
  CHECK(TF_StringGetCapacity(&s) == TF_TString_SmallCapacity);
  TF_StringCopy(&s, "0123456789012345678901", 22);
  CHECK(TF_StringGetType(&s) == TF_TSTR_SMALL && TF_StringGetSize(&s) == 22);
  TF_StringDealloc(&s);
  TF_StringInit(&s);
  TF_StringCopy(&s, "01234567890123456789012", 23);
  CHECK(TF_StringGetType(&s) == TF_TSTR_LARGE && TF_StringGetSize(&s) == 23);
  CHECK(TF_StringGetCapacity(&s) == 31);
  CHECK(strcmp(TF_StringGetDataPointer(&s), "01234567890123456789012") == 0);
  TF_StringDealloc(&s);
  CHECK(TF_StringGetSize(&s) == 0);
  const char* text = "somebody else's";
  TF_StringAssignView(&s, text, strlen(text));
  CHECK(TF_StringGetType(&s) == TF_TSTR_VIEW);
  CHECK(TF_StringGetDataPointer(&s) == text && TF_StringGetSize(&s) == 15);
  TF_StringDealloc(&s);
  // As bindings of other languages lay it out themselves.
  const unsigned char* raw = (const unsigned char*)&s;
  TF_StringInit(&s);
  TF_StringCopy(&s, "abc", 3);
  CHECK(raw[0] == 3 << 2 && raw[1] == 'a' && raw[3] == 'c');
}

static void Buffers(void) {
  TF_Buffer* b = TF_NewBufferFromString("proto", 5);
  CHECK(b->length == 5 && memcmp(b->data, "proto", 5) == 0);
  TF_Buffer copy = TF_GetBuffer(b);
  CHECK(copy.data == b->data && copy.length == 5);
  TF_DeleteBuffer(b);
  b = TF_NewBuffer();
  CHECK(b->data == NULL && b->length == 0);
  TF_DeleteBuffer(b);
  TF_DeleteBuffer(NULL);
}

static int payloads = 0;
static void SeePayload(const char* key, const char* value, void* capture) {
  CHECK(strcmp(key, "key") == 0 && strcmp(value, "value") == 0);
  ++*(int*)capture;
}

static void Statuses(void) {
  TF_Status* s = TF_NewStatus();
  CHECK(TF_GetCode(s) == TF_OK && strcmp(TF_Message(s), "") == 0);
  TF_SetStatus(s, TF_CANCELLED, "cancel");
  CHECK(TF_GetCode(s) == TF_CANCELLED && strcmp(TF_Message(s), "cancel") == 0);
  TF_SetPayload(s, "key", "value");
  TF_ForEachPayload(s, SeePayload, &payloads);
  CHECK(payloads == 1);
  TF_SetStatusFromIOError(s, 2, "file");
  CHECK_ERROR(s, TF_NOT_FOUND, "file; No such file or directory");
  TF_SetStatus(s, TF_OK, "");
  CHECK(TF_GetCode(s) == TF_OK);
  TF_DeleteStatus(s);
}

int main(void) {
  CHECK(strncmp(TF_Version(), "2.", 2) == 0);
  Numbers();
  Sizes();
  Bitcasts();
  Strings();
  Buffers();
  Statuses();
  printf("tensors: ok\n");
  return 0;
}
