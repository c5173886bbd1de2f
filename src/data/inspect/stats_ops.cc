// LatencyStatsDataset, BytesProducedStatsDataset, what gathers them and what
// gives summaries of it.
#include <chrono>

#include "data/dataset_op.h"
#include "data/inspect/stats.h"
#include "op/op_like.h"

namespace headrace {
namespace {

// Tells of each element how long it took, in microseconds, or how large it is.
class MeasuredDataset : public InputDataset {
 public:
  MeasuredDataset(ElementSpec spec, DatasetPtr input, std::string tag,
                  bool times)
      : InputDataset(std::move(spec), std::move(input)),
        tag_(std::move(tag)),
        times_(times) {}
  StringView kind() const override {
    return times_ ? "LatencyStats" : "BytesProducedStats";
  }

  class Iterator : public KeptInputIterator<MeasuredDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      using Clock = std::chrono::steady_clock;
      const auto begin = Clock::now();
      HR_RETURN_IF_ERROR(NextInput(c, out, end));
      if (*end || c.stats == nullptr) return OkStatus();
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
          Clock::now() - begin);
      return c.stats->AddToHistogram(
          dataset().tag_,
          dataset().times_ ? static_cast<double>(took.count()) : BytesOf(*out),
          step_++);
    }

   private:
    static double BytesOf(const Element& element) {
      size_t bytes = 0;
      for (const Tensor& t : element) {
        bytes += t.bytes();
        if (t.dtype() != DType::kString) continue;
        for (const std::string& s : t.span<std::string>()) bytes += s.size();
      }
      return static_cast<double>(bytes);
    }

    int64_t step_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::string tag_;
  const bool times_;
};

template <bool kTimes>
Status MakeMeasured(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(std::string tag, TextInput(c, 1, "tag"));
  return SetDataset<MeasuredDataset>(c, std::move(spec), std::move(input),
                                     std::move(tag), kTimes);
}

OpBuilder MeasuredOp(const char* name, KernelFactory kernel, const char* doc) {
  OpBuilder b(name);
  b.Input("input_dataset: variant")
      .Input("tag: string")
      .Output("handle: variant")
      .Attr(kOutputTypes)
      .Attr(kOutputShapes)
      .Doc(doc)
      .Shape(ScalarShape)
      .Cpu(kernel);
  return b;
}
constexpr char kTimes[] =
    "The input; how long each element takes is told to a stats aggregator.";
constexpr char kBytes[] =
    "The input; how large each element is is told to a stats aggregator.";
[[maybe_unused]] const OpRegistrar kMeasured[] = {
    MeasuredOp("LatencyStatsDataset", ComputeOwn<MakeMeasured<true>>, kTimes),
    MeasuredOp("ExperimentalLatencyStatsDataset",
               ComputeOwn<MakeMeasured<true>>, kTimes),
    MeasuredOp("BytesProducedStatsDataset", ComputeOwn<MakeMeasured<false>>,
               kBytes),
    MeasuredOp("ExperimentalBytesProducedStatsDataset",
               ComputeOwn<MakeMeasured<false>>, kBytes),
};

// The input, walked along with an aggregator.
class WithStatsDataset : public InputDataset {
 public:
  WithStatsDataset(ElementSpec spec, DatasetPtr input,
                   std::shared_ptr<const StatsTarget> target)
      : InputDataset(std::move(spec), std::move(input)),
        target_(std::move(target)) {}
  StringView kind() const override { return "SetStatsAggregator"; }

  class Iterator : public MadeIteratorOf<WithStatsDataset> {
   public:
    using MadeIteratorOf::MadeIteratorOf;

   private:
    StatusOr<IteratorPtr> Make(PullContext& c, PullContext& inner) override {
      inner = c;
      inner.stats = dataset().target_;
      return dataset().input().Iterate(inner, prefix());
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::shared_ptr<const StatsTarget> target_;
};

StatusOr<std::shared_ptr<StatsAggregator>> AggregatorInput(
    const KernelContext& c, int i) {
  return ResourceAs<StatsAggregator>(c.input(i), c.services().resources);
}

// (The counters of upstream's own metrics, which counter_prefix names, are
// not kept.)
Status MakeWithStats(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(auto aggregator, AggregatorInput(c, 1));
  HR_ASSIGN_OR_RETURN(std::string tag, TextInput(c, 2, "tag"));
  HR_RETURN_IF_ERROR(TextInput(c, 3, "counter_prefix").status());
  return SetDataset<WithStatsDataset>(
      c, std::move(spec), std::move(input),
      std::make_shared<const StatsTarget>(std::move(aggregator),
                                          std::move(tag)));
}

HR_OP(SetStatsAggregatorDataset)
    .Input("input_dataset: variant")
    .Input("stats_aggregator: resource")
    .Input("tag: string")
    .Input("counter_prefix: string")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The input; what its datasets tell goes to an aggregator.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeWithStats>);

Status MakeAggregator(KernelContext& c) {
  ResourceHandle handle;
  handle.name = c.op().string_attr("shared_name");
  handle.container = c.op().string_attr("container");
  if (handle.container.empty()) handle.container = "localhost";
  HR_ASSIGN_OR_RETURN(handle.resource,
                      c.services().resources->LookUpOrCreate<StatsAggregator>(
                          handle.container, handle.name,
                          []() -> StatusOr<std::shared_ptr<StatsAggregator>> {
                            return std::make_shared<StatsAggregator>();
                          }));
  handle.kind = &typeid(StatsAggregator);
  c.set_output(0, Tensor::Scalar(std::move(handle)));
  return OkStatus();
}

HR_OP(StatsAggregatorHandle)
    .Output("handle: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("Gathers what datasets tell, by its name.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeAggregator>);

Status SummarizeStats(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto aggregator, AggregatorInput(c, 0));
  c.set_output(0, Tensor::Scalar<std::string>(aggregator->Summary()));
  return OkStatus();
}

HR_OP(StatsAggregatorSummary)
    .Input("iterator: resource")
    .Output("summary: string")
    .Doc("A serialised Summary of what an aggregator gathered.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<SummarizeStats>);

Status SetStatsWriter(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto aggregator, AggregatorInput(c, 0));
  HR_RETURN_IF_ERROR(ResourceOf(c.input(1), c.services().resources).status());
  aggregator->SetWriter(c.input(1), c.services());
  return OkStatus();
}

HR_OP(StatsAggregatorSetSummaryWriter)
    .Input("stats_aggregator: resource")
    .Input("summary: resource")
    .Doc("Has an aggregator write what it is told with a summary writer.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<SetStatsWriter>);

[[maybe_unused]] const bool kOlderStats[] = {
    RegisterLike("StatsAggregatorHandleV2", "StatsAggregatorHandle"),
    RegisterLike("ExperimentalStatsAggregatorHandle", "StatsAggregatorHandle"),
    RegisterLike("ExperimentalStatsAggregatorSummary",
                 "StatsAggregatorSummary"),
    RegisterLike("ExperimentalSetStatsAggregatorDataset",
                 "SetStatsAggregatorDataset"),
};

}  // namespace
}  // namespace headrace
