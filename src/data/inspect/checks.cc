// AssertNextDataset: checks what a pipeline became. ComputeBatchSize: reads
// what it is. FilterByLastComponentDataset: keeps elements that say so
// themselves.
#include "absl/strings/str_split.h"
#include "data/anonymous_resource.h"
#include "data/dataset_op.h"
#include "op/op_like.h"

namespace headrace {
namespace {

// Whether `kind` is that transformation, in some version.
bool IsTransformation(StringView wanted, StringView kind) {
  if (!absl::ConsumePrefix(&kind, wanted)) return false;
  if (kind.empty()) return true;
  return absl::ConsumePrefix(&kind, "V") && !kind.empty() &&
         kind.find_first_not_of("0123456789") == StringView::npos;
}

// The input; the datasets behind it have these names when a walk begins.
class AssertNextDataset : public InputDataset {
 public:
  AssertNextDataset(ElementSpec spec, DatasetPtr input,
                    std::vector<std::string> wanted)
      : InputDataset(std::move(spec), std::move(input)),
        wanted_(std::move(wanted)) {}
  StringView kind() const override { return "AssertNext"; }

  class Iterator : public KeptInputIterator<AssertNextDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Start(PullContext& c) override {
      // "Iterator::Root::Prefetch::Map::AssertNext": the nearest stands last.
      std::vector<StringView> names =
          absl::StrSplit(prefix(), ':', absl::SkipEmpty());
      if (names.size() < 2) return Internal("a walk without a root");
      names.pop_back();
      names.erase(names.begin());
      const auto& wanted = dataset().wanted_;
      // The root counts, though it is no transformation.
      if (wanted.size() > names.size()) {
        return InvalidArgument("Asserted next ", wanted.size(),
                               " transformations but encountered only ",
                               names.size(), ".");
      }
      for (size_t i = 0; i < wanted.size(); ++i) {
        const StringView found = names[names.size() - 1 - i];
        if (IsTransformation(wanted[i], found)) continue;
        return InvalidArgument("Asserted transformation matching ", wanted[i],
                               " at offset ", i, " but encountered ", found,
                               " transformation instead.");
      }
      return KeptInputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      return NextInput(c, out, end);
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::vector<std::string> wanted_;
};

Status MakeAssertNext(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  if (c.input(1).rank() != 1) {
    return InvalidArgument("transformations must be a vector");
  }
  HR_ASSIGN_OR_RETURN(auto wanted, TextsInput(c, 1, "transformations"));
  return SetDataset<AssertNextDataset>(c, std::move(spec), std::move(input),
                                       std::move(wanted));
}

HR_OP(AssertNextDataset)
    .Input("input_dataset: variant")
    .Input("transformations: string")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The input; walks fail unless these transformations follow it.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeAssertNext>);
[[maybe_unused]] const bool kExperimentalAssertNext =
    RegisterLike("ExperimentalAssertNextDataset", "AssertNextDataset");

// Upstream's rule: datasets of these kinds have elements like their inputs'.
int64_t BatchSizeOf(const Dataset& dataset) {
  constexpr StringView kAlike[] = {"AssertNext",   "AssertCardinality",
                                   "Concatenate",  "Filter",
                                   "FiniteSkip",   "FiniteTake",
                                   "FiniteRepeat", "ForeverRepeat",
                                   "EmptyRepeat",  "EmptySkip",
                                   "EmptyTake",    "MemoryCache",
                                   "FileCache",    "Options",
                                   "Prefetch",     "Repeat",
                                   "Shard",        "Shuffle",
                                   "ShuffleV3",    "Take",
                                   "TakeWhile",    "Zip"};
  if (dataset.batch_size() > 0) return dataset.batch_size();
  const StringView kind = dataset.kind();
  const auto alike = [&](StringView k) { return k == kind; };
  if (std::none_of(std::begin(kAlike), std::end(kAlike), alike)) return -1;
  int64_t size = -2;
  for (const DatasetPtr& input : dataset.inputs()) {
    const int64_t n = BatchSizeOf(*input);
    if (size != -2 && size != n) return -1;
    size = n;
  }
  return std::max<int64_t>(size, -1);
}

Status ReadBatchSize(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  *c.out<int64_t>(0) = BatchSizeOf(*input);
  return OkStatus();
}

HR_OP(ComputeBatchSize)
    .Input("input_dataset: variant")
    .Output("batch_size: int64")
    .Doc(
        "How many elements a batch of the dataset has; -1 where it has no "
        "batches of one size.")
    .Shape(ScalarShape)
    .Cpu(Compute<ReadBatchSize>);

// Elements whose last component is true, without it.
class FlaggedDataset : public InputDataset {
 public:
  using InputDataset::InputDataset;
  StringView kind() const override { return "FilterByLastComponent"; }
  int64_t Count() const override { return kUnknownCardinality; }

  class Iterator : public InputIterator<FlaggedDataset> {
   public:
    using InputIterator::InputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(NextInput(c, out, end));
        if (*end) return OkStatus();
        HR_ASSIGN_OR_RETURN(const bool keep, PredicateResult({out->back()}));
        out->pop_back();
        if (keep) return OkStatus();
      }
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }
};

Status MakeFlagged(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  if (input->width() != static_cast<int>(spec.types.size()) + 1 ||
      input->spec().types.back() != DType::kBool) {
    return InvalidArgument(
        "the input's last component must be a truth value, behind ",
        spec.types.size(), " others");
  }
  return SetDataset<FlaggedDataset>(c, std::move(spec), std::move(input));
}

HR_OP(FilterByLastComponentDataset)
    .Input("input_dataset: variant")
    .Output("output: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc(
        "The elements whose last component, a truth value, is true, without "
        "it.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeFlagged>);

// What upstream names to count the rounds of an iterator with; it counts
// nothing.
class IterationCounter : public RemadeResource {
 public:
  const char* maker() const override { return "DummyIterationCounter"; }
  std::string DebugString() const override { return "IterationCounter"; }
};

Status MakeCounter(KernelContext& c) {
  SetAnonymous(c, std::make_shared<IterationCounter>());
  return OkStatus();
}

HR_OP(DummyIterationCounter)
    .Output("handle: resource")
    .Doc("A handle of a counter that counts nothing.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeCounter>);

}  // namespace
}  // namespace headrace
