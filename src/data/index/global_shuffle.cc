// GlobalShuffleDataset: all elements in a random order, read by number, so that
// none has to be kept.
#include "base/random/index_permutation.h"
#include "data/dataset_op.h"
#include "data/transform/shuffle.h"

namespace headrace {
namespace {

class GlobalShuffle : public InputDataset {
 public:
  GlobalShuffle(ElementSpec spec, DatasetPtr input,
                std::shared_ptr<SeedGenerator> seeds)
      : InputDataset(std::move(spec), std::move(input)),
        seeds_(std::move(seeds)) {}
  StringView kind() const override { return "GlobalShuffle"; }

  class Iterator : public IteratorOf<GlobalShuffle> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(reader_, dataset().input().Reader(c));
      // Upstream draws twice and leaves the last number.
      std::tie(seed_, seed2_) = dataset().seeds_->Next();
      seed3_ = dataset().seeds_->Next().first;
      Permute();
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      *end = at_ >= dataset().Cardinality();
      if (*end) return OkStatus();
      return reader_->Read(c,
                           static_cast<int64_t>(permutation_->Place(
                               static_cast<uint64_t>(at_++))),
                           out);
    }
    Status Skip(PullContext&, int64_t n, int64_t* skipped) override {
      *skipped = std::min(n, dataset().Cardinality() - at_);
      at_ += *skipped;
      return OkStatus();
    }
    Status Save(PullContext&, StateWriter& w) override {
      w.PutInt(prefix(), "element_count", at_);
      w.PutInt(prefix(), "seed", seed_);
      w.PutInt(prefix(), "seed2", seed2_);
      w.PutInt(prefix(), "seed3", seed3_);
      w.PutInt(prefix(), "samples", dataset().seeds_->samples());
      return OkStatus();
    }
    Status Restore(PullContext&, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(at_, r.GetCount(prefix(), "element_count"));
      HR_ASSIGN_OR_RETURN(seed_, r.GetInt(prefix(), "seed"));
      HR_ASSIGN_OR_RETURN(seed2_, r.GetInt(prefix(), "seed2"));
      HR_ASSIGN_OR_RETURN(seed3_, r.GetInt(prefix(), "seed3"));
      HR_ASSIGN_OR_RETURN(const int64_t n, r.GetCount(prefix(), "samples"));
      dataset().seeds_->ResetSamples(n);
      Permute();
      return OkStatus();
    }

   private:
    void Permute() {
      const auto low = [](int64_t s) { return static_cast<uint32_t>(s); };
      permutation_ = std::make_unique<IndexPermutation>(
          std::array{low(seed_), low(seed2_), low(seed3_)},
          static_cast<uint64_t>(dataset().Cardinality() - 1), 8);
    }

    ElementReaderPtr reader_;
    int64_t seed_ = 0, seed2_ = 0, seed3_ = 0, at_ = 0;
    std::unique_ptr<IndexPermutation> permutation_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }
  int64_t walks() const override { return seeds_->count(); }
  void SetWalks(int64_t n) const override { seeds_->Reset(n); }

 private:
  const std::shared_ptr<SeedGenerator> seeds_;
};

Status MakeGlobalShuffle(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  CancellationToken token;
  PullContext context;
  context.services = c.services();
  context.token = &token;
  if (Status s = input->Reader(context).status(); !s.ok()) {
    if (!absl::IsFailedPrecondition(s)) return s;
    return FailedPrecondition(
        "`global_shuffle` requires all upstream transformations be compatible "
        "with random access. Got: FAILED_PRECONDITION: ",
        s.message());
  }
  if (input->Cardinality() <= 0) {
    return InvalidArgument(
        "`global_shuffle` requires the input dataset to have a non-empty "
        "finite cardinality. Got cardinality ",
        input->Cardinality(), " for dataset ", input->kind());
  }
  HR_ASSIGN_OR_RETURN(
      auto seeds,
      SeedsOf(c, 1, 3, c.op().bool_attr("reshuffle_each_iteration")));
  return SetDataset<GlobalShuffle>(c, std::move(spec), std::move(input),
                                   std::move(seeds));
}

HR_OP(GlobalShuffleDataset)
    .Input("input_dataset: variant")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant")
    .Attr("reshuffle_each_iteration: bool = true")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("All elements in a random order.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeGlobalShuffle>);

}  // namespace
}  // namespace headrace
