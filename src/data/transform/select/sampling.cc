// SamplingDataset: each element by chance.
#include "data/dataset_op.h"
#include "data/source/seed_generator.h"

namespace headrace {
namespace {

class SamplingDataset : public InputDataset {
 public:
  SamplingDataset(ElementSpec spec, DatasetPtr input, float rate,
                  std::pair<int64_t, int64_t> seeds)
      : InputDataset(std::move(spec), std::move(input)),
        rate_(rate),
        seeds_(seeds) {}
  StringView kind() const override { return "Sampling"; }
  int64_t Count() const override { return kUnknownCardinality; }

  class Iterator : public InputIterator<SamplingDataset> {
   public:
    Iterator(const SamplingDataset* d, std::string prefix)
        : InputIterator(d, std::move(prefix)),
          words_(d->seeds_.first, d->seeds_.second) {}
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(NextInput(c, out, end));
        if (*end) return OkStatus();
        if (Uniform(words_.Next()) < dataset().rate_) return OkStatus();
      }
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "num_random_samples", words_.taken());
      w.PutInt(prefix(), "seed", dataset().seeds_.first);
      w.PutInt(prefix(), "seed2", dataset().seeds_.second);
      return InputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t taken,
                          r.GetCount(prefix(), "num_random_samples"));
      HR_ASSIGN_OR_RETURN(const int64_t seed, r.GetInt(prefix(), "seed"));
      HR_ASSIGN_OR_RETURN(const int64_t seed2, r.GetInt(prefix(), "seed2"));
      words_ = WordStream(seed, seed2);
      words_.Seek(taken);
      return InputIterator::Restore(c, r);
    }

   private:
    // In [0, 1), of the word's last 23 bits.
    static float Uniform(uint32_t word) {
      return static_cast<float>(word & 0x7fffffu) / 8388608.0f;
    }
    WordStream words_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const float rate_;
  const std::pair<int64_t, int64_t> seeds_;
};

Status MakeSampling(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  if (c.input(1).rank() != 0) {
    return InvalidArgument("rate must be a scalar");
  }
  HR_ASSIGN_OR_RETURN(const int64_t seed, IntInput(c, 2, "seed"));
  HR_ASSIGN_OR_RETURN(const int64_t seed2, IntInput(c, 3, "seed2"));
  // Both 0: seeds of the system's, the same at every walk.
  const auto seeds = MakeSeeds(seed, seed2, /*fresh=*/false)->Next();
  return SetDataset<SamplingDataset>(c, std::move(spec), std::move(input),
                                     c.input(1).scalar<float>(), seeds);
}

HR_OP(SamplingDataset)
    .Input("input_dataset: variant")
    .Input("rate: float")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The elements for which a number drawn from [0, 1) is below a rate.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSampling>);

}  // namespace
}  // namespace headrace
