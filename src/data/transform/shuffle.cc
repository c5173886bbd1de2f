// ShuffleDataset and its kin: elements drawn from a buffer, in upstream's
// order for the same seeds.
#include "data/transform/shuffle.h"

#include <tuple>

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
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    int64_t total;
    if (count_ < 0) return n == 0 ? 0 : kInfiniteCardinality;
    if (n < 0) return n;
    return MultiplyChecked(n, count_, &total) ? total : kInfiniteCardinality;
  }

  // The same for `count` turns; null where it has several already.
  DatasetPtr Repeated(int64_t count) const {
    if (count_ != 1) return nullptr;
    return MakeNested<const ShuffleDataset>(spec(), inputs()[0], buffer_size_,
                                            count, seeds_);
  }

  int64_t walks() const override { return seeds_->count(); }
  void SetWalks(int64_t n) const override { seeds_->Reset(n); }

  // The buffer is a ring; elements of one turn of the input are drawn out
  // before those of the next, so it is cut into slices.
  class Iterator : public IteratorOf<ShuffleDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      NextSeeds();
      return OpenInput(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      HR_RETURN_IF_ERROR(Fill(c));
      if (held_ == 0) {
        *end = true;
        return OkStatus();
      }
      // Another turn's elements begin here, drawn with other seeds. held_ > 0,
      // so a slice that is not empty follows.
      while (slices_.front().begin == slices_.front().end) {
        slices_.erase(slices_.begin());
        NextSeeds();
      }
      Slice& slice = slices_.front();
      const int64_t n = slice.end - slice.begin;
      // Slightly uneven for sizes that are no power of two, as upstream's is:
      // another way would draw another order.
      Element& drawn = At(slice.begin + words_.Next() % n);
      Element& first = At(slice.begin);
      std::swap(*out, drawn);
      // The first takes the place of the drawn one, so the slice stays without
      // gaps; the same exchange as upstream's, on which the order of later
      // draws depends.
      if (&first != &drawn) std::swap(drawn, first);
      ++slice.begin;
      --held_;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override;
    Status Restore(PullContext& c, const StateReader& r) override;

   private:
    // Elements of one turn, by number.
    struct Slice {
      int64_t begin, end;
    };
    // Each turn is drawn with seeds of its own.
    void NextSeeds() {
      std::tie(seed_, seed2_) = dataset().seeds_->Next();
      words_ = WordStream(seed_, seed2_);
    }
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
    Status SaveBuffer(StateWriter& w);
    Status RestoreBuffer(const StateReader& r);
    Status RestoreSlices(const StateReader& r);
    Status RestoreTurn(PullContext& c, const StateReader& r);
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
    // An empty input repeated for ever would never come back.
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
    // Grown as elements come: a buffer_size of millions for a small dataset
    // costs nothing.
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

// A ring that is larger than this is saved with no empty places: upstream
// writes each place, which a buffer_size of billions would make a file of
// gigabytes.
constexpr int64_t kMostPlaces = 1 << 24;

// The ring as upstream has it: as large as it may become, element number i at
// i modulo its size.
Status ShuffleDataset::Iterator::SaveBuffer(StateWriter& w) {
  int64_t size = dataset().buffer_size_;
  if (size < 0 || size > kMostPlaces) size = std::max<int64_t>(1, held_);
  std::vector<const Element*> places(size);
  for (int64_t i = tail_ - held_; i < tail_; ++i) places[i % size] = &At(i);
  return w.PutBuffer(absl::StrCat(prefix(), ":buffer"), places);
}

Status ShuffleDataset::Iterator::Save(PullContext& c, StateWriter& w) {
  w.PutInt(prefix(), "epoch_num_random_samples", dataset().seeds_->samples());
  w.PutInt(prefix(), "num_random_samples", words_.taken());
  w.PutInt(prefix(), "seed", seed_);
  w.PutInt(prefix(), "seed2", seed2_);
  HR_RETURN_IF_ERROR(
      SaveInput(c, w, prefix(), "end_of_input_sequence", input_.get()));
  // Upstream counts a turn when it begins, we when it ends.
  w.PutInt(prefix(), "epoch", turn_ + (input_ != nullptr));
  w.PutInt(prefix(), "num_elements", held_);
  w.PutInt(prefix(), "slices_size", static_cast<int64_t>(slices_.size()));
  for (size_t i = 0; i < slices_.size(); ++i) {
    w.PutInt(prefix(), absl::StrCat("slices_start_", i), slices_[i].begin);
    w.PutInt(prefix(), absl::StrCat("slices_end_", i), slices_[i].end);
    w.PutInt(prefix(), absl::StrCat("slices_reached_end_of_sequence_", i),
             !input_ || i + 1 < slices_.size());
  }
  if (!turn_empty_) w.PutMark(prefix(), "data_produced");
  return SaveBuffer(w);
}

Status ShuffleDataset::Iterator::RestoreSlices(const StateReader& r) {
  HR_ASSIGN_OR_RETURN(const int64_t n, r.GetCount(prefix(), "slices_size"));
  slices_.clear();
  for (int64_t i = 0; i < n; ++i) {
    HR_ASSIGN_OR_RETURN(const int64_t begin,
                        r.GetCount(prefix(), absl::StrCat("slices_start_", i)));
    HR_ASSIGN_OR_RETURN(const int64_t end,
                        r.GetCount(prefix(), absl::StrCat("slices_end_", i)));
    const bool follows = i == 0 || begin == slices_.back().end;
    if (!follows || end < begin) return DamagedState(prefix());
    slices_.push_back({begin, end});
  }
  tail_ = n == 0 ? 0 : slices_.back().end;
  held_ = n == 0 ? 0 : tail_ - slices_.front().begin;
  return OkStatus();
}

Status ShuffleDataset::Iterator::RestoreBuffer(const StateReader& r) {
  HR_ASSIGN_OR_RETURN(std::vector<Element> saved,
                      r.GetBuffer(absl::StrCat(prefix(), ":buffer")));
  const int64_t most = dataset().buffer_size_;
  // The state comes from a file: what does not hold together is damage.
  if (held_ > static_cast<int64_t>(saved.size()) ||
      (most > 0 && held_ > most)) {
    return DamagedState(prefix());
  }
  buffer_.assign(std::max<int64_t>(held_, 1), Element());
  for (int64_t i = tail_ - held_; i < tail_; ++i) {
    Element& e = saved[i % static_cast<int64_t>(saved.size())];
    HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().spec(), e));
    At(i) = std::move(e);
  }
  return OkStatus();
}

// The input, and how many turns it has had.
Status ShuffleDataset::Iterator::RestoreTurn(PullContext& c,
                                             const StateReader& r) {
  HR_ASSIGN_OR_RETURN(const int64_t epoch, r.GetCount(prefix(), "epoch"));
  if (epoch == 0) {  // nothing was read: as Start left it
    return slices_.empty() ? OpenInput(c) : DamagedState(prefix());
  }
  turn_empty_ = !r.Has(prefix(), "data_produced");
  if (slices_.empty()) slices_.push_back({tail_, tail_});
  HR_RETURN_IF_ERROR(RestoreInput(c, r, prefix(), "end_of_input_sequence",
                                  dataset().input(), prefix(), &input_));
  turn_ = epoch - (input_ != nullptr);
  const bool more =
      dataset().count_ < 0 ? !turn_empty_ : turn_ < dataset().count_;
  return !input_ && more ? OpenInput(c) : OkStatus();
}

Status ShuffleDataset::Iterator::Restore(PullContext& c, const StateReader& r) {
  HR_ASSIGN_OR_RETURN(seed_, r.GetInt(prefix(), "seed"));
  HR_ASSIGN_OR_RETURN(seed2_, r.GetInt(prefix(), "seed2"));
  HR_ASSIGN_OR_RETURN(const int64_t taken,
                      r.GetCount(prefix(), "num_random_samples"));
  HR_ASSIGN_OR_RETURN(const int64_t samples,
                      r.GetCount(prefix(), "epoch_num_random_samples"));
  HR_RETURN_IF_ERROR(RestoreSlices(r));
  HR_RETURN_IF_ERROR(RestoreBuffer(r));
  HR_RETURN_IF_ERROR(RestoreTurn(c, r));
  // Start drew seeds from the generator: back to where the state says.
  dataset().seeds_->ResetSamples(samples);
  words_ = WordStream(seed_, seed2_);
  // The generator is a counter (Philox): the words that were drawn need not be
  // drawn again.
  words_.Seek(taken);
  return OkStatus();
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
    .Attr("reshuffle_each_iteration: bool = true")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Elements in random order.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeShuffle<2, -1, -1>>);

HR_OP(ShuffleDatasetV2)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Elements in random order.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeShuffle<-1, 2, -1>>);

HR_OP(ShuffleDatasetV3)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant")
    .Attr("reshuffle_each_iteration: bool = true")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Elements in random order.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeShuffle<2, 4, -1>>);

HR_OP(ShuffleAndRepeatDataset)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("count: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("reshuffle_each_iteration: bool = true")
    .Attr("metadata: string = ''")
    .Doc("Elements in random order, turn after turn.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeShuffle<2, -1, 4>>);

HR_OP(ShuffleAndRepeatDatasetV2)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("count: int64")
    .Input("seed_generator: resource")
    .Output("handle: variant")
    .Attr("reshuffle_each_iteration: bool = true")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Elements in random order, turn after turn.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeShuffle<2, 5, 4>>);

}  // namespace

StatusOr<std::shared_ptr<SeedGenerator>> SeedsOf(const KernelContext& c,
                                                 int seeds, int handle,
                                                 bool fresh) {
  // A generator in a resource lives on when the dataset is iterated again, so
  // each iteration goes on with other seeds.
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

DatasetPtr RepeatedShuffle(const Dataset& dataset, int64_t count) {
  const auto* shuffle = dynamic_cast<const ShuffleDataset*>(&dataset);
  return shuffle == nullptr ? nullptr : shuffle->Repeated(count);
}

}  // namespace headrace
