// Describing eager ops, and TFE_Execute.
#include "absl/strings/ascii.h"
#include "base/timeline.h"
#include "c/devices.h"
#include "c/eager/op.h"
#include "c/status.h"
#include "op/processor.h"
#include "op/registry.h"

namespace headrace::capi {

Status CheckEagerDevice(const TFE_Context& context, const char* name) {
  if (name == nullptr || *name == '\0') return OkStatus();
  const std::string wanted = absl::AsciiStrToLower(name);
  for (int i = 0; i < context.config.processors; ++i) {
    const std::string full = absl::AsciiStrToLower(ProcessorName(i));
    // Parts of the name will do: "/device:CPU:0", "CPU:0", "/cpu:0".
    if (full.ends_with(wanted)) return OkStatus();
    if (wanted.ends_with(absl::StrCat("cpu:", i)) &&
        (wanted.size() <= 6 ||
         full.starts_with(wanted.substr(0, wanted.size() - 5)))) {
      return OkStatus();
    }
  }
  return InvalidArgument("Could not satisfy device specification '", name,
                         "'. All available devices [", ProcessorName(0), "].");
}

namespace {

Status AddTensors(TFE_Op* op, bool is_list, TFE_TensorHandle** inputs,
                  int count) {
  HR_RETURN_IF_ERROR(NotNull(op, "op"));
  HR_RETURN_IF_ERROR(CheckList(inputs, count, "inputs"));
  for (int i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(NotNull(inputs[i], "an input"));
  }
  for (int i = 0; i < count; ++i) op->tensors.push_back(inputs[i]->tensor);
  op->inputs.push_back({is_list, count});
  return OkStatus();
}

// As far as inputs and attributes say it.
StatusOr<int> LengthOf(TFE_Op* op, const char* name, bool is_output) {
  HR_RETURN_IF_ERROR(NotNull(op, "op"));
  HR_RETURN_IF_ERROR(NotNull(name, "the name of an argument"));
  const auto& args = is_output ? op->def->outputs : op->def->inputs;
  for (size_t i = 0; i < args.size(); ++i) {
    const ArgDef& arg = args[i];
    if (arg.name != name) continue;
    if (!arg.is_list()) return 1;
    if (const auto* n = op->attrs.Get<int64_t>(arg.number_attr)) {
      return static_cast<int>(*n);
    }
    if (const auto* l = op->attrs.Get<std::vector<DType>>(arg.type_list_attr)) {
      return static_cast<int>(l->size());
    }
    if (!is_output && i < op->inputs.size()) return op->inputs[i].count;
    HR_ASSIGN_OR_RETURN(ResolvedOpPtr resolved, ResolveEagerOp(op));
    const int at = static_cast<int>(i);
    return (is_output ? resolved->output_range(at) : resolved->input_range(at))
        .size();
  }
  return InvalidArgument(is_output ? "Output" : "Input", " '", name,
                         "' not found");
}

int LengthOrError(TFE_Op* op, const char* name, bool is_output,
                  TF_Status* status) {
  int length = -1;
  Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(length, LengthOf(op, name, is_output));
    return OkStatus();
  });
  return length;
}

void RecordRun(TFE_Context* context, const TFE_Op& op, int64_t begin) {
  const int64_t end = timeline::Now();
  MutexLock lock(context->mutex);
  tensorflow::StepStats& stats = context->recorded;
  if (stats.dev_stats_size() == 0) {
    stats.add_dev_stats()->set_device(ProcessorName(0));
  }
  auto* node = stats.mutable_dev_stats(0)->add_node_stats();
  node->set_node_name(op.name);
  node->set_timeline_label(op.name);
  node->set_all_start_micros(begin / 1000);
  node->set_all_start_nanos(begin);
  node->set_all_end_rel_micros((end - begin) / 1000);
  node->set_all_end_rel_nanos(end - begin);
}

