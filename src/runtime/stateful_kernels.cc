#include "runtime/stateful_kernels.h"

#include <utility>

#include "op/registry.h"

namespace headrace {
namespace {

constinit thread_local StatefulKernels* of_this_thread
    [[gnu::tls_model("initial-exec")]] = nullptr;

}  // namespace

std::shared_ptr<Kernel> StatefulKernels::Of(const Node& n,
                                            const ResolvedOp& op) {
  if (!n.def().is_stateful || CallsFunctions(n.def()) ||
      n.id() >= graph_->num_nodes() || graph_->node(n.id()) != &n) {
    return nullptr;
  }
  MutexLock lock(mutex_);
  Bound& bound = bound_[n.id()];
  // A node that grew is a call of another op.
  if (bound.op != n.op_ptr()) {
    StatusOr<std::unique_ptr<Kernel>> made = BindKernel(op);
    bound = {n.op_ptr(), made.ok() ? *std::move(made) : nullptr};
  }
  return bound.kernel;
}

StatefulKernelsScope::StatefulKernelsScope(StatefulKernels* kernels)
    : outer_(std::exchange(of_this_thread, kernels)) {}

StatefulKernelsScope::~StatefulKernelsScope() { of_this_thread = outer_; }

StatefulKernels* StatefulKernelsScope::current() { return of_this_thread; }

}  // namespace headrace
