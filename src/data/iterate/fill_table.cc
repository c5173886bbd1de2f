// InitializeTableFromDataset: a table's contents are the pairs of a dataset.
#include "data/dataset_op.h"
#include "data/iterate/iterator_resource.h"
#include "op/table.h"

namespace headrace {
namespace {

Status CheckPairs(const Table& table, const ElementSpec& spec) {
  if (spec.types.size() == 2 && spec.types[0] == table.key_dtype() &&
      spec.types[1] == table.value_dtype()) {
    return OkStatus();
  }
  std::string types;
  for (DType t : spec.types) {
    absl::StrAppend(&types, types.empty() ? "" : ", ", DTypeName(t));
  }
  return InvalidArgument(
      "the elements of the dataset of a table must be pairs "
      "of ",
      DTypeName(table.key_dtype()), " and ", DTypeName(table.value_dtype()),
      ", got (", types, ")");
}

Status FillTable(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto table,
                      ResourceAs<Table>(c.input(0), c.services().resources));
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetOf(c.input(1)));
  HR_RETURN_IF_ERROR(CheckPairs(*table, dataset->spec()));
  HR_ASSIGN_OR_RETURN(auto walk, Iteration::Begin(dataset, c.services()));
  std::vector<Element> pairs;
  while (true) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    Element pair;
    bool end = false;
    HR_RETURN_IF_ERROR(walk->Next(&pair, &end));
    if (end) break;
    if (pair[0].shape() != table->key_shape() ||
        pair[1].shape() != table->value_shape()) {
      return InvalidArgument("a pair of the dataset of a table has the shapes ",
                             pair[0].shape(), " and ", pair[1].shape(),
                             ", expected ", table->key_shape(), " and ",
                             table->value_shape());
    }
    pairs.push_back(std::move(pair));
  }
  if (!pairs.empty()) {
    Element all;
    HR_RETURN_IF_ERROR(StackElements(pairs, &all));
    return table->Import(all[0], all[1]);
  }
  auto none = [](DType t, Shape s) {
    s.InsertDim(0, 0);
    return Tensor::Allocate(t, s);
  };
  HR_ASSIGN_OR_RETURN(Tensor keys,
                      none(table->key_dtype(), table->key_shape()));
  HR_ASSIGN_OR_RETURN(Tensor values,
                      none(table->value_dtype(), table->value_shape()));
  return table->Import(keys, values);
}

HR_OP(InitializeTableFromDataset)
    .Input("table_handle: resource")
    .Input("dataset: variant")
    .Doc("Gives a table the keys and values that a dataset has.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<FillTable>);

}  // namespace
}  // namespace headrace
