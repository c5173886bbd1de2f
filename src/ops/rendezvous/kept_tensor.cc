// A tensor that a task keeps for a remote client, as an op of a graph.
#include "op/op.h"
#include "op/resource.h"
#include "op/tensor_store.h"

namespace headrace {
namespace {

class KeptTensor : public Kernel {
 public:
  explicit KeptTensor(const ResolvedOp& op)
      : op_(op.int_attr("op_id")),
        output_(op.int_attr("output_num")),
        dtype_(op.type_attr("dtype")) {}
  bool own_outputs() const override { return true; }
  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(const auto store,
                        c.services().resources->LookUp<TensorStore>(
                            TensorStore::kContainer, TensorStore::kName));
    HR_ASSIGN_OR_RETURN(Tensor t, store->Get(op_, static_cast<int>(output_)));
    if (t.dtype() != dtype_) {
      return InvalidArgument("the tensor kept for ", op_, ":", output_,
                             " is of ", DTypeName(t.dtype()), ", not ",
                             DTypeName(dtype_));
    }
    c.set_output(0, std::move(t));
    return OkStatus();
  }

 private:
  const int64_t op_, output_;
  const DType dtype_;
};

HR_OP(_KeptTensor)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("op_id: int")
    .Attr("output_num: int")
    .Doc("A tensor that the task keeps for the client whose session this is.")
    .Traits({OpTrait::kNoEffect, OpTrait::kNeverWaits})
    .Stateful()
    .Shape(UnknownShape)
    .Cpu(Bind<KeptTensor>);

}  // namespace
}  // namespace headrace
