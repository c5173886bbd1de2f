// For: a function of a counter and values, as often as a range has numbers.
#include "base/cancellation.h"
#include "function/callee.h"
#include "op/op.h"

namespace headrace {
namespace {

class ForKernel : public Kernel {
 public:
  explicit ForKernel(const ResolvedOp& op) : body_(op.attr<FuncRef>("body")) {}
  bool own_outputs() const override { return true; }

  Status Run(KernelContext& c) override {
    int64_t range[3];  // start, limit, delta
    for (int i = 0; i < 3; ++i) {
      if (c.input(i).rank() != 0) {
        return InvalidArgument(c.op().def().inputs[i].name,
                               " must be a scalar, but ", c.input(i).shape());
      }
      range[i] = c.input(i).scalar<int32_t>();
    }
    const auto [start, limit, delta] = range;
    // A range without a number is right only where start and limit meet.
    if (delta == 0 || (delta > 0 && start > limit) ||
        (delta < 0 && start < limit)) {
      return InvalidArgument("Invalid start/limit/delta: ", start, " ", limit,
                             " ", delta);
    }
    HR_ASSIGN_OR_RETURN(BoundFunction * body, body_.Get(c.services()));
    HR_RETURN_IF_ERROR(CheckBody(c, *body));
    HR_ASSIGN_OR_RETURN(auto run, body->Begin(c.services()));
    std::vector<Tensor> state, args;
    for (int i = 3; i < c.num_inputs(); ++i) state.push_back(c.input(i));
    for (int64_t i = start; delta > 0 ? i < limit : i > limit; i += delta) {
      HR_RETURN_IF_ERROR(c.CheckCancelled());
      args.clear();
      args.push_back(Tensor::Scalar(static_cast<int32_t>(i)));
      for (Tensor& t : state) args.push_back(std::move(t));
      state.clear();
      HR_RETURN_IF_ERROR(run->Run(absl::MakeSpan(args), &state));
      HR_RETURN_IF_ERROR(CheckState(c, state));
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      c.set_output(i, std::move(state[i]));
    }
    return OkStatus();
  }

 private:
  static Status CheckBody(const KernelContext& c, const BoundFunction& body) {
    const int n = c.num_outputs();
    if (body.num_inputs() == n + 1 && body.num_outputs() == n) {
      return OkStatus();
    }
    return InvalidArgument("For loop body takes ", n + 1, " arguments and ",
                           "returns ", n, " results, not ", body.num_inputs(),
                           " and ", body.num_outputs());
  }
  static Status CheckState(const KernelContext& c,
                           const std::vector<Tensor>& state) {
    for (int i = 0; i < c.num_outputs(); ++i) {
      if (state[i].dtype() == c.op().output_types()[i]) continue;
      return InvalidArgument(
          "For loop body returned a ", DTypeName(state[i].dtype()),
          " as result ", i, ", expected ", DTypeName(c.op().output_types()[i]));
    }
    return OkStatus();
  }

  Callee body_;
};

HR_OP(For)
    .Input("start: int32")
    .Input("limit: int32")
    .Input("delta: int32")
    .Input("input: T")
    .Output("output: T")
    .Attr("T: list(type) >= 0")
    .Attr("body: func")
    .Doc("A function of a counter and values, for each number of a range.")
    .Shape(UnknownShape)
    .Cpu(Bind<ForKernel>);

}  // namespace
}  // namespace headrace
