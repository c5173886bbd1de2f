// RandomDataset: random numbers without end.
#include "data/dataset_op.h"
#include "data/source/seed_generator.h"

namespace headrace {
namespace {

class RandomDataset : public Dataset {
 public:
  RandomDataset(ElementSpec spec, std::shared_ptr<SeedGenerator> seeds)
      : Dataset(std::move(spec)), seeds_(std::move(seeds)) {}
  StringView kind() const override { return "Random"; }
  int64_t Cardinality() const override { return kInfiniteCardinality; }

  int64_t walks() const override { return seeds_->count(); }
  void SetWalks(int64_t n) const override { seeds_->Reset(n); }

  class Iterator : public IteratorOf<RandomDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      words_ = WordStream(dataset().seeds_->Next());
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      out->assign(1, Tensor::Scalar<int64_t>(words_.Next()));
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      words_.Save(w, prefix());
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      return words_.Restore(r, prefix());
    }

   private:
    WordStream words_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::shared_ptr<SeedGenerator> seeds_;
};

Status MakeRandom(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  if (spec.types != std::vector<DType>{DType::kInt64}) {
    return InvalidArgument(c.op().name(), " has one component of int64");
  }
  const bool* fresh = c.op().attrs().Get<bool>("rerandomize_each_iteration");
  HR_ASSIGN_OR_RETURN(auto seeds, SeedsInput(c, 0, c.num_inputs() > 2 ? 2 : -1,
                                             fresh != nullptr && *fresh));
  return SetDataset<RandomDataset>(c, std::move(spec), std::move(seeds));
}

HR_OP(RandomDataset)
    .Input("seed: int64")
    .Input("seed2: int64")
    .Output("handle: variant") HR_DATASET_SPEC.Attr("metadata: string = ''")
    .Doc("Random integers without end.")
    .Stateful() HR_DATASET_END(MakeRandom);

HR_OP(RandomDatasetV2)
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant")
    .Attr("rerandomize_each_iteration: bool = false") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("Random integers without end.")
    .Stateful() HR_DATASET_END(MakeRandom);

}  // namespace
}  // namespace headrace
