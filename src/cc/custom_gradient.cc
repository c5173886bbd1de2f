#include "headrace/custom_gradient.h"

#include <atomic>
#include <map>
#include <string>

#include "autodiff/named_gradient.h"
#include "base/mutex.h"
#include "cc/compose.h"
#include "cc/errors.h"
#include "eager/tape.h"
#include "op/registry.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;

struct CustomGradient::State : std::enable_shared_from_this<State> {
  Forward forward;
  Backward backward;
  Mutex mutex;
  // By numbers of results.
  std::map<int, std::string> names ABSL_GUARDED_BY(mutex);

  // Gradients of the inputs. `results` and `gradients` are one an output.
  StatusOr<std::vector<Value>> Gradients(absl::Span<const Value> inputs,
                                         absl::Span<const Value> results,
                                         absl::Span<const Value> gradients);
  // What nodes of graphs ask the gradient of a call with so many results by.
  std::string NameFor(int results);
  Status OfNode(GradientContext& g, int results);
};

namespace {

// Runs the function unseen by tapes, but for the variables that it reads.
std::vector<Value> Run(const CustomGradient::Forward& forward,
                       const std::vector<Tensor>& inputs) {
  const StopRecording quiet;
  Tape watcher(/*persistent=*/true, /*watch_variables=*/true);
  // Only this tape, which is there to see variables that are read: the tapes
  // around are told of the call as a whole.
  watcher.Start();
  std::vector<Tensor> results = forward(inputs);
  watcher.Stop();
  if (!watcher.watched_variables().empty()) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "a function with a custom gradient reads a trainable "
                    "variable, which would get no gradient: pass its value");
  }
  if (results.empty()) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "a function with a custom gradient has no result");
  }
  return internal::ValuesOf(results);
}

}  // namespace

StatusOr<std::vector<Value>> CustomGradient::State::Gradients(
    absl::Span<const Value> inputs, absl::Span<const Value> results,
    absl::Span<const Value> gradients) {
  std::vector<Value> found;
  HR_RETURN_IF_ERROR(internal::Caught("a custom gradient", [&] {
    const std::vector<Tensor> made =
        backward({internal::TensorsOf(inputs), internal::TensorsOf(results),
                  internal::TensorsOf(gradients)});
    for (const Tensor& t : made) {
      // A null tensor means that the input has no gradient.
      found.push_back(t ? Access::ValueOf(t) : Value());
    }
    return OkStatus();
  }));
  if (found.size() == inputs.size()) return found;
  return InvalidArgument("a custom gradient must give ", inputs.size(),
                         " gradients, one an input, but gave ", found.size());
}

// The node has the results as its first inputs, then those of the function.
Status CustomGradient::State::OfNode(GradientContext& g, int count) {
  std::vector<Value> inputs, results, gradients;
  for (int i = 0; i < count; ++i) {
    results.push_back(g.output(i));
    gradients.push_back(g.grad_or_zeros(i));
  }
  HR_RETURN_IF_ERROR(g.status());
  for (int i = count; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  HR_ASSIGN_OR_RETURN(const std::vector<Value> found,
                      Gradients(inputs, results, gradients));
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) g.set(count + static_cast<int>(i), found[i]);
  }
  return OkStatus();
}

std::string CustomGradient::State::NameFor(int results) {
  static std::atomic<int64_t> count{0};
  MutexLock lock(mutex);
  std::string& name = names[results];
  if (name.empty()) {
    // A name for each number of results, as the gradient function gets results
    // and inputs in one list and must know where the inputs begin.
    name = absl::StrCat("HeadraceCustomGradient-", count.fetch_add(1));
    Check(
        RegisterNamedGradient(name, [self = shared_from_this(), results](
                                        GradientContext& g, const CopiedFrom*) {
          return self->OfNode(g, results);
        }));
  }
  return name;
}

CustomGradient::CustomGradient(Forward forward, Backward backward)
    : state_(std::make_shared<State>()) {
  if (!forward || !backward) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "a custom gradient wants two functions");
  }
  state_->forward = std::move(forward);
  state_->backward = std::move(backward);
}

std::vector<Tensor> CustomGradient::operator()(
    const std::vector<Tensor>& inputs) const {
  const std::vector<Value> given = internal::ValuesOf(inputs);
  std::vector<Value> joined = Run(state_->forward, inputs);
  const size_t count = joined.size();
  joined.insert(joined.end(), given.begin(), given.end());
  // Values of their own, which tapes tell from the inputs; in a graph a node
  // that names the gradient and has all that it needs.
  AttrMap attrs;
  if (!CurrentEmitter()->is_eager()) {
    attrs.Set(kGradientAttr, state_->NameFor(static_cast<int>(count)));
  }
  ValueList made;
  {
    const StopRecording quiet;
    made = internal::CallOp("IdentityN", joined, attrs);
  }
  const std::vector<Value> results(made.begin(), made.begin() + count);
  if (HasRecorders()) {
    TellCustom("CustomGradient", given, results,
               [state = state_, given, results](
                   absl::Span<const headrace::Gradient> arrived,
                   std::vector<headrace::Gradient>* found) -> Status {
                 OpScope s;
                 std::vector<Value> gradients;
                 for (size_t i = 0; i < results.size(); ++i) {
                   // The user's function is promised a tensor for each output.
                   gradients.push_back(arrived[i] ? Densify(s, arrived[i])
                                                  : ZerosFor(s, results[i]));
                 }
                 HR_RETURN_IF_ERROR(s.status());
                 HR_ASSIGN_OR_RETURN(
                     const std::vector<Value> values,
                     state->Gradients(given, results, gradients));
                 for (const Value& v : values) found->push_back({v});
                 return OkStatus();
               });
  }
  return internal::TensorsOf(results);
}

}  // namespace headrace::tf
