#include "op/op_like.h"
#include "ops/lookup/table.h"

namespace headrace {
namespace {

// The table behind input 0, for keys (input 1) and values of given types.
StatusOr<std::shared_ptr<Table>> TableFor(const KernelContext& c, DType key,
                                          DType value) {
  HR_ASSIGN_OR_RETURN(auto table, TableOf(c));
  if (table->key_dtype() == key &&
      (value == DType::kInvalid || table->value_dtype() == value)) {
    return table;
  }
  return InvalidArgument("Conflicting key/value dtypes ", DTypeName(key), "->",
                         DTypeName(value), " with ",
                         DTypeName(table->key_dtype()), "->",
                         DTypeName(table->value_dtype()));
}

Status FindRule(ShapeContext& c) {
  const HandleData* data = c.input_handle(0);
  if (!data || data->empty() || !c.input(1).known_rank()) return OkStatus();
  // The last sizes are a key's, where keys are vectors.
  const Shape key = data->size() > 1 ? (*data)[1].shape : Shape();
  const int apart = c.input(1).rank() - key.rank();
  if (key.known_rank() && apart >= 0 && data->front().shape.known_rank()) {
    c.set_output(0, c.input(1).Sub(0, apart).Concat(data->front().shape));
  }
  return OkStatus();
}

Status Find(KernelContext& c) {
  const Tensor &keys = c.input(1), &fallback = c.input(2);
  HR_ASSIGN_OR_RETURN(auto table, TableFor(c, keys.dtype(), fallback.dtype()));
  // Keys may be vectors: then the last sizes are a key's.
  const Shape own = table->key_shape();
  const int apart = keys.rank() - own.rank();
  if (apart < 0 || keys.shape().Sub(apart, keys.rank()) != own) {
    return InvalidArgument("Expected key shape ", own, " got ", keys.shape());
  }
  HR_ASSIGN_OR_RETURN(
      Shape shape,
      Shape::Make(
          keys.shape().Sub(0, apart).Concat(table->value_shape()).dims()));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  return table->Find(keys, fallback, c.output(0));
}

HR_OP(LookupTableFindV2)
    .Input("table_handle: resource")
    .Input("keys: Tin")
    .Input("default_value: Tout")
    .Output("values: Tout")
    .Attr("Tin: type")
    .Attr("Tout: type")
    .Doc("The values of keys, or a default where a key is absent.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Shape(FindRule)
    .NoGradient()
    .Cpu(ComputeOwn<Find>);

template <Status (Table::*kChange)(const Tensor&, const Tensor&)>
Status Change(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto table,
                      TableFor(c, c.input(1).dtype(), c.input(2).dtype()));
  return (table.get()->*kChange)(c.input(1), c.input(2));
}

HR_OP(LookupTableInsertV2)
    .Input("table_handle: resource")
    .Input("keys: Tin")
    .Input("values: Tout")
    .Attr("Tin: type")
    .Attr("Tout: type")
    .Doc("Adds or replaces keys.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<Change<&Table::Insert>>);

HR_OP(LookupTableImportV2)
    .Input("table_handle: resource")
    .Input("keys: Tin")
    .Input("values: Tout")
    .Attr("Tin: type")
    .Attr("Tout: type")
    .Doc("Replaces the contents of a table.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Change<&Table::Import>>);

HR_OP(InitializeTableV2)
    .Input("table_handle: resource")
    .Input("keys: Tkey")
    .Input("values: Tval")
    .Attr("Tkey: type")
    .Attr("Tval: type")
    .Doc("Gives a table its contents.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<Change<&Table::Import>>);

Status Remove(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto table,
                      TableFor(c, c.input(1).dtype(), DType::kInvalid));
  return table->Remove(c.input(1));
}

HR_OP(LookupTableRemoveV2)
    .Input("table_handle: resource")
    .Input("keys: Tin")
    .Attr("Tin: type")
    .Doc("Removes keys; absent ones are no error.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Remove>);

Status Size(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto table, TableOf(c));
  *c.out<int64_t>(0) = table->size();
  return OkStatus();
}

HR_OP(LookupTableSizeV2)
    .Input("table_handle: resource")
    .Output("size: int64")
    .Doc("The number of keys.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(Compute<Size>);

Status ExportRule(ShapeContext& c) {
  const HandleData* data = c.input_handle(0);
  if (data && data->size() > 1) {
    // Buckets: rows of keys and values.
    const Shape& value = data->front().shape;
    c.set_output(0, Shape{-1, -1});
    c.set_output(1, Shape{-1}.Concat(value.rank() == 0 ? Shape{1} : value));
    return OkStatus();
  }
  // Where nothing is known of the table it may be one of buckets, too.
  if (!data || data->empty()) return OkStatus();
  c.set_output(0, Shape{-1});
  if (data->front().shape.known_rank()) {
    c.set_output(1, Shape{-1}.Concat(data->front().shape));
  }
  return OkStatus();
}

Status Export(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto table, TableFor(c, c.op().output_types()[0],
                                           c.op().output_types()[1]));
  return table->Export(&c.output(0), &c.output(1));
}

HR_OP(LookupTableExportV2)
    .Input("table_handle: resource")
    .Output("keys: Tkeys")
    .Output("values: Tvalues")
    .Attr("Tkeys: type")
    .Attr("Tvalues: type")
    .Doc("All keys and values.")
    .Stateful()
    .Shape(ExportRule)
    .Cpu(ComputeOwn<Export>);

[[maybe_unused]] const bool kTableOpsByReference[] = {
    RegisterLike("LookupTableFind", "LookupTableFindV2", ByReference),
    RegisterLike("LookupTableInsert", "LookupTableInsertV2", ByReference),
    RegisterLike("LookupTableImport", "LookupTableImportV2", ByReference),
    RegisterLike("LookupTableSize", "LookupTableSizeV2", ByReference),
    RegisterLike("LookupTableExport", "LookupTableExportV2", ByReference),
    RegisterLike("InitializeTable", "InitializeTableV2", ByReference),
};

}  // namespace
}  // namespace headrace
