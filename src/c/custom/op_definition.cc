// Definitions of ops, until they are registered.
#include <map>

#include "base/fork_mutex.h"
#include "c/custom/kernel_registry.h"
#include "c/custom/op_library.h"
#include "c/custom/shape_inference.h"
#include "c/status.h"
#include "op/added_op.h"
#include "op/op_spec.h"
#include "op/shape_context.h"
#include "tensorflow/c/ops.h"

struct TF_OpDefinitionBuilder {
  headrace::OpDef def;
  headrace::capi::ShapeFunction shape = nullptr;
  headrace::Status mistake;
};

namespace headrace::capi {
namespace {

using Builder = TF_OpDefinitionBuilder;

struct ShapeFunctions {
  ProcessMutex mutex;
  std::map<std::string, ShapeFunction, std::less<>> by_op
      ABSL_GUARDED_BY(mutex);
};
ShapeFunctions& TheShapeFunctions() {
  static auto* functions = new ShapeFunctions;
  return *functions;
}

// The shape rule of every op that is defined here and brings one.
Status UsersShape(ShapeContext& c) {
  ShapeFunctions& functions = TheShapeFunctions();
  ShapeFunction f;
  {
    MutexLock lock(functions.mutex);
    f = functions.by_op.find(c.op().name())->second;
  }
  return RunShapeFunction(f, c);
}

// Adds the parsed spec to `to`, or keeps the mistake.
template <typename T>
void AddSpec(Builder* builder, const char* spec,
             StatusOr<T> (*parse)(StringView), std::vector<T>* to) {
  builder->mistake.Update(Guarded("the C interface", [&]() -> Status {
    HR_RETURN_IF_ERROR(NotNull(spec, "the text of an argument or attr"));
    StatusOr<T> parsed = parse(spec);
    if (!parsed.ok()) {
      return InvalidArgument("Op ", builder->def.name, ": '", spec,
                             "': ", parsed.status().message());
    }
    to->push_back(*std::move(parsed));
    return OkStatus();
  }));
}

Status RegisterOpDefinition(Builder* builder) {
  HR_RETURN_IF_ERROR(NotNull(builder, "builder"));
  const std::unique_ptr<Builder> freed(builder);
  HR_RETURN_IF_ERROR(builder->mistake);
  OpDef& def = builder->def;
  HR_RETURN_IF_ERROR(ResolveArgSpecs(&def));
  HR_RETURN_IF_ERROR(CheckUsersOp(&def));
  def.cpu_kernel = BindUsersKernel;
  if (builder->shape == nullptr) {
    def.shape_fn = UnknownShape;
    HR_ASSIGN_OR_RETURN(const OpDef* op, AddOpNow(std::move(def)));
    NoteRegistered(op);
    return OkStatus();
  }
  def.shape_fn = UsersShape;
  // Who finds the op finds its shape function: both are there when the lock is
  // let go.
  ShapeFunctions& functions = TheShapeFunctions();
  MutexLock lock(functions.mutex);
  HR_ASSIGN_OR_RETURN(const OpDef* op, AddOpNow(std::move(def)));
  functions.by_op[op->name] = builder->shape;
  NoteRegistered(op);
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name) {
  return capi::OrElse<TF_OpDefinitionBuilder*>(nullptr, [&] {
    auto builder = std::make_unique<TF_OpDefinitionBuilder>();
    builder->mistake = capi::NotNull(op_name, "op_name");
    if (op_name != nullptr) builder->def.name = op_name;
    return builder.release();
  });
}

void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder,
                             TF_Status* status) {
  capi::Into(status, [&] { return capi::RegisterOpDefinition(builder); });
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder) {
  delete builder;
}

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder,
                                   const char* attr_spec) {
  if (builder == nullptr) return;
  capi::AddSpec(builder, attr_spec, headrace::ParseAttrSpec,
                &builder->def.attrs);
}

void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder,
                                    const char* input_spec) {
  if (builder == nullptr) return;
  capi::AddSpec(builder, input_spec, headrace::ParseArgSpec,
                &builder->def.inputs);
}

void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder,
                                     const char* output_spec) {
  if (builder == nullptr) return;
  capi::AddSpec(builder, output_spec, headrace::ParseArgSpec,
                &builder->def.outputs);
}

void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder,
                                            bool is_commutative) {
  if (builder) builder->def.is_commutative = is_commutative;
}

void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder,
                                          bool is_aggregate) {
  if (builder) builder->def.is_aggregate = is_aggregate;
}

void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder,
                                         bool is_stateful) {
  if (builder) builder->def.is_stateful = is_stateful;
}

void TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool allows_uninitialized_input) {
  if (builder) builder->def.allows_uninitialized = allows_uninitialized_input;
}

void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder,
                                      int version, const char* explanation) {
  if (builder == nullptr) return;
  builder->mistake.Update(headrace::Guarded("the C interface", [&] {
    if (version < 1) {
      return headrace::InvalidArgument("Op ", builder->def.name,
                                       " is deprecated at version ", version);
    }
    builder->def.deprecation = {version, explanation ? explanation : ""};
    return headrace::OkStatus();
  }));
}

void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*shape_inference_func)(TF_ShapeInferenceContext* ctx,
                                 TF_Status* status)) {
  if (builder) builder->shape = shape_inference_func;
}
