// RandomDataset: random numbers without end.
#include "data/dataset_op.h"
#include "data/source/seed_generator.h"
#include "op/op_like.h"

namespace headrace {
namespace {

class RandomDataset : public Dataset {
 public:
  RandomDataset(ElementSpec spec, std::shared_ptr<SeedGenerator> seeds)
      : Dataset(std::move(spec)), seeds_(std::move(seeds)) {}
  StringView kind() const override { return "Random"; }
  int64_t Count() const override { return kInfiniteCardinality; }

  int64_t walks() const override { return seeds_->count(); }
  void SetWalks(int64_t n) const override { seeds_->Reset(n); }

  class Iterator : public IteratorOf<RandomDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      // Each walk takes the next pair of seeds, so that a repeated dataset
      // gives other numbers.
      const auto [seed, seed2] = dataset().seeds_->Next();
      seed_ = seed;
      seed2_ = seed2;
      words_ = WordStream(seed, seed2);
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      out->assign(1, Tensor::Scalar<int64_t>(words_.Next()));
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), FullKey(prefix(), "epoch_num_random_samples"),
               dataset().seeds_->samples());
      w.PutInt(prefix(), FullKey(prefix(), "num_random_samples"),
               words_.taken());
      w.PutInt(prefix(), FullKey(prefix(), "seed"), seed_);
      w.PutInt(prefix(), FullKey(prefix(), "seed2"), seed2_);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      auto number = [&](StringView key) {
        return r.GetInt(prefix(), FullKey(prefix(), key));
      };
      HR_ASSIGN_OR_RETURN(seed_, number("seed"));
      HR_ASSIGN_OR_RETURN(seed2_, number("seed2"));
      HR_ASSIGN_OR_RETURN(const int64_t taken, number("num_random_samples"));
      HR_ASSIGN_OR_RETURN(const int64_t samples,
                          number("epoch_num_random_samples"));
      if (taken < 0 || samples < 0) return DamagedState(prefix());
      dataset().seeds_->ResetSamples(samples);
      words_ = WordStream(seed_, seed2_);
      words_.Seek(taken);
      return OkStatus();
    }

   private:
    int64_t seed_ = 0, seed2_ = 0;
    WordStream words_{0, 0};
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
  // V2 may share the seeds of a resource with other datasets; a dummy handle
  // has no resource behind it.
  if (c.num_inputs() > 2 && c.input(2).num_elements() == 1 &&
      c.input(2).scalar<ResourceHandle>().resource) {
    HR_ASSIGN_OR_RETURN(auto seeds, ResourceAs<SeedGenerator>(
                                        c.input(2), c.services().resources));
    return SetDataset<RandomDataset>(c, std::move(spec), std::move(seeds));
  }
  HR_ASSIGN_OR_RETURN(const int64_t seed, IntInput(c, 0, "seed"));
  HR_ASSIGN_OR_RETURN(const int64_t seed2, IntInput(c, 1, "seed2"));
  const bool* fresh = c.op().attrs().Get<bool>("rerandomize_each_iteration");
  return SetDataset<RandomDataset>(
      c, std::move(spec), MakeSeeds(seed, seed2, fresh != nullptr && *fresh));
}

HR_OP(RandomDataset)
    .Input("seed: int64")
    .Input("seed2: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Random integers without end.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeRandom>);

HR_OP(RandomDatasetV2)
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant")
    .Attr("rerandomize_each_iteration: bool = false")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Random integers without end.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeRandom>);

[[maybe_unused]] const bool kExperimentalRandom =
    RegisterLike("ExperimentalRandomDataset", "RandomDataset", WithoutMetadata);

}  // namespace
}  // namespace headrace
