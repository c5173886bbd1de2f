// Handles of tables.
#include "op/op_like.h"
#include "ops/lookup/table.h"

namespace headrace {
namespace {

enum class Kind { kFixed, kScalars, kTensors };

template <Kind kind, bool kNamed>
Status MakeTable(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const DType key = op.type_attr("key_dtype");
  const DType value = op.type_attr("value_dtype");
  if (!IsPlain(key) && key != DType::kString) {
    return InvalidArgument("no tables with keys of ", DTypeName(key));
  }
  if (DTypeSize(key) > sizeof(uint64_t) && key != DType::kString) {
    return Unimplemented(op.name(), " with keys of ", DTypeName(key));
  }
  Shape shape;
  if constexpr (kind == Kind::kTensors) {
    shape = op.attr<Shape>("value_shape");
    HR_RETURN_IF_ERROR(Shape::Make(shape.dims()).status());
  }
  return HandTable(c, kNamed, {HandlePart{value, shape}},
                   [&]() -> StatusOr<std::shared_ptr<Table>> {
                     return std::make_shared<LookupTable>(key, value, shape,
                                                          kind == Kind::kFixed);
                   });
}

template <Kind kind>
Status TableRule(ShapeContext& c) {
  Shape shape;
  if constexpr (kind == Kind::kTensors) {
    shape = c.op().attr<Shape>("value_shape");
  }
  c.set_output(0, Shape());
  c.set_output_handle(0, {HandlePart{c.op().type_attr("value_dtype"), shape}});
  return OkStatus();
}

template <Kind kind, bool kNamed>
OpBuilder TableOp(const char* name) {
  OpBuilder b(name);
  b.Output("table_handle: resource");
  if (kNamed) {
    b.Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Attr("use_node_name_sharing: bool = false")
        .NoGradient();
  }
  b.Attr("key_dtype: type").Attr("value_dtype: type");
  if (kind == Kind::kTensors) b.Attr("value_shape: shape = {}");
  b.Doc("Makes a handle of a hash table, by name or of a new one.")
      .Stateful()
      .Shape(TableRule<kind>)
      .Cpu(ComputeOwn<MakeTable<kind, kNamed>>);
  if (kNamed && kind != Kind::kTensors) b.Traits({OpTrait::kNoEffect});
  return b;
}

const OpRegistrar fixed = TableOp<Kind::kFixed, true>("HashTableV2");
const OpRegistrar anonymous =
    TableOp<Kind::kFixed, false>("AnonymousHashTable");
const OpRegistrar scalars = TableOp<Kind::kScalars, true>("MutableHashTableV2");
const OpRegistrar anonymous_scalars =
    TableOp<Kind::kScalars, false>("AnonymousMutableHashTable");
const OpRegistrar tensors =
    TableOp<Kind::kTensors, true>("MutableHashTableOfTensorsV2");
const OpRegistrar anonymous_tensors =
    TableOp<Kind::kTensors, false>("AnonymousMutableHashTableOfTensors");

[[maybe_unused]] const bool kTablesByReference[] = {
    RegisterLike("HashTable", "HashTableV2", ByReference),
    RegisterLike("MutableHashTable", "MutableHashTableV2", ByReference),
    RegisterLike("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2",
                 ByReference),
};

}  // namespace
}  // namespace headrace
