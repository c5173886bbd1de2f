#include "runtime/op_context.h"

#include "absl/container/fixed_array.h"
#include "absl/strings/str_cat.h"
#include "graph/import.h"
#include "op/registry.h"
#include "op/run_once.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

// Kernels and calls that a context keeps: beyond that all are made anew.
constexpr size_t kMostKept = 4096;

}  // namespace

Status AddFunctions(const tensorflow::FunctionDefLibrary& library,
                    Graph* graph) {
  for (const auto& f : library.function()) {
    const std::string& name = f.signature().name();
    if (FindOp(name)) {
      return InvalidArgument("Cannot add function '", name,
                             "' because an op with the same name already "
                             "exists.");
    }
  }
  // A graph of functions alone: they are told apart, and checked, as those of
  // any other.
  tensorflow::GraphDef def;
  def.mutable_versions()->set_producer(graph->versions().producer);
  *def.mutable_library() = library;
  return ImportGraphDef(def, {}, graph, nullptr);
}

OpContext::OpContext(ResourceManager* resources)
    : functions_(std::make_shared<Graph>()), caller_(functions_->library()) {
  services_.resources = resources;
  services_.functions = &caller_;
}

StatusOr<ResolvedOpPtr> OpContext::Resolve(const OpDef& def,
                                           absl::Span<const DType> inputs,
                                           const AttrMap& attrs) {
  if (!CallsFunctions(def)) return ResolveOp(def, inputs, attrs);
  // Calls are not shared by ResolveOp, as their kernels hold functions.
  std::string key = def.name;
  for (DType d : inputs) absl::StrAppend(&key, ",", DTypeName(d));
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&key, ";", name, "=", AttrToString(value));
  }
  {
    MutexLock lock(mutex_);
    auto it = calls_.find(key);
    if (it != calls_.end()) return it->second;
  }
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op, ResolveOp(def, inputs, attrs));
  MutexLock lock(mutex_);
  if (calls_.size() >= kMostKept) calls_.clear();
  return calls_.emplace(std::move(key), std::move(op)).first->second;
}

StatusOr<std::shared_ptr<Kernel>> OpContext::KernelOf(const ResolvedOpPtr& op) {
  {
    MutexLock lock(mutex_);
    auto it = kernels_.find(op.get());
    if (it != kernels_.end()) return it->second.second;
  }
  HR_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> kernel, BindKernel(*op));
  MutexLock lock(mutex_);
  if (kernels_.size() >= kMostKept) kernels_.clear();
  return kernels_.emplace(op.get(), std::pair(op, std::move(kernel)))
      .first->second.second;
}

Status OpContext::Run(const ResolvedOpPtr& op, absl::Span<const Tensor> inputs,
                      std::vector<Tensor>* outputs) {
  absl::FixedArray<Tensor*, 8> in(inputs.size()), out(op->num_outputs());
  outputs->resize(op->num_outputs());
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i] = const_cast<Tensor*>(&inputs[i]);
  }
  for (size_t i = 0; i < outputs->size(); ++i) out[i] = &(*outputs)[i];
  // State and functions are the context's; all other kernels are everybody's.
  std::shared_ptr<Kernel> own;
  Kernel* kernel;
  if (op->def().is_stateful || CallsFunctions(op->def())) {
    HR_ASSIGN_OR_RETURN(own, KernelOf(op));
    kernel = own.get();
  } else {
    HR_ASSIGN_OR_RETURN(kernel, op->EagerKernel());
  }
  // The caller keeps its inputs: a second owner tells kernels that they may not
  // change a variant's value in place.
  const std::vector<Tensor> pinned(inputs.begin(), inputs.end());
  return RunOnce(*op, *kernel, absl::MakeConstSpan(in),
                 absl::MakeConstSpan(out), services_);
}

Status OpContext::Call(const std::string& name, absl::Span<Tensor> inputs,
                       std::vector<Tensor>* outputs) {
  HR_ASSIGN_OR_RETURN(const FunctionPtr function,
                      headrace::FindFunction(library(), name));
  const std::vector<DType> types = function->arg_types();
  if (types.size() != inputs.size()) {
    return InvalidArgument("Function ", name, " takes ", types.size(),
                           " inputs, and is given ", inputs.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (inputs[i].dtype() != types[i]) {
      return InvalidArgument("Function ", name, ": input ", i, " is of ",
                             DTypeName(inputs[i].dtype()), ", not ",
                             DTypeName(types[i]));
    }
  }
  HR_ASSIGN_OR_RETURN(const std::shared_ptr<BoundFunction> bound,
                      caller_.Bind(FuncRef{name, nullptr}));
  return bound->Call(services_, inputs, outputs);
}

Status OpContext::RemoveFunction(const std::string& name) {
  if (!functions_->library()->Find(name)) {
    return InvalidArgument("Tried to remove non-existent function '", name,
                           "'.");
  }
  functions_->library()->Remove(name);
  ClearCaches();  // kernels that call it would keep it
  return OkStatus();
}

void OpContext::ClearCaches() {
  MutexLock lock(mutex_);
  calls_.clear();
  kernels_.clear();
}

}  // namespace headrace
