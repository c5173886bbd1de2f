// What the C programs of the tests share: checks that end the program, and
// short ways to make tensors and operations.
#ifndef HEADRACE_TESTS_C_CHECK_H_
#define HEADRACE_TESTS_C_CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

#define CHECK(what)                                                       \
  do {                                                                    \
    if (!(what)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #what); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

#define CHECK_OK(status)                                          \
  do {                                                            \
    if (TF_GetCode(status) != TF_OK) {                            \
      fprintf(stderr, "%s:%d: code %d: %s\n", __FILE__, __LINE__, \
              (int)TF_GetCode(status), TF_Message(status));       \
      exit(1);                                                    \
    }                                                             \
  } while (0)

// The code, and a part of the message.
#define CHECK_ERROR(status, code, part)                                  \
  do {                                                                   \
    if (TF_GetCode(status) != (code) ||                                  \
        strstr(TF_Message(status), part) == NULL) {                      \
      fprintf(stderr, "%s:%d: code %d: %s\n  wanted %d: %s\n", __FILE__, \
              __LINE__, (int)TF_GetCode(status), TF_Message(status),     \
              (int)(code), part);                                        \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

static inline TF_Tensor* Floats(const int64_t* dims, int num_dims,
                                const float* values) {
  size_t bytes = sizeof(float);
  for (int i = 0; i < num_dims; ++i) bytes *= (size_t)dims[i];
  TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, dims, num_dims, bytes);
  CHECK(t != NULL && TF_TensorByteSize(t) == bytes);
  if (bytes > 0) memcpy(TF_TensorData(t), values, bytes);
  return t;
}

static inline TF_Tensor* Int32(int32_t value) {
  TF_Tensor* t = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof value);
  *(int32_t*)TF_TensorData(t) = value;
  return t;
}

static inline TF_Operation* Placeholder(TF_Graph* g, const char* name,
                                        TF_DataType type, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "Placeholder", name);
  TF_SetAttrType(d, "dtype", type);
  return TF_FinishOperation(d, s);
}

static inline TF_Operation* Const(TF_Graph* g, const char* name, TF_Tensor* t,
                                  TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "Const", name);
  TF_SetAttrTensor(d, "value", t, s);
  CHECK_OK(s);
  TF_SetAttrType(d, "dtype", TF_TensorType(t));
  TF_Operation* op = TF_FinishOperation(d, s);
  TF_DeleteTensor(t);
  return op;
}

static inline TF_Operation* Binary(TF_Graph* g, const char* op,
                                   const char* name, TF_Output a, TF_Output b,
                                   TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, op, name);
  TF_AddInput(d, a);
  TF_AddInput(d, b);
  return TF_FinishOperation(d, s);
}

static inline TF_Output First(TF_Operation* op) {
  TF_Output out = {op, 0};
  return out;
}

// The one tensor that a session gives for an output, with one fed; the
// caller's.
static inline TF_Tensor* RunOne(TF_Session* session, TF_Output in,
                                TF_Tensor* value, TF_Output out, TF_Status* s) {
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &in, &value, in.oper ? 1 : 0, &out, &result, 1,
                NULL, 0, NULL, s);
  return result;
}

static inline TF_Session* Session(TF_Graph* g, TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  TF_DeleteSessionOptions(options);
  CHECK_OK(s);
  return session;
}

#endif  // HEADRACE_TESTS_C_CHECK_H_
