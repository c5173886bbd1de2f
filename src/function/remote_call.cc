// RemoteCall: a function called on a device that an input names.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "function/callee.h"
#include "op/op.h"
#include "op/processor.h"

namespace headrace {
namespace {

// OK for a name of this host's processors, of which parts may be left out.
Status CheckHere(StringView target) {
  for (const StringView part : absl::StrSplit(target, '/', absl::SkipEmpty())) {
    const std::string lower = absl::AsciiStrToLower(part);
    const size_t colon = lower.find(':');
    const StringView kind = StringView(lower).substr(0, colon);
    const bool here = lower == "job:localhost" || lower == "replica:0" ||
                      lower == "task:0" || kind == "cpu" ||
                      absl::StartsWith(lower, "device:cpu");
    if (here) continue;
    const bool known = kind == "job" || kind == "replica" || kind == "task" ||
                       kind == "device" || kind == "gpu" || kind == "tpu";
    if (!known) {
      return InvalidArgument("Could not parse ", target,
                             " into a device specification.");
    }
    return Internal(
        "Currently don't support instantiating functions on device: ", target);
  }
  return OkStatus();
}

class RemoteCallKernel : public Kernel {
 public:
  explicit RemoteCallKernel(const ResolvedOp& op) : f_(op.attr<FuncRef>("f")) {}
  bool own_outputs() const override { return true; }

  Status Run(KernelContext& c) override {
    if (c.input(0).rank() != 0) {
      return InvalidArgument("target must be a scalar, but has shape ",
                             c.input(0).shape());
    }
    const std::string target = c.input(0).scalar<std::string>();
    HR_RETURN_IF_ERROR(CheckHere(target));
    HR_ASSIGN_OR_RETURN(BoundFunction * f, f_.Get(c.services()));
    if (f->num_inputs() != c.num_inputs() - 1) {
      return InvalidArgument("RemoteCall passes ", c.num_inputs() - 1,
                             " arguments to a function of ", f->num_inputs());
    }
    const ProcessorScope scope(
        ProcessorNamed(target).value_or(ThisProcessor()));
    return CallWith(c, f_, 1);
  }

 private:
  Callee f_;
};

HR_OP(RemoteCall)
    .Input("target: string")
    .Input("args: Tin")
    .Output("output: Tout")
    .Attr("Tin: list(type) >= 1")
    .Attr("Tout: list(type) >= 1")
    .Attr("f: func")
    .Doc("Calls a function on the device of that name.")
    .Stateful()
    .Shape(UnknownShape)
    .Cpu(Bind<RemoteCallKernel>);

}  // namespace
}  // namespace headrace
