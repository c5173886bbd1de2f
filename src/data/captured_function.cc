#include "data/captured_function.h"

#include "op/reads_files.h"

namespace headrace {

StatusOr<CapturedFunctionPtr> CapturedFunction::Make(const KernelContext& c,
                                                     StringView attr,
                                                     StringView captures) {
  std::vector<Tensor> bound;
  const ArgRange range = c.op().input_range(captures);
  for (int i = range.begin; i < range.end; ++i) bound.push_back(c.input(i));
  return Make(c, c.op().attr<FuncRef>(attr), std::move(bound));
}

StatusOr<CapturedFunctionPtr> CapturedFunction::Make(
    const KernelContext& c, const FuncRef& ref, std::vector<Tensor> captures) {
  auto f = std::make_shared<CapturedFunction>();
  f->name_ = ref.name;
  static std::atomic<int64_t> number{0};
  f->owner_ = absl::StrCat(c.op().name(), ":", number++);
  HR_ASSIGN_OR_RETURN(f->function_, CallerOf(c.services()).Bind(ref));
  f->captures_ = std::move(captures);
  // More captured values than the function has inputs.
  if (f->num_args() < 0) {
    return InvalidArgument("function ", ref.name, " takes ",
                           f->function_->num_inputs(), " inputs, not ",
                           f->captures_.size(), " captured ones");
  }
  return CapturedFunctionPtr(std::move(f));
}

bool CapturedFunction::reads_files() const {
  const auto* f = dynamic_cast<const ReadsFiles*>(function_.get());
  return f != nullptr && f->reads_files();
}

StatusOr<FunctionRunPtr> CapturedFunction::Begin(const PullContext& c) const {
  auto run = std::make_unique<Run>();
  run->function_ = shared_from_this();
  run->services_ = c.services;
  // Each walk has its own copies of kernels with state, so that random numbers
  // begin anew with it.
  HR_ASSIGN_OR_RETURN(run->renewed_, function_->Renewed());
  BoundFunction& f = run->renewed_ ? *run->renewed_ : *function_;
  HR_ASSIGN_OR_RETURN(run->run_, f.Begin(run->services_));
  return run;
}

Status CapturedFunction::Blame(const Status& s, StringView iterator) const {
  const bool end = absl::IsOutOfRange(s);
  return Status(
      // OutOfRange means the end of the data to who reads: a function's own
      // must not end it.
      end ? absl::StatusCode::kInvalidArgument : s.code(),
      absl::StrCat("Error in user-defined function passed to ", owner_,
                   " transformation with iterator: ", iterator, ": ",
                   end ? "Function invocation produced OutOfRangeError: " : "",
                   s.message()));
}

Status CapturedFunction::Run::operator()(Element* args, Element* results) {
  const CapturedFunction& f = *function_;
  if (static_cast<int>(args->size()) != f.num_args()) {
    return InvalidArgument("function ", f.name_, " takes ", f.num_args(),
                           " arguments, not ", args->size());
  }
  // Captured values come behind the arguments, as upstream's functions take
  // them.
  for (const Tensor& t : f.captures_) args->push_back(t);
  return run_->Run(absl::MakeSpan(*args), results);
}

StatusOr<bool> PredicateResult(const Element& results) {
  if (results.size() != 1 || results[0].dtype() != DType::kBool ||
      results[0].num_elements() != 1) {
    return InvalidArgument(
        "`predicate` must returns a scalar bool tensor, but returned ",
        results.empty() ? std::string("nothing") : results[0].Describe());
  }
  return results[0].scalar<bool>();
}

StatusOr<DatasetPtr> DatasetResult(const Element& results) {
  if (results.size() != 1 || results[0].dtype() != DType::kVariant ||
      results[0].rank() != 0) {
    return InvalidArgument(
        "Function must return a single scalar of dtype DT_VARIANT.");
  }
  return DatasetOf(results[0]);
}

}  // namespace headrace
