// Ops that run at once, with variables and functions of their own: what an
// eager context of the C interface is, and that of a remote client.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "graph/graph.h"
#include "op/kernel.h"
#include "op/resource.h"
#include "runtime/function_caller.h"
#include "tensor/tensor.h"

namespace tensorflow {
class FunctionDefLibrary;
}

namespace headrace {

// Adds functions, and which are gradients of which, to a graph's library.
// InvalidArgument where one has the name of an op, or of another function that
// is there.
Status AddFunctions(const tensorflow::FunctionDefLibrary& library,
                    Graph* graph);

// Thread-safe.
class OpContext {
 public:
  // `resources`, which outlive it: where named state is.
  explicit OpContext(ResourceManager* resources);

  // The same op again and again, with what its kernel keeps: state, and the
  // functions that it calls.
  StatusOr<ResolvedOpPtr> Resolve(const OpDef& def,
                                  absl::Span<const DType> inputs,
                                  const AttrMap& attrs);
  // Runs an op with this context's variables and functions.
  Status Run(const ResolvedOpPtr& op, absl::Span<const Tensor> inputs,
             std::vector<Tensor>* outputs);
  // Runs a function that was added; inputs are moved from. InvalidArgument for
  // inputs that it does not take, NotFound for one that is not there.
  Status Call(const std::string& function, absl::Span<Tensor> inputs,
              std::vector<Tensor>* outputs);
  Status AddFunctions(const tensorflow::FunctionDefLibrary& library) {
    MutexLock lock(adding_);
    return headrace::AddFunctions(library, functions_.get());
  }
  // InvalidArgument for a function that is not there.
  Status RemoveFunction(const std::string& name);
  FunctionPtr FindFunction(StringView name) const {
    return functions_->library()->Find(name);
  }
  void ClearCaches();

  // Functions are those of this graph, which has no nodes, and checks them.
  const std::shared_ptr<Graph>& functions() const { return functions_; }
  const FunctionLibrary* library() const { return functions_->library().get(); }

 private:
  StatusOr<std::shared_ptr<Kernel>> KernelOf(const ResolvedOpPtr& op);

  const std::shared_ptr<Graph> functions_;
  LibraryCaller caller_;
  RunServices services_;
  Mutex adding_;  // functions
  Mutex mutex_;
  std::map<std::string, ResolvedOpPtr> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<const ResolvedOp*, std::pair<ResolvedOpPtr, std::shared_ptr<Kernel>>>
      kernels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace
