// ShuffleDataset and its kin: elements drawn from a buffer, in upstream's
// order for the same seeds.
#include "data/dataset_op.h"
#include "data/source/seed_generator.h"

namespace headrace {
namespace {

class ShuffleDataset : public InputDataset {
 public:
  ShuffleDataset(ElementSpec spec, DatasetPtr input, int64_t buffer_size,
                 int64_t count, std::shared_ptr<SeedGenerator> seeds)
      : InputDataset(std::move(spec), std::move(input)),
        buffer_size_(buffer_size),
        count_(count),
        seeds_(std::move(seeds)) {}
  StringView kind() const override {
    return count_ == 1 ? "Shuffle" : "ShuffleAndRepeat";
  }
  int64_t Cardinality() const override {
    const int64_t n = input().Cardinality();
    int64_t total;
    if (count_ < 0) return n == 0 ? 0 : kInfiniteCardinality;
    if (n < 0) return n;
    return MultiplyChecked(n, count_, &total) ? total : kInfiniteCardinality;
  }

  int64_t walks() const override { return seeds_->count(); }
  void SetWalks(int64_t n) const override { seeds_->Reset(n); }

  // The buffer is a ring; elements of one turn of the input are drawn out
  // before those of the next, so it is cut into slices.
  class Iterator : public IteratorOf<ShuffleDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      const auto [seed, seed2] = dataset().seeds_->Next();
      seed_ = seed;
      seed2_ = seed2;
      words_ = WordStream(seed, seed2);
      return OpenInput(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      HR_RETURN_IF_ERROR(Fill(c));
      if (held_ == 0) {
        *end = true;
        return OkStatus();
      }
      while (slices_.front().begin == slices_.front().end) {
        slices_.erase(slices_.begin());
      }
      Slice& slice = slices_.front();
      const int64_t n = slice.end - slice.begin;
      Element& drawn = At(slice.begin + words_.Next() % n);
      Element& first = At(slice.begin);
      std::swap(*out, drawn);
      if (&first != &drawn) std::swap(drawn, first);
      ++slice.begin;
      --held_;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override;
    Status Restore(PullContext& c, const StateReader& r) override;

   private:
    struct Slice {
      int64_t begin, end;
    };
    Element& At(int64_t i) {
      return buffer_[i % static_cast<int64_t>(buffer_.size())];
    }
    Status OpenInput(PullContext& c) {
      HR_ASSIGN_OR_RETURN(input_, dataset().input().Iterate(c, prefix()));
      turn_empty_ = true;
      slices_.push_back({tail_, tail_});
      return OkStatus();
    }
    Status Fill(PullContext& c);
    // Puts element number tail_ into the ring, which grows while it is young.
    void Push(Element element);

    IteratorPtr input_;
    int64_t seed_ = 0, seed2_ = 0;
    WordStream words_{0, 0};
    std::vector<Element> buffer_;
    std::vector<Slice> slices_;
    int64_t tail_ = 0, held_ = 0, turn_ = 0;
    bool turn_empty_ = true;
    Element next_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t buffer_size_;  // kUnknownCardinality: everything
  const int64_t count_;        // turns; negative: for ever
  const std::shared_ptr<SeedGenerator> seeds_;
};

Status ShuffleDataset::Iterator::Fill(PullContext& c) {
  const int64_t most = dataset().buffer_size_;
  while (input_ && (most < 0 || held_ < most)) {
    bool end = false;
    HR_RETURN_IF_ERROR(input_->Next(c, &next_, &end));
    if (!end) {
      turn_empty_ = false;
      Push(std::move(next_));
      continue;
    }
    input_.reset();
    ++turn_;
    const bool more = dataset().count_ < 0 || turn_ < dataset().count_;
    if (more && !(turn_empty_ && dataset().count_ < 0)) {
      HR_RETURN_IF_ERROR(OpenInput(c));
    }
    HR_RETURN_IF_ERROR(c.CheckCancelled());
  }
  return OkStatus();
}

void ShuffleDataset::Iterator::Push(Element element) {
  const int64_t size = static_cast<int64_t>(buffer_.size());
  if (held_ == size) {
    // Positions are taken by the ring's size, so growing lays it anew.
    const int64_t most = dataset().buffer_size_;
    int64_t wanted = std::max<int64_t>(16, 2 * size);
    if (most > 0) wanted = std::min(wanted, most);
    std::vector<Element> larger(wanted);
    for (int64_t i = tail_ - held_; i < tail_; ++i) {
      std::swap(larger[i % wanted], At(i));
    }
    buffer_.swap(larger);
  }
  At(tail_) = std::move(element);
  ++tail_;
  ++held_;
  slices_.back().end = tail_;
}

Status ShuffleDataset::Iterator::Save(PullContext& c, StateWriter& w) {
  w.PutInt(prefix(), "seed", seed_);
  w.PutInt(prefix(), "seed2", seed2_);
  w.PutInt(prefix(), "num_random_samples", words_.taken());
  w.PutInt(prefix(), "epoch", turn_);
  w.PutInt(prefix(), "tail", tail_);
  w.PutInt(prefix(), "turn_empty", turn_empty_);
  w.PutInt(prefix(), "slices_size", static_cast<int64_t>(slices_.size()));
  for (size_t i = 0; i < slices_.size(); ++i) {
    w.PutInt(prefix(), absl::StrCat("slices_start_", i), slices_[i].begin);
    w.PutInt(prefix(), absl::StrCat("slices_end_", i), slices_[i].end);
  }
  std::vector<Element> held;
  for (int64_t i = tail_ - held_; i < tail_; ++i) held.push_back(At(i));
  w.PutElements(prefix(), "buffer", held);
  return SaveInput(c, w, prefix(), "end_of_input_sequence", input_.get());
}

Status ShuffleDataset::Iterator::Restore(PullContext& c, const StateReader& r) {
  HR_ASSIGN_OR_RETURN(seed_, r.GetInt(prefix(), "seed"));
  HR_ASSIGN_OR_RETURN(seed2_, r.GetInt(prefix(), "seed2"));
  HR_ASSIGN_OR_RETURN(const int64_t taken,
                      r.GetInt(prefix(), "num_random_samples"));
  HR_ASSIGN_OR_RETURN(turn_, r.GetInt(prefix(), "epoch"));
  HR_ASSIGN_OR_RETURN(tail_, r.GetInt(prefix(), "tail"));
  turn_empty_ = r.Flag(prefix(), "turn_empty");
  HR_ASSIGN_OR_RETURN(const int64_t slices, r.GetInt(prefix(), "slices_size"));
  std::vector<Element> held;
  HR_RETURN_IF_ERROR(r.GetElements(prefix(), "buffer", &held));
  held_ = static_cast<int64_t>(held.size());
  if (taken < 0 || tail_ < held_ || slices < 1 || slices > held_ + 2) {
    return InvalidArgument("the saved state of ", prefix(), " is damaged");
  }
  int64_t at = tail_ - held_;
  slices_.clear();
  for (int64_t i = 0; i < slices; ++i) {
    HR_ASSIGN_OR_RETURN(const int64_t begin,
                        r.GetInt(prefix(), absl::StrCat("slices_start_", i)));
    HR_ASSIGN_OR_RETURN(const int64_t end,
                        r.GetInt(prefix(), absl::StrCat("slices_end_", i)));
    if (begin != at || end < begin || end > tail_) {
      return InvalidArgument("the saved slices of ", prefix(), " are damaged");
    }
    at = end;
    slices_.push_back({begin, end});
  }
  if (at != tail_) {
    return InvalidArgument("the saved slices of ", prefix(), " are damaged");
  }
  const int64_t most = dataset().buffer_size_;
  buffer_.assign(most > 0 ? std::min<int64_t>(most, std::max<int64_t>(held_, 1))
                          : std::max<int64_t>(held_, 1),
                 Element());
  if (held_ > static_cast<int64_t>(buffer_.size())) {
    return InvalidArgument("the saved buffer of ", prefix(), " is larger than ",
                           most);
  }
  for (int64_t i = 0; i < held_; ++i) At(tail_ - held_ + i) = held[i];
  words_ = WordStream(seed_, seed2_);
  words_.Seek(taken);
  return RestoreInput(c, r, prefix(), "end_of_input_sequence",
                      dataset().input(), prefix(), &input_);
}

// The generator of input i, or one of the op's own seeds.
StatusOr<std::shared_ptr<SeedGenerator>> SeedsOf(const KernelContext& c,
                                                 int seeds, int handle,
                                                 bool fresh) {
  if (handle >= 0 && c.input(handle).num_elements() == 1 &&
      c.input(handle).scalar<ResourceHandle>().resource) {
    return ResourceAs<SeedGenerator>(c.input(handle), c.services().resources);
  }
  int64_t seed = 0, seed2 = 0;
  if (seeds >= 0) {
    HR_ASSIGN_OR_RETURN(seed, IntInput(c, seeds, "seed"));
    HR_ASSIGN_OR_RETURN(seed2, IntInput(c, seeds + 1, "seed2"));
  }
  return MakeSeeds(seed, seed2, fresh);
}

// Positions of inputs; -1: the op has no such input.
template <int seeds, int handle, int count>
Status MakeShuffle(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t size, IntInput(c, 1, "buffer_size"));
  if (size < 1 && size != kUnknownCardinality) {
    return InvalidArgument(
        "buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  }
  int64_t turns = 1;
  if (count >= 0) {
    HR_ASSIGN_OR_RETURN(turns, IntInput(c, count, "count"));
    if (turns == 0 || turns < -1) {
      return InvalidArgument("count must be greater than zero or equal to -1");
    }
  }
  const bool* fresh = c.op().attrs().Get<bool>("reshuffle_each_iteration");
  HR_ASSIGN_OR_RETURN(auto generator,
                      SeedsOf(c, seeds, handle, fresh == nullptr || *fresh));
  return SetDataset<ShuffleDataset>(c, std::move(spec), std::move(input), size,
                                    turns, std::move(generator));
}

HR_OP(ShuffleDataset)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Output("handle: variant")
    .Attr("reshuffle_each_iteration: bool = true") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("Elements in random order.") HR_DATASET_END((MakeShuffle<2, -1, -1>));

HR_OP(ShuffleDatasetV2)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant") HR_DATASET_SPEC.Attr("metadata: string = ''")
    .Doc("Elements in random order.")
    .Stateful() HR_DATASET_END((MakeShuffle<-1, 2, -1>));

HR_OP(ShuffleDatasetV3)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant")
    .Attr("reshuffle_each_iteration: bool = true") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("Elements in random order.")
    .Stateful() HR_DATASET_END((MakeShuffle<2, 4, -1>));

HR_OP(ShuffleAndRepeatDataset)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("count: int64")
    .Output("handle: variant") HR_DATASET_SPEC
    .Attr("reshuffle_each_iteration: bool = true")
    .Attr("metadata: string = ''")
    .Doc("Elements in random order, turn after turn.")
        HR_DATASET_END((MakeShuffle<2, -1, 4>));

HR_OP(ShuffleAndRepeatDatasetV2)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("count: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant")
    .Attr("reshuffle_each_iteration: bool = true") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("Elements in random order, turn after turn.")
    .Stateful() HR_DATASET_END((MakeShuffle<2, 5, 4>));

}  // namespace
}  // namespace headrace
