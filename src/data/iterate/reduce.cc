// Ops that walk along a whole dataset, or ask about it.
#include "data/dataset_op.h"
#include "data/iterate/iterator_resource.h"

namespace headrace {
namespace {

Status Reduce(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  const ArgRange initial = c.op().input_range("initial_state");
  Element state, element;
  for (int i = initial.begin; i < initial.end; ++i) {
    state.push_back(c.input(i));
  }
  HR_ASSIGN_OR_RETURN(auto walk, Iteration::Begin(dataset, c.services()));
  PullContext context;
  CancellationToken token;
  context.services = c.services();
  context.token = &token;
  HR_ASSIGN_OR_RETURN(FunctionRunPtr run, f->Begin(context));
  while (true) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    bool end = false;
    HR_RETURN_IF_ERROR(walk->Next(&element, &end));
    if (end) break;
    // The function takes the state and behind it the element's components.
    for (Tensor& t : element) state.push_back(std::move(t));
    Element results;
    HR_RETURN_IF_ERROR((*run)(&state, &results));
    if (results.size() != static_cast<size_t>(initial.size())) {
      return InvalidArgument("a reduction of ", initial.size(), " values gave ",
                             results.size());
    }
    state = std::move(results);
  }
  return SetElement(c, std::move(state));
}

HR_OP(ReduceDataset)
    .Input("input_dataset: variant")
    .Input("initial_state: Tstate")
    .Input("other_arguments: Targuments")
    .Output("components: output_types")
    .Attr("f: func")
    .Attr("Tstate: list(type) >= 1")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("use_inter_op_parallelism: bool = true")
    .Attr("metadata: string = ''")
    .Doc("A function of the state so far and each element in turn.")
    .Stateful()
    .Shape(ElementRule)
    .NoGradient()
    .Cpu(ComputeOwn<Reduce>);

Status SingleElement(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(auto walk, Iteration::Begin(dataset, c.services()));
  Element element, other;
  bool end = false;
  HR_RETURN_IF_ERROR(walk->Next(&element, &end));
  if (end) return InvalidArgument("Dataset was empty.");
  // A second element is asked for to be sure that there is none.
  HR_RETURN_IF_ERROR(walk->Next(&other, &end));
  if (!end) return InvalidArgument("Dataset had more than one element.");
  return SetElement(c, std::move(element));
}

HR_OP(DatasetToSingleElement)
    .Input("dataset: variant")
    .Output("components: output_types")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The element of a dataset of one.")
    .Stateful()
    .Shape(ElementRule)
    .Cpu(ComputeOwn<SingleElement>);

// Walks there: what random access saves is written down nowhere.
Status ElementAtIndex(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t index, IntInput(c, 1, "index"));
  const int64_t count = dataset->Cardinality();
  if (count == kInfiniteCardinality ||
      (count < 0 && dataset->kind() == "Unbatch")) {
    return FailedPrecondition(
        "Dataset of type ", dataset->kind(), " has ",
        count == kInfiniteCardinality ? "infinite" : "unknown",
        " cardinality, which does not support random access.");
  }
  if (count < 0) {
    return Unimplemented("Random access is not implemented for dataset ",
                         dataset->kind());
  }
  if (index < 0 || index >= count) {
    return OutOfRange("Index out of range [0, ", count, "):", index);
  }
  HR_ASSIGN_OR_RETURN(auto walk, Iteration::Begin(dataset, c.services()));
  Element element;
  for (int64_t i = 0; i <= index; ++i) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    bool end = false;
    HR_RETURN_IF_ERROR(walk->Next(&element, &end));
    if (end) return OutOfRange("Index out of range [0, ", i, "):", index);
  }
  return SetElement(c, std::move(element));
}

HR_OP(GetElementAtIndex)
    .Input("dataset: variant")
    .Input("index: int64")
    .Output("components: output_types")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The element at a place of a dataset whose cardinality is known.")
    .Stateful()
    .Shape(ElementRule)
    .Cpu(ComputeOwn<ElementAtIndex>);

Status Cardinality(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetOf(c.input(0)));
  HR_RETURN_IF_ERROR(dataset->CheckDepth());
  c.set_output(0, Tensor::Scalar<int64_t>(dataset->Cardinality()));
  return OkStatus();
}

HR_OP(DatasetCardinality)
    .Input("input_dataset: variant")
    .Output("cardinality: int64")
    .Attr("cardinality_options: string = ''")
    .Doc("The number of elements; -1 infinite, -2 not known.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<Cardinality>);

HR_OP(ExperimentalDatasetCardinality)
    .Input("input_dataset: variant")
    .Output("cardinality: int64")
    .Doc("The number of elements; -1 infinite, -2 not known.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<Cardinality>);

}  // namespace
}  // namespace headrace
