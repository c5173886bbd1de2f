// Assert: an error with the values of tensors when a condition is false.
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/io/summarize.h"

namespace headrace {
namespace {

Status Assert(KernelContext& c) {
  if (c.input(0).rank() != 0) {
    return InvalidArgument("In[0] should be a scalar: ", c.input(0).shape());
  }
  if (c.input(0).scalar<bool>()) return OkStatus();
  const int64_t limit = c.op().int_attr("summarize");
  std::string text = "assertion failed: ";
  for (int i = 1; i < c.num_inputs(); ++i) {
    absl::StrAppend(&text, i > 1 ? " " : "", "[",
                    SummarizeFlat(c.input(i), limit), "]");
  }
  return InvalidArgument(text);
}

// Of all rows at once; what is told is all rows'.
Status VectorizeAssert(VectorizeContext& c) {
  std::vector<Value> inputs;
  for (const RowValue& v : c.inputs()) inputs.push_back(v.value);
  if (c.stacked(0)) inputs[0] = c("All", {inputs[0], c.Int32s({0})});
  return c.SetAll(c.Again(inputs));
}

HR_OP(Assert)
    .Input("condition: bool")
    .Input("data: T")
    .Attr("T: list(type) >= 1")
    .Attr("summarize: int = 3")
    .Doc("An error that shows `data` unless the condition is true.")
    .Stateful()
    .Traits({OpTrait::kAssertion, OpTrait::kKeepsNoInput})
    .Shape(NoOutputs)
    .NoGradient()
    .Vectorize(VectorizeAssert)
    .Cpu(Compute<Assert>);

}  // namespace
}  // namespace headrace
