// ChooseFastestDataset and ChooseFastestBranchDataset: one of several ways to
// make the same elements.
//
// All ways give the same elements: that is what who offers them promises. So
// the first is as right as any; it is taken without trying how fast the others
// are.
#include "data/dataset_op.h"
#include "op/op_like.h"

namespace headrace {
namespace {

// What stands for the ways: the first.
class ChosenDataset : public InputDataset {
 public:
  ChosenDataset(ElementSpec spec, DatasetPtr input, int64_t count)
      : InputDataset(std::move(spec), std::move(input)), count_(count) {}
  StringView kind() const override { return "ChooseFastest"; }
  int64_t Count() const override { return count_; }
  DatasetPtr StandIn(const PullContext&) const override { return inputs()[0]; }

 protected:
  // Never asked for: the input stands in always.
  IteratorPtr NewIterator(std::string) const override { return nullptr; }

 private:
  const int64_t count_;
};

Status CheckSame(const std::vector<DatasetPtr>& ways) {
  const ElementSpec& first = ways[0]->spec();
  int64_t count = ways[0]->Cardinality();
  for (size_t i = 1; i < ways.size(); ++i) {
    const ElementSpec& other = ways[i]->spec();
    auto names = [](const std::vector<DType>& types) {
      std::string all;
      for (DType t : types) {
        absl::StrAppend(&all, all.empty() ? "" : ", ", DTypeName(t));
      }
      return all;
    };
    if (other.types != first.types) {
      return InvalidArgument(
          "All inputs to ChooseFastestDataset must have the "
          "same output types. Input ",
          i, " has output types: ", names(other.types),
          ". Expected: ", names(first.types), ".");
    }
    for (size_t k = 0; k < first.shapes.size(); ++k) {
      if (first.shapes[k].CompatibleWith(other.shapes[k])) continue;
      return InvalidArgument(
          "All inputs to ChooseFastestDataset must have "
          "compatible output shapes. Input ",
          i, " has the shape ", other.shapes[k], " at component ", k,
          ". Expected: ", first.shapes[k], ".");
    }
    const int64_t n = ways[i]->Cardinality();
    if (n == kUnknownCardinality) continue;
    if (count != kUnknownCardinality && n != count) {
      return InvalidArgument(
          "All inputs to ChooseFastestDataset must have "
          "compatible cardinalities. Input ",
          i, " has cardinality: ", n,
          ", while all prior inputs have cardinality: ", count, ".");
    }
    count = n;
  }
  return OkStatus();
}

Status MakeChosen(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  if (c.op().int_attr("num_experiments") < 1) {
    return InvalidArgument("`num_experiments` must be greater than zero, got ",
                           c.op().int_attr("num_experiments"));
  }
  std::vector<DatasetPtr> ways;
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_ASSIGN_OR_RETURN(DatasetPtr way, DatasetOf(c.input(i)));
    HR_RETURN_IF_ERROR(way->CheckDepth());
    ways.push_back(std::move(way));
  }
  HR_RETURN_IF_ERROR(CheckSame(ways));
  int64_t count = kUnknownCardinality;
  for (const DatasetPtr& way : ways) {
    if (way->Cardinality() != kUnknownCardinality) count = way->Cardinality();
  }
  return SetDataset<ChosenDataset>(c, std::move(spec), std::move(ways[0]),
                                   count);
}

HR_OP(ChooseFastestDataset)
    .Input("input_datasets: N * variant")
    .Output("handle: variant")
    .Attr("N: int >= 2")
    .Attr("num_experiments: int")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The elements that each of several datasets has.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeChosen>);

[[maybe_unused]] const bool kExperimentalChooseFastest =
    RegisterLike("ExperimentalChooseFastestDataset", "ChooseFastestDataset");

// --- Branches: functions of a dataset.

class BranchDataset : public InputDataset {
 public:
  BranchDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f,
                int64_t numerator, int64_t denominator)
      : InputDataset(std::move(spec), std::move(input)),
        f_(std::move(f)),
        numerator_(numerator),
        denominator_(denominator) {}
  StringView kind() const override { return "ChooseFastestBranch"; }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    int64_t times = 0;
    if (n < 0 || !MultiplyChecked(n, denominator_, &times)) return n;
    return times / numerator_;
  }

  class Iterator : public MadeIteratorOf<BranchDataset> {
   public:
    using MadeIteratorOf::MadeIteratorOf;

   private:
    StatusOr<IteratorPtr> Make(PullContext& c, PullContext& inner) override {
      HR_ASSIGN_OR_RETURN(FunctionRunPtr run, dataset().f_->Begin(c));
      Element args{DatasetTensor(dataset().inputs()[0])}, results;
      HR_RETURN_IF_ERROR((*run)(&args, &results));
      HR_ASSIGN_OR_RETURN(DatasetPtr made, DatasetResult(results));
      return made->Iterate(inner, prefix());
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr f_;
  const int64_t numerator_, denominator_;
};

// How many of the other arguments the first branch takes.
StatusOr<int> ArgumentsOfFirst(const KernelContext& c) {
  const auto& lengths =
      c.op().attr<std::vector<int64_t>>("other_arguments_lengths");
  const auto& branches = c.op().attr<std::vector<FuncRef>>("branches");
  if (lengths.size() != branches.size()) {
    return InvalidArgument(
        "branches and other_arguments_lengths must have the "
        "same length.");
  }
  const int64_t given = c.op().input_range("other_arguments").size();
  int64_t taken = 0;
  for (int64_t n : lengths) {
    if (n < 0 || n > given - taken) taken = given + 1;
    if (taken > given) break;
    taken += n;
  }
  if (taken != given) {
    return InvalidArgument(
        "other_arguments_lengths must sum up to the number "
        "of other_arguments, ",
        given);
  }
  return static_cast<int>(lengths[0]);
}

Status MakeBranch(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t numerator,
                      IntInput(c, 1, "ratio_numerator"));
  HR_ASSIGN_OR_RETURN(const int64_t denominator,
                      IntInput(c, 2, "ratio_denominator"));
  if (numerator <= 0) {
    return InvalidArgument("`ratio_numerator` must be greater than zero.");
  }
  if (denominator <= 0) {
    return InvalidArgument("`ratio_denominator` must be greater than zero.");
  }
  if (c.op().int_attr("num_elements_per_branch") % denominator != 0) {
    return InvalidArgument(
        "`num_elements_per_branch` must be divisible by "
        "`ratio_denominator`.");
  }
  HR_ASSIGN_OR_RETURN(const int taken, ArgumentsOfFirst(c));
  const int begin = c.op().input_range("other_arguments").begin;
  std::vector<Tensor> captures;
  for (int i = begin; i < begin + taken; ++i) captures.push_back(c.input(i));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(
                          c, c.op().attr<std::vector<FuncRef>>("branches")[0],
                          std::move(captures)));
  return SetDataset<BranchDataset>(c, std::move(spec), std::move(input),
                                   std::move(f), numerator, denominator);
}

HR_OP(ChooseFastestBranchDataset)
    .Input("input_dataset: variant")
    .Input("ratio_numerator: int64")
    .Input("ratio_denominator: int64")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("Targuments: list(type) >= 0")
    .Attr("num_elements_per_branch: int >= 1")
    .Attr("branches: list(func) >= 1")
    .Attr("other_arguments_lengths: list(int) >= 1")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The elements that each of several functions makes of a dataset.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeBranch>);

}  // namespace
}  // namespace headrace