Status Execute(TFE_Op* op, TFE_TensorHandle** results, int* count) {
  HR_RETURN_IF_ERROR(NotNull(op, "op"));
  HR_RETURN_IF_ERROR(NotNull(count, "num_retvals"));
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr resolved, ResolveEagerOp(op));
  if (*count < resolved->num_outputs()) {
    return InvalidArgument("Expecting ", resolved->num_outputs(),
                           " outputs, but *num_retvals is ", *count);
  }
  if (resolved->num_outputs() > 0) {
    HR_RETURN_IF_ERROR(NotNull(results, "retvals"));
  }
  const bool record = op->context->recording;
  const int64_t begin = record ? timeline::Now() : 0;
  std::vector<Tensor> outputs;
  Status ran = op->context->ops.Run(resolved, op->tensors, &outputs);
  if (record) RecordRun(op->context, *op, begin);
  if (!ran.ok()) {
    return Status(ran.code(),
                  absl::StrCat(ran.message(), " [Op:", op->name, "]"));
  }
  std::vector<std::unique_ptr<TFE_TensorHandle>> made;
  for (Tensor& t : outputs) {
    made.push_back(std::make_unique<TFE_TensorHandle>());
    made.back()->tensor = std::move(t);
  }
  for (size_t i = 0; i < made.size(); ++i) results[i] = made[i].release();
  *count = static_cast<int>(made.size());
  return OkStatus();
}

StatusOr<AttrKind> KindByName(TFE_Context* context, const char* op,
                              const char* attr) {
  HR_ASSIGN_OR_RETURN(TFE_Op * made, NewEagerOp(context, op));
  const std::unique_ptr<TFE_Op> owned(made);
  return KindOfAttr(*made->def, attr);
}

// The type of an attribute, TF_ATTR_STRING where there is an error.
template <typename F>
TF_AttrType TypeOfAttr(unsigned char* is_list, TF_Status* status, F&& kind) {
  TF_AttrType type = TF_ATTR_STRING;
  Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(AttrKind k, kind());
    type = AttrTypeOfKind(k, is_list);
    return OkStatus();
  });
  return type;
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::OkStatus;
using headrace::Status;

TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name,
                  TF_Status* status) {
  return capi::OrNull(
      status, [&] { return capi::NewEagerOp(ctx, op_or_function_name); });
}

void TFE_DeleteOp(TFE_Op* op) { delete op; }

const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status) {
  return capi::Into(status, [&] { return capi::NotNull(op, "op"); })
             ? op->name.c_str()
             : nullptr;
}

TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status) {
  return capi::Into(status, [&] { return capi::NotNull(op, "op"); })
             ? op->context
             : nullptr;
}

void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(op, "op"));
    HR_RETURN_IF_ERROR(capi::CheckEagerDevice(*op->context, device_name));
    op->device = device_name ? device_name : "";
    return OkStatus();
  });
}

const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status) {
  return capi::Into(status, [&] { return capi::NotNull(op, "op"); })
             ? op->device.c_str()
             : nullptr;
}

void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status) {
  capi::Into(status, [&] {
    return capi::AddTensors(op, /*is_list=*/false, &input, 1);
  });
}

void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs,
                        TF_Status* status) {
  capi::Into(status, [&] {
    return capi::AddTensors(op, /*is_list=*/true, inputs, num_inputs);
  });
}

int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status) {
  return capi::Into(status, [&] { return capi::NotNull(op, "op"); })
             ? static_cast<int>(op->tensors.size())
             : -1;
}

TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index,
                                     TF_Status* status) {
  return capi::OrNull(status, [&]() -> headrace::StatusOr<TFE_TensorHandle*> {
    HR_RETURN_IF_ERROR(capi::NotNull(op, "op"));
    if (index < 0 || index >= static_cast<int>(op->tensors.size())) {
      return headrace::InvalidArgument("input ", index, " of ",
                                       op->tensors.size(), " is asked for");
    }
    return new TFE_TensorHandle{op->tensors[index]};
  });
}

TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name,
                              unsigned char* is_list, TF_Status* status) {
  return capi::TypeOfAttr(is_list, status,
                          [&]() -> headrace::StatusOr<headrace::AttrKind> {
                            HR_RETURN_IF_ERROR(capi::NotNull(op, "op"));
                            return capi::KindOfAttr(*op->def, attr_name);
                          });
}

TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx,
                                  const char* op_or_function_name,
                                  const char* attr_name, unsigned char* is_list,
                                  TF_Status* status) {
  return capi::TypeOfAttr(is_list, status, [&] {
    return capi::KindByName(ctx, op_or_function_name, attr_name);
  });
}

int TFE_OpGetInputLength(TFE_Op* op, const char* input_name,
                         TF_Status* status) {
  return capi::LengthOrError(op, input_name, /*is_output=*/false, status);
}

int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name,
                          TF_Status* status) {
  return capi::LengthOrError(op, output_name, /*is_output=*/true, status);
}

void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals,
                 TF_Status* status) {
  capi::Into(status, [&] { return capi::Execute(op, retvals, num_retvals); });
}
