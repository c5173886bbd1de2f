// The sum of many tensors.
#include <algorithm>

#include "base/thread_pool.h"
#include "op/float_ops.h"
#include "op/passes/simplify.h"
#include "op/shared_refusal.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/elementwise.h"
#include "ops/math/elementwise/variant_add.h"

namespace headrace {
namespace {

// Elements that are summed over all inputs before going on: in cache.
constexpr int64_t kSumTile = 4096;

class AddNKernel : public Kernel {
 public:
  AddNKernel(const LoopEntry& add, int64_t count)
      : add_(add.binary), ns_(add.ns), count_(count) {}
  Status Run(KernelContext& c) override {
    const Tensor& first = c.input(0);
    const int64_t n = first.num_elements();
    const int count = c.num_inputs();
    if (count == 1) {
      c.set_output(0, first);
      return OkStatus();
    }
    // Not in the arena where the input's shape is unknown to the plan.
    if (!c.output(0).has_buffer()) {
      HR_RETURN_IF_ERROR(c.Allocate(0, first.shape()));
    }
    const size_t size = DTypeSize(first.dtype());
    char* to = static_cast<char*>(c.output(0).raw());
    auto at = [&](int k, int64_t i) {
      return static_cast<const char*>(c.input(k).raw()) + i * size;
    };
    // Tile by tile through all inputs: the sum stays in the first cache, and
    // each input is read once.
    ParallelFor(n, ns_ * count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kSumTile) {
        const int64_t m = std::min(kSumTile, end - i);
        // The first two at once, so that the result need not be cleared.
        add_(at(0, i), at(1, i), to + i * size, m, 0);
        // From left to right, whatever the number of threads: the bits depend
        // on the inputs alone.
        for (int k = 2; k < count; ++k) {
          add_(to + i * size, at(k, i), to + i * size, m, 0);
        }
      }
    });
    return OkStatus();
  }
  // A single input is the sum itself.
  bool own_outputs() const override { return count_ == 1; }

 private:
  const BinaryLoop add_;
  const float ns_;
  const int64_t count_;
};

// Values of variants are added by the functions that their types registered.
Status AddVariants(KernelContext& c) {
  bool alone = c.input(0).exclusive();
  for (int k = 1; k < c.num_inputs(); ++k) {
    alone = alone && !c.input(k).SharesBufferWith(c.input(0));
  }
  // A copy where the first input belongs to others, as its elements are
  // overwritten here.
  HR_ASSIGN_OR_RETURN(Tensor sum, alone ? c.input(0) : c.input(0).Clone());
  for (int k = 1; k < c.num_inputs(); ++k) {
    const Tensor& other = c.input(k);
    for (int64_t i = 0; i < sum.num_elements(); ++i) {
      HR_ASSIGN_OR_RETURN(sum.data<Variant>()[i],
                          AddVariantValues(std::move(sum.data<Variant>()[i]),
                                           other.data<Variant>()[i]));
    }
  }
  c.set_output(0, std::move(sum));
  return OkStatus();
}

StatusOr<std::unique_ptr<Kernel>> MakeAddN(const ResolvedOp& op) {
  const DType t = op.type_attr("T");
  if (t == DType::kVariant) {
    return MakeKernel(AddVariants, /*own_outputs=*/true);
  }
  const LoopEntry* add = FindBinaryLoop("AddV2", static_cast<int>(t));
  if (add == nullptr) return nullptr;
  return std::unique_ptr<Kernel>(
      std::make_unique<AddNKernel>(*add, op.attr<int64_t>("N")));
}

