// Timestamp: what the clock says.
#include <chrono>

#include "op/op.h"

namespace headrace {
namespace {

Status Now(KernelContext& c) {
  const std::chrono::duration<double> since_epoch =
      std::chrono::system_clock::now().time_since_epoch();
  *c.out<double>(0) = since_epoch.count();
  return OkStatus();
}

HR_OP(Timestamp)
    .Output("ts: double")
    .Doc("Seconds since the epoch, asked anew whenever it runs.")
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(Compute<Now>);

}  // namespace
}  // namespace headrace
