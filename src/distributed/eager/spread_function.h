// A function whose arguments lie on several tasks: it is written out into a
// graph, of which each task runs what uses its resources.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/master/master_session.h"
#include "graph/function.h"

namespace headrace::distributed {

// A tensor that a task keeps, or one that is here (no task).
struct KeptArgument {
  DeviceName task;
  int64_t op = 0;
  int output = 0;
  bool here() const { return !task.job; }
};

// Thread-safe.
class SpreadFunction {
 public:
  // `session`: of that name on each of the tasks. Unimplemented where one of
  // them runs TensorFlow, which does not know such sessions.
  static StatusOr<std::shared_ptr<SpreadFunction>> Make(
      const std::shared_ptr<Worker>& worker, const std::string& session,
      const Function& function, const FunctionLibrary* library,
      const std::vector<KeptArgument>& arguments);

  // `inputs`: the arguments that are here, in their order.
  Status Run(std::vector<Tensor> inputs, std::vector<Tensor>* outputs);

 private:
  std::shared_ptr<MasterSession> session_;
  std::vector<std::string> feeds_, fetches_, targets_;
};

}  // namespace headrace::distributed