// Lists that are added have elements of one type and shape.
Status CheckHandlesAdd(const ShapeContext& c) {
  const HandleData* first = c.input_handle(0);
  // Without data of the handles there is nothing to compare.
  for (int i = 1; first != nullptr && i < c.num_inputs(); ++i) {
    const HandleData* other = c.input_handle(i);
    if (other == nullptr) continue;
    // Handles may say less of one list than of another.
    for (size_t k = 0; k < std::min(first->size(), other->size()); ++k) {
      const HandlePart &a = (*first)[k], &b = (*other)[k];
      if (a.dtype != DType::kInvalid && b.dtype != DType::kInvalid &&
          a.dtype != b.dtype) {
        return InvalidArgument("shapes_and_types[", i - 1, "][", k,
                               "].dtype() == ", DTypeName(a.dtype),
                               " != shapes_and_types[0][", k,
                               "].dtype == ", DTypeName(b.dtype));
      }
      HR_RETURN_IF_ERROR(MergeShapes(a.shape, b.shape).status());
    }
  }
  return OkStatus();
}

Status AddNShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.input(0).CompatibleWith(c.input(i))) {
      return c.Refuse(
          NotAllMerged(c),
          InvalidArgument(
              "Inputs to operation ", c.op().name(), " of type ", c.op().name(),
              " must have the same size and shape.  Input 0: ", c.input(0),
              " != input ", i, ": ", c.input(i)));
    }
  }
  HR_RETURN_IF_ERROR(CheckHandlesAdd(c));
  // The sum of lists is such a list again.
  if (c.input_handle(0)) c.set_output_handle(0, *c.input_handle(0));
  Status merged = MergeAllInputs(c);
  return merged.ok() ? merged : c.Refuse(NotAllMerged(c), std::move(merged));
}

Status AddNGrad(GradientContext& g) {
  // As it comes, slices included: every input gets the same.
  for (int i = 0; i < g.num_inputs(); ++i) g.set(i, g.raw_grad(0));
  return g.status();
}

// Sums of a few tensors of one known shape become sums of two, which fuse. AddN
// adds from left to right as well: the bits stay.
Status AddByTwos(SimplifyContext& c) {
  constexpr int kMost = 8;  // terms
  const int n = c.num_inputs();
  if (n == 1) {
    c.Replace(0, c.input(0));
    return c.status();
  }
  if (n > kMost || !IsPlain(c.output_dtype(0))) return c.status();
  for (int i = 0; i < n; ++i) {
    // A term that may broadcast is an error for AddN, and none for AddV2.
    if (!c.keeps_shape(i)) return c.status();
  }
  PlanValue sum = c.input(0);
  for (int i = 1; i < n; ++i) sum = c("AddV2", {sum, c.input(i)});
  c.Replace(0, sum);
  return c.status();
}

Status SumOfRows(VectorizeContext& c) {
  bool lists = false;
  for (int i = 0; i < c.num_inputs(); ++i) lists = lists || c.in_list(i);
  if (!lists) return VectorizeBatched(c);
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.Listed(i));
  return c.SetAll(c.Again(inputs), Stacking::kInList);
}

HR_OP(AddN)
    .Input("inputs: N * T")
    .Output("sum: T")
    .Attr("N: int >= 1")
    .Attr("T: {numbertype, variant}")
    .Doc("The sum of the inputs, element by element.")
    .Commutative()
    .Aggregate()
    .Role(OpRole::kAddN)
    .Simplify(AddByTwos)
    .Shape(AddNShape)
    .Gradient(AddNGrad)
    .Traits({OpTrait::kTakesLists})
    .Vectorize(SumOfRows)
    .Cpu(MakeAddN);
HR_OP(AccumulateNV2)
    .Input("inputs: N * T")
    .Output("sum: T")
    .Attr("N: int >= 1")
    .Attr("T: numbertype")
    .Attr("shape: shape")
    .Doc("The sum of the inputs, which have the shape `shape`.")
    .Commutative()
    .Aggregate()
    .Shape(AddNShape)
    .Gradient(AddNGrad)
    .Cpu(MakeAddN);

const FloatOps add_n_float_ops({"AddN"}, [](FloatOpsContext& c) {
  return (c.num_inputs() - 1) * c.output();
});

}  // namespace
}  // namespace headrace
