// Any bytes as what callers of the C interface hand over: the first one says
// where to, the rest are the buffer.
#include <cstring>
#include <string>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

namespace {

struct Call {
  const char* data;
  size_t size;
  TF_Status* status;
};

// The graph again, and what is in it.
void ReadGraph(TF_Graph* graph, TF_Status* status) {
  TF_Buffer* out = TF_NewBuffer();
  TF_GraphToGraphDef(graph, out, status);
  TF_GraphVersions(graph, out, status);
  size_t at = 0;
  while (TF_Operation* op = TF_GraphNextOperation(graph, &at)) {
    for (int i = 0; i < TF_OperationNumOutputs(op); ++i) {
      int64_t dims[4];
      TF_GraphGetTensorShape(graph, {op, i}, dims, 4, status);
    }
    TF_OperationToNodeDef(op, out, status);
  }
  TF_DeleteBuffer(out);
}

void ImportGraph(const Call& c) {
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* bytes = TF_NewBufferFromString(c.data, c.size);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(options, "p");
  TF_ImportGraphDefOptionsAddReturnOutput(options, "x", 0);
  TF_ImportGraphDefResults* results =
      TF_GraphImportGraphDefWithResults(graph, bytes, options, c.status);
  if (results) TF_DeleteImportGraphDefResults(results);
  TF_ImportGraphDefOptionsSetPrefix(options, "");
  TF_GraphImportGraphDef(graph, bytes, options, c.status);
  ReadGraph(graph, c.status);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  TF_DeleteGraph(graph);
}

void ImportFunction(const Call& c) {
  TF_Function* f = TF_FunctionImportFunctionDef(c.data, c.size, c.status);
  if (f == nullptr) return;
  TF_Graph* graph = TF_NewGraph();
  TF_GraphCopyFunction(graph, f, nullptr, c.status);
  TF_Buffer* out = TF_NewBuffer();
  TF_FunctionToFunctionDef(f, out, c.status);
  TF_FunctionSetAttrValueProto(f, "a", c.data, c.size, c.status);
  ReadGraph(graph, c.status);
  TF_DeleteBuffer(out);
  TF_DeleteFunction(f);
  TF_DeleteGraph(graph);
}

void ContextFunction(const Call& c) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* context = TFE_NewContext(options, c.status);
  TFE_ContextAddFunctionDef(context, c.data, c.size, c.status);
  TFE_DeleteContext(context);
  TFE_DeleteContextOptions(options);
}

void SetAttrs(const Call& c) {
  TF_Graph* graph = TF_NewGraph();
  for (const char* name : {"value", "dtype", "shape", "_other"}) {
    TF_OperationDescription* d = TF_NewOperation(graph, "Const", name);
    TF_SetAttrValueProto(d, name, c.data, c.size, c.status);
    TF_SetAttrTensorShapeProto(d, "_shape", c.data, c.size, c.status);
    TF_FinishOperation(d, c.status);
  }
  ReadGraph(graph, c.status);
  TF_DeleteGraph(graph);
}

void ReadTensor(const Call& c) {
  TF_Buffer* bytes = TF_NewBufferFromString(c.data, c.size);
  TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, nullptr, 0, 4);
  TF_TensorFromProto(bytes, t, c.status);
  TFE_TensorHandle* handle = TFE_NewTensorHandle(t, c.status);
  if (handle) TFE_DeleteTensorHandle(handle);
  TF_DeleteTensor(t);
  TF_DeleteBuffer(bytes);
  // The memory of a caller's as a handle of a resource.
  t = TF_NewTensor(
      TF_RESOURCE, nullptr, 0, const_cast<char*>(c.data), c.size,
      [](void*, size_t, void*) {}, nullptr);
  TF_DeleteTensor(t);
}

void Configure(const Call& c) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, c.data, c.size, c.status);
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* noop =
      TF_FinishOperation(TF_NewOperation(graph, "NoOp", "n"), c.status);
  if (TF_Session* session = TF_NewSession(graph, options, c.status)) {
    TF_Buffer* run = TF_NewBufferFromString(c.data, c.size);
    TF_Buffer* told = TF_NewBuffer();
    TF_SessionRun(session, run, nullptr, nullptr, 0, nullptr, nullptr, 0, &noop,
                  1, told, c.status);
    TF_DeleteBuffer(told);
    TF_DeleteBuffer(run);
    TF_DeleteSession(session, c.status);
  }
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TFE_ContextOptions* eager = TFE_NewContextOptions();
  TFE_ContextOptionsSetConfig(eager, c.data, c.size, c.status);
  TFE_DeleteContextOptions(eager);
}

void ExtendOldSession(const Call& c) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  if (auto* session = TF_NewDeprecatedSession(options, c.status)) {
    TF_ExtendGraph(session, c.data, c.size, c.status);
    TF_DeleteDeprecatedSession(session, c.status);
  }
  TF_DeleteSessionOptions(options);
}

void DescribeOps(const Call& c) {
  TF_Buffer* bytes = TF_NewBufferFromString(c.data, c.size);
  if (TF_ApiDefMap* map = TF_NewApiDefMap(bytes, c.status)) {
    TF_ApiDefMapPut(map, c.data, c.size, c.status);
    TF_DeleteApiDefMap(map);
  }
  TF_DeleteBuffer(bytes);
  TF_Buffer* all = TF_GetAllOpList();
  static TF_ApiDefMap* const known = TF_NewApiDefMap(all, c.status);
  TF_ApiDefMapPut(known, c.data, c.size, c.status);
  TF_DeleteBuffer(all);
}

// Texts of definitions, which are never registered for good: every name here is
// one that cannot be.
void DefineOp(const Call& c) {
  const std::string text(c.data, c.size);
  TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder("not_camel_case");
  TF_OpDefinitionBuilderAddAttr(b, text.c_str());
  TF_OpDefinitionBuilderAddInput(b, text.c_str());
  TF_OpDefinitionBuilderAddOutput(b, text.c_str());
  TF_RegisterOpDefinition(b, c.status);
  // Of an op that has its kernel.
  TF_RegisterKernelBuilderWithKernelDef(
      text.c_str(), "fuzzed",
      TF_NewKernelBuilder(
          "NoOp", "CPU", nullptr, [](void*, TF_OpKernelContext*) {}, nullptr),
      c.status);
}

constexpr void (*kCalls[])(const Call&) = {
    ImportGraph, ImportFunction,   ContextFunction, SetAttrs, ReadTensor,
    Configure,   ExtendOldSession, DescribeOps,     DefineOp,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  if (size == 0) return 0;
  TF_Status* status = TF_NewStatus();
  constexpr size_t kCount = sizeof(kCalls) / sizeof(kCalls[0]);
  kCalls[static_cast<unsigned char>(data[0]) % kCount](
      {data + 1, size - 1, status});
  TF_DeleteStatus(status);
  return 0;
}
