#include "c/eager/op.h"

#include "absl/strings/str_join.h"
#include "base/host_name.h"
#include "c/attr_values.h"
#include "c/status.h"
#include "graph/builder.h"
#include "op/op_text.h"
#include "op/registry.h"

namespace headrace::capi {

StatusOr<TFE_Op*> NewEagerOp(TFE_Context* context, const char* name) {
  HR_RETURN_IF_ERROR(NotNull(context, "ctx"));
  HR_RETURN_IF_ERROR(NotNull(name, "op_or_function_name"));
  auto op = std::make_unique<TFE_Op>();
  op->context = context;
  op->name = name;
  op->def = FindOp(name);
  if (op->def) return op.release();
  op->function = context->ops.FindFunction(name);
  if (op->function) {
    HR_ASSIGN_OR_RETURN(ResolvedOpPtr call, CallOf(*op->function));
    op->def = &call->def();
    op->attrs = call->attrs();
    return op.release();
  }
  return NotFound("'", name,
                  "' is neither a type of a primitive operation nor a name of "
                  "a function registered in binary running on ",
                  HostName(),
                  ". Make sure the operation or function is registered in the "
                  "binary running in this process.");
}

StatusOr<AttrKind> KindOfAttr(const OpDef& def, const char* name) {
  HR_RETURN_IF_ERROR(NotNull(name, "the name of an attribute"));
  const AttrDef* attr = def.FindAttr(name);
  if (attr == nullptr) {
    return InvalidArgument("Attribute '", name,
                           "' does not exist for this operation");
  }
  return attr->kind;
}

TF_AttrType AttrTypeOfKind(AttrKind kind, unsigned char* is_list) {
  if (is_list) {
    *is_list = kind >= AttrKind::kIntList && kind <= AttrKind::kFuncList;
  }
  return TypeOfKind(kind);
}

namespace {

// Says how long lists are, where they were added as lists; callers may add
// their tensors one by one, too.
void SetListLengths(const TFE_Op& op, AttrMap* attrs) {
  size_t at = 0;
  for (size_t i = 0; i < op.inputs.size() && i < op.def->inputs.size(); ++i) {
    const ArgDef& arg = op.def->inputs[i];
    const TFE_Op::Input& given = op.inputs[i];
    if (given.is_list != arg.is_list()) return;
    if (!arg.number_attr.empty()) {
      attrs->Set(arg.number_attr, int64_t{given.count});
    } else if (!arg.type_list_attr.empty()) {
      std::vector<DType> types;
      for (int k = 0; k < given.count; ++k) {
        types.push_back(op.tensors[at + k].dtype());
      }
      attrs->Set(arg.type_list_attr, std::move(types));
    }
    at += given.count;
  }
}

Status CheckCounts(const TFE_Op& op) {
  const std::vector<ArgDef>& args = op.def->inputs;
  bool any_list = false;
  for (const ArgDef& arg : args) any_list = any_list || arg.is_list();
  if (any_list || op.tensors.size() == args.size()) return OkStatus();
  const auto type_of = [&](const ArgDef& arg) {
    const DType* said = op.attrs.Get<DType>(arg.type_attr);
    if (said == nullptr) {
      said = !arg.type_attr.empty() || op.tensors.empty() ? nullptr : &arg.type;
    }
    if (said) return DTypeName(*said);
    return op.tensors.empty() ? StringView(arg.type_attr)
                              : DTypeName(op.tensors[0].dtype());
  };
  const std::string types =
      absl::StrJoin(args, ", ", [&](std::string* out, const ArgDef& arg) {
        absl::StrAppend(out, type_of(arg));
      });
  return InvalidArgument("NodeDef expected inputs '", types, "' do not match ",
                         op.tensors.size(), " inputs specified; ",
                         OpDefSummary(*op.def), "; NodeDef: {{node ", op.name,
                         "}}");
}

// In the words that other ops have for it, as a call's own op has the types of
// all arguments in one attribute.
Status CheckArguments(const Function& f, const std::vector<DType>& types) {
  const std::vector<DType> wanted = f.arg_types();
  if (types.size() != wanted.size()) {
    return InvalidArgument("function ", f.name, " takes ", wanted.size(),
                           " arguments, and is given ", types.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == wanted[i]) continue;
    return InvalidArgument("cannot compute ", f.name, " as input #", i,
                           "(zero-based) was expected to be a ",
                           DTypeName(wanted[i]), " tensor but is a ",
                           DTypeName(types[i]), " tensor");
  }
  return OkStatus();
}

}  // namespace

StatusOr<ResolvedOpPtr> ResolveEagerOp(TFE_Op* op) {
  HR_RETURN_IF_ERROR(op->status);
  HR_RETURN_IF_ERROR(CheckCounts(*op));
  AttrMap attrs = op->attrs;
  if (!op->function) SetListLengths(*op, &attrs);
  std::vector<DType> types;
  for (const Tensor& t : op->tensors) types.push_back(t.dtype());
  if (op->function) {
    HR_RETURN_IF_ERROR(CheckArguments(*op->function, types));
  }
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr resolved,
                      op->context->ops.Resolve(*op->def, types, attrs));
  HR_RETURN_IF_ERROR(CheckCall(*resolved, op->context->ops.library()));
  return resolved;
}

}  // namespace headrace::capi
