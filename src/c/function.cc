#include "c/function.h"

#include "c/buffer.h"
#include "c/graph.h"
#include "c/status.h"
#include "graph/export.h"
#include "runtime/op_context.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::capi {

Status AddToLibrary(const TF_Function& f, const TF_Function* gradient,
                    Graph* graph) {
  tensorflow::FunctionDefLibrary library;
  *library.add_function() = f.def;
  if (gradient) {
    const std::string& name = f.def.signature().name();
    const std::string& wanted = gradient->def.signature().name();
    const FunctionPtr known = graph->library()->Find(name);
    if (known && !known->gradient.empty() && known->gradient != wanted) {
      return InvalidArgument(
          "Cannot assign gradient function '", wanted, "' to '", name,
          "' because it already has gradient function '", known->gradient, "'");
    }
    *library.add_function() = gradient->def;
    auto* g = library.add_gradient();
    g->set_function_name(f.def.signature().name());
    g->set_gradient_func(gradient->def.signature().name());
  }
  return AddFunctions(library, graph);
}

namespace {

StatusOr<TF_Function*> ImportFunction(const void* proto, size_t length) {
  auto f = std::make_unique<TF_Function>();
  if (!ReadProto(proto, length, "FunctionDef", &f->def).ok()) {
    return InvalidArgument(
        "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
  }
  if (f->def.signature().name().empty()) {
    return InvalidArgument("A function has no name");
  }
  return f.release();
}

Status GetFunctions(TF_Graph* g, TF_Function** functions, int room,
                    int* count) {
  HR_RETURN_IF_ERROR(NotNull(g, "g"));
  if (room > 0) HR_RETURN_IF_ERROR(NotNull(functions, "funcs"));
  std::vector<std::unique_ptr<TF_Function>> made;
  {
    MutexLock lock(g->mutex);
    for (const std::string& name : g->graph->library()->Names()) {
      if (static_cast<int>(made.size()) >= room) break;
      FunctionPtr f = g->graph->library()->Find(name);
      if (!f) continue;
      made.push_back(std::make_unique<TF_Function>());
      HR_RETURN_IF_ERROR(ExportFunction(*f, &made.back()->def));
    }
  }
  *count = static_cast<int>(made.size());
  for (int i = 0; i < *count; ++i) functions[i] = made[i].release();
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::OkStatus;
using headrace::Status;

void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func,
                          const TF_Function* grad, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(g, "g"));
    if (func == nullptr) {
      return headrace::InvalidArgument(
          "'func' argument to TF_GraphCopyFunction cannot be null");
    }
    headrace::MutexLock lock(g->mutex);
    return capi::AddToLibrary(*func, grad, g->graph.get());
  });
}

int TF_GraphNumFunctions(TF_Graph* g) {
  return capi::OrElse(0, [&] {
    if (g == nullptr) return 0;
    headrace::MutexLock lock(g->mutex);
    return static_cast<int>(g->graph->library()->Names().size());
  });
}

int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func,
                         TF_Status* status) {
  int count = 0;
  capi::Into(status,
             [&] { return capi::GetFunctions(g, funcs, max_func, &count); });
  return count;
}

const char* TF_FunctionName(TF_Function* func) {
  return func ? func->def.signature().name().c_str() : "";
}

void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def,
                              TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(func, "func"));
    return capi::SetBuffer(output_func_def, func->def);
  });
}

TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len,
                                          TF_Status* status) {
  return capi::OrNull(status,
                      [&] { return capi::ImportFunction(proto, proto_len); });
}

void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name,
                                  const void* proto, size_t proto_len,
                                  TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(func, "func"));
    HR_RETURN_IF_ERROR(capi::NotNull(attr_name, "attr_name"));
    tensorflow::AttrValue value;
    if (!capi::ReadProto(proto, proto_len, "AttrValue", &value).ok()) {
      return headrace::InvalidArgument(
          "Unparseable AttrValue proto passed to "
          "TF_FunctionSetAttrValueProto");
    }
    (*func->def.mutable_attr())[attr_name] = std::move(value);
    return OkStatus();
  });
}

void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name,
                                  TF_Buffer* output_attr_value,
                                  TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(func, "func"));
    HR_RETURN_IF_ERROR(capi::NotNull(attr_name, "attr_name"));
    auto it = func->def.attr().find(attr_name);
    if (it == func->def.attr().end()) {
      return headrace::InvalidArgument(
          "Function '", func->def.signature().name(), "' has no attr named '",
          attr_name, "'.");
    }
    return capi::SetBuffer(output_attr_value, it->second);
  });
}

void TF_DeleteFunction(TF_Function* func) { delete func; }
