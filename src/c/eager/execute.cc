// Describing eager ops, and TFE_Execute.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/timeline.h"
#include "c/devices.h"
#include "c/eager/op.h"
#include "c/status.h"
#include "op/processor.h"
#include "op/registry.h"

namespace headrace::capi {

namespace {

Status CheckProcessor(const TFE_Context& context, const char* name) {
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

}  // namespace

StatusOr<EagerPlace> PlaceOnContext(TFE_Context& context, const char* name) {
  const bool none = name == nullptr || *name == '\0';
  if (const auto cluster = context.cluster()) {
    if (none) return cluster->Here();
    return cluster->PlaceOf(name);
  }
  if (none) return EagerPlace();
  HR_RETURN_IF_ERROR(CheckProcessor(context, name));
  const int index = ProcessorNamed(name).value_or(0);
  if (index == 0) return EagerPlace();
  const std::string full = ProcessorName(index);
  return EagerPlace{nullptr,
                    std::make_shared<EagerDevice>(EagerDevice{full, full})};
}

namespace {

// Of clusters, which may change, names alone are looked at yet.
Status CheckDeviceName(TFE_Context& context, const char* name) {
  if (!context.cluster()) return PlaceOnContext(context, name).status();
  DeviceName parsed;
  if (name == nullptr || DeviceName::Parse(name, &parsed)) return OkStatus();
  return InvalidArgument("Malformed device specification '", name, "'");
}

Status AddTensors(TFE_Op* op, bool is_list, TFE_TensorHandle** inputs,
                  int count) {
  HR_RETURN_IF_ERROR(NotNull(op, "op"));
  HR_RETURN_IF_ERROR(CheckList(inputs, count, "inputs"));
  for (int i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(NotNull(inputs[i], "an input"));
  }
  for (int i = 0; i < count; ++i) {
    op->tensors.push_back(inputs[i]->tensor);
    op->devices.push_back(inputs[i]->device);
  }
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

void RecordRun(TFE_Context* context, const TFE_Op& op,
               const std::string& device, int64_t begin) {
  const int64_t end = timeline::Now();
  MutexLock lock(context->mutex);
  auto& all = *context->recorded.mutable_dev_stats();
  auto stats = std::find_if(all.begin(), all.end(), [&](const auto& of) {
    return of.device() == device;
  });
  if (stats == all.end()) {
    all.Add()->set_device(device);
    stats = std::prev(all.end());
  }
  auto* node = stats->add_node_stats();
  node->set_node_name(op.name);
  node->set_timeline_label(op.name);
  node->set_all_start_micros(begin / 1000);
  node->set_all_start_nanos(begin);
  node->set_all_end_rel_micros((end - begin) / 1000);
  node->set_all_end_rel_nanos(end - begin);
}

// Where the op runs: where its resources are, else where it is to.
StatusOr<EagerPlace> PlaceOfOp(const TFE_Op& op) {
  HR_ASSIGN_OR_RETURN(EagerPlace place,
                      PlaceOnContext(*op.context, op.device.c_str()));
  if (!RemotePlace::Any()) return place;
  std::vector<const Tensor*> inputs;
  for (const Tensor& t : op.tensors) inputs.push_back(&t);
  auto remote = PlaceFor(inputs, place.remote);
  if (remote == place.remote) return place;
  if (!remote) return PlaceOnContext(*op.context, nullptr);
  const std::string& name = remote->device();
  return EagerPlace{remote,
                    std::make_shared<EagerDevice>(EagerDevice{name, name})};
}

Status RunAt(const EagerPlace& place, const TFE_Op& op,
             const ResolvedOpPtr& resolved, std::vector<Tensor>* outputs) {
  const auto cluster = op.context->cluster();
  if (!place.remote && !cluster) {
    return op.context->ops.Run(resolved, op.tensors, outputs);
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& t : op.tensors) inputs.push_back(&t);
  outputs->resize(resolved->num_outputs());
  if (cluster) {
    HR_ASSIGN_OR_RETURN(const bool ran, cluster->remote().calls()->Run(
                                            *resolved, place.remote, inputs,
                                            absl::MakeSpan(*outputs)));
    if (ran) return OkStatus();
  }
  if (!place.remote) {
    return op.context->ops.Run(resolved, op.tensors, outputs);
  }
  return place.remote->Run(*resolved, inputs, absl::MakeSpan(*outputs));
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
  HR_ASSIGN_OR_RETURN(const EagerPlace place, PlaceOfOp(*op));
  Status ran = RunAt(place, *op, resolved, &outputs);
  if (record) {
    RecordRun(op->context, *op,
              place.device ? place.device->name : ProcessorName(0), begin);
  }
  // The op's name behind errors is of Python's.
  HR_RETURN_IF_ERROR(ran);
  std::vector<std::unique_ptr<TFE_TensorHandle>> made;
  for (Tensor& t : outputs) {
    made.push_back(std::make_unique<TFE_TensorHandle>());
    made.back()->tensor = std::move(t);
    made.back()->device = place.device;
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
    HR_RETURN_IF_ERROR(capi::CheckDeviceName(*op->context, device_name));
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
    return new TFE_TensorHandle{op->tensors[index], op->devices[index]};
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
