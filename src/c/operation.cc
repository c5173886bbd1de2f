// What an operation is asked: its names, inputs, outputs and neighbours.
#include <algorithm>

#include "c/buffer.h"
#include "c/graph.h"
#include "c/status.h"
#include "graph/export.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace headrace::capi {
namespace {

// How many tensors an argument stands for; `args` are inputs or outputs.
StatusOr<int> ListLength(const TF_Operation* oper, const char* name,
                         bool is_output) {
  HR_RETURN_IF_ERROR(NotNull(oper, "an operation"));
  HR_RETURN_IF_ERROR(NotNull(name, "arg_name"));
  const ResolvedOp& op = oper->node->op();
  const auto& args = is_output ? op.def().outputs : op.def().inputs;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name != name) continue;
    const int at = static_cast<int>(i);
    return (is_output ? op.output_range(at) : op.input_range(at)).size();
  }
  return InvalidArgument(is_output ? "Output" : "Input", " arg '", name,
                         "' not found");
}

int Length(TF_Operation* oper, const char* name, bool is_output,
           TF_Status* status) {
  int length = -1;
  Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(length, ListLength(oper, name, is_output));
    return OkStatus();
  });
  return length;
}

// Copies as far as there is room, and says how many there are.
template <typename T>
int Fill(const std::vector<T>& from, T* to, int room) {
  const int count = static_cast<int>(from.size());
  if (to && room > 0) std::copy_n(from.begin(), std::min(count, room), to);
  return count;
}

std::vector<TF_Input> ConsumersOf(TF_Output out) {
  std::vector<TF_Input> found;
  if (out.oper == nullptr) return found;
  TF_Graph* g = out.oper->graph;
  MutexLock lock(g->mutex);
  for (const TF_Input& in : g->UsersOf(out.oper->node).readers) {
    if (in.oper->node->input(in.index).index == out.index) found.push_back(in);
  }
  return found;
}

std::vector<TF_Operation*> ControlsOf(TF_Operation* oper, bool outputs) {
  std::vector<TF_Operation*> found;
  if (oper == nullptr) return found;
  MutexLock lock(oper->graph->mutex);
  if (outputs) return oper->graph->UsersOf(oper->node).waiting;
  for (Node* n : oper->node->control_inputs()) {
    found.push_back(oper->graph->OperationOf(n));
  }
  return found;
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

const char* TF_OperationName(TF_Operation* oper) {
  return oper ? oper->node->name().c_str() : "";
}

const char* TF_OperationOpType(TF_Operation* oper) {
  return oper ? oper->node->def().name.c_str() : "";
}

const char* TF_OperationDevice(TF_Operation* oper) {
  return oper ? oper->node->device().c_str() : "";
}

int TF_OperationNumOutputs(TF_Operation* oper) {
  return oper ? oper->node->num_outputs() : 0;
}

TF_DataType TF_OperationOutputType(TF_Output oper_out) {
  if (oper_out.index < 0 ||
      oper_out.index >= TF_OperationNumOutputs(oper_out.oper)) {
    return static_cast<TF_DataType>(0);
  }
  return static_cast<TF_DataType>(
      oper_out.oper->node->output_type(oper_out.index));
}

int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name,
                                 TF_Status* status) {
  return capi::Length(oper, arg_name, /*is_output=*/true, status);
}

int TF_OperationNumInputs(TF_Operation* oper) {
  return oper ? oper->node->num_inputs() : 0;
}

TF_DataType TF_OperationInputType(TF_Input oper_in) {
  if (oper_in.index < 0 ||
      oper_in.index >= TF_OperationNumInputs(oper_in.oper)) {
    return static_cast<TF_DataType>(0);
  }
  return static_cast<TF_DataType>(
      oper_in.oper->node->op().input_types()[oper_in.index]);
}

int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name,
                                TF_Status* status) {
  return capi::Length(oper, arg_name, /*is_output=*/false, status);
}

TF_Output TF_OperationInput(TF_Input oper_in) {
  if (oper_in.index < 0 ||
      oper_in.index >= TF_OperationNumInputs(oper_in.oper)) {
    return {nullptr, -1};
  }
  return capi::OrElse<TF_Output>({nullptr, -1}, [&] {
    headrace::MutexLock lock(oper_in.oper->graph->mutex);
    return oper_in.oper->graph->OutputOf(
        oper_in.oper->node->input(oper_in.index));
  });
}

void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs,
                           int max_inputs) {
  if (inputs == nullptr) return;
  const int count = std::min(max_inputs, TF_OperationNumInputs(oper));
  for (int i = 0; i < count; ++i) inputs[i] = TF_OperationInput({oper, i});
}

int TF_OperationOutputNumConsumers(TF_Output oper_out) {
  return TF_OperationOutputConsumers(oper_out, nullptr, 0);
}

int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers,
                                int max_consumers) {
  return capi::OrElse(0, [&] {
    return capi::Fill(capi::ConsumersOf(oper_out), consumers, max_consumers);
  });
}

int TF_OperationNumControlInputs(TF_Operation* oper) {
  return TF_OperationGetControlInputs(oper, nullptr, 0);
}

int TF_OperationGetControlInputs(TF_Operation* oper,
                                 TF_Operation** control_inputs,
                                 int max_control_inputs) {
  return capi::OrElse(0, [&] {
    return capi::Fill(capi::ControlsOf(oper, /*outputs=*/false), control_inputs,
                      max_control_inputs);
  });
}

int TF_OperationNumControlOutputs(TF_Operation* oper) {
  return TF_OperationGetControlOutputs(oper, nullptr, 0);
}

int TF_OperationGetControlOutputs(TF_Operation* oper,
                                  TF_Operation** control_outputs,
                                  int max_control_outputs) {
  return capi::OrElse(0, [&] {
    return capi::Fill(capi::ControlsOf(oper, /*outputs=*/true), control_outputs,
                      max_control_outputs);
  });
}

void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def,
                           TF_Status* status) {
  capi::Into(status, [&]() -> headrace::Status {
    HR_RETURN_IF_ERROR(capi::NotNull(oper, "an operation"));
    tensorflow::NodeDef def;
    {
      headrace::MutexLock lock(oper->graph->mutex);
      HR_RETURN_IF_ERROR(headrace::ExportNode(*oper->node, {}, &def));
    }
    return capi::SetBuffer(output_node_def, def);
  });
}
