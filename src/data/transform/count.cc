// TakeDataset, SkipDataset, ShardDataset: elements by their number.
#include "data/dataset_op.h"
#include "data/transform/shard.h"

namespace headrace {
namespace {

class TakeDataset : public InputDataset {
 public:
  TakeDataset(ElementSpec spec, DatasetPtr input, int64_t count)
      : InputDataset(std::move(spec), std::move(input)), count_(count) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    return input().Reader(c);
  }
  StringView kind() const override {
    return count_ == 0 ? "EmptyTake" : "FiniteTake";
  }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    if (n == kUnknownCardinality) return n;
    if (n == kInfiniteCardinality) return count_ < 0 ? n : count_;
    return count_ < 0 ? n : std::min(n, count_);
  }

  DatasetPtr StandIn(const PullContext& c) const override {
    // take(-1) takes everything: upstream's rewrites drop it, and states then
    // have no entry for it.
    return c.options.drop_idle && count_ < 0 ? inputs()[0] : nullptr;
  }

  class Iterator : public InputIterator<TakeDataset> {
   public:
    using InputIterator::InputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      // The input goes before the end is asked for, with its memory and
      // threads.
      if (at_ == dataset().count_) input_.reset();
      HR_RETURN_IF_ERROR(NextInput(c, out, end));
      at_ += !*end;
      return OkStatus();
    }
    // Nothing where there are no elements.
    Status Save(PullContext& c, StateWriter& w) override {
      if (dataset().count_ == 0) return OkStatus();
      w.PutInt(prefix(), "i", at_);
      return InputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      if (dataset().count_ == 0) return OkStatus();
      HR_ASSIGN_OR_RETURN(at_, r.GetCount(prefix(), "i"));
      if (at_ > dataset().count_) return DamagedState(prefix());
      return InputIterator::Restore(c, r);
    }

   private:
    int64_t at_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t count_;  // negative: all
};

class SkipDataset : public InputDataset {
 public:
  SkipDataset(ElementSpec spec, DatasetPtr input, int64_t count)
      : InputDataset(std::move(spec), std::move(input)), count_(count) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    HR_ASSIGN_OR_RETURN(ElementReaderPtr from, input().Reader(c));
    return ReadAt(std::move(from), [n = count_](int64_t i) { return i + n; });
  }
  StringView kind() const override {
    return count_ < 0 ? "EmptySkip" : "FiniteSkip";
  }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    // A negative count skips everything.
    if (count_ < 0) return 0;
    return n < 0 ? n : std::max<int64_t>(0, n - count_);
  }

  DatasetPtr StandIn(const PullContext& c) const override {
    return c.options.drop_idle && count_ == 0 ? inputs()[0] : nullptr;
  }

  class Iterator : public InputIterator<SkipDataset> {
   public:
    using InputIterator::InputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (dataset().count_ < 0) input_.reset();
      if (input_ && at_ < dataset().count_) {
        int64_t skipped = 0;
        const int64_t left = dataset().count_ - at_;
        Status s = input_->Skip(c, left, &skipped);
        at_ += skipped;
        HR_RETURN_IF_ERROR(s);
        if (skipped < left) input_.reset();
      }
      return NextInput(c, out, end);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      if (dataset().count_ < 0) return OkStatus();
      w.PutInt(prefix(), "i", at_);
      return InputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      if (dataset().count_ < 0) return OkStatus();
      HR_ASSIGN_OR_RETURN(at_, r.GetCount(prefix(), "i"));
      return InputIterator::Restore(c, r);
    }

   private:
    int64_t at_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t count_;  // negative: all
};

class ShardDataset : public InputDataset {
 public:
  ShardDataset(ElementSpec spec, DatasetPtr input, int64_t shards,
               int64_t index, bool require_non_empty)
      : InputDataset(std::move(spec), std::move(input)),
        shards_(shards),
        index_(index),
        require_non_empty_(require_non_empty) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    HR_ASSIGN_OR_RETURN(const FileShard shard, Numbers(c));
    HR_ASSIGN_OR_RETURN(ElementReaderPtr from, input().Reader(c));
    return ReadAt(std::move(from),
                  [shard](int64_t i) { return shard.index + i * shard.count; });
  }
  StringView kind() const override { return "Shard"; }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    if (shards_ == kShardHint) return kUnknownCardinality;
    return n < 0 ? n : n / shards_ + (index_ < n % shards_);
  }

  DatasetPtr StandIn(const PullContext& c) const override {
    // The check for empty shards needs the dataset itself.
    return c.options.drop_idle && shards_ == 1 && !require_non_empty_
               ? inputs()[0]
               : nullptr;
  }

  class Iterator : public InputIterator<ShardDataset> {
   public:
    using InputIterator::InputIterator;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(shard_, dataset().Numbers(c));
      return InputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (!input_) {
        *end = true;
        return OkStatus();
      }
      const int64_t shards = shard_.count;
      // How many elements of other shards lie before the next of this one.
      const int64_t pass = (shard_.index - next_ % shards + shards) % shards;
      int64_t skipped = 0;
      HR_RETURN_IF_ERROR(input_->Skip(c, pass, &skipped));
      next_ += skipped;
      if (skipped == pass) {
        HR_RETURN_IF_ERROR(NextInput(c, out, end));
        next_ += !*end;
      } else {
        input_.reset();
        *end = true;
      }
      // Fewer elements than shards leave some worker without any.
      if (*end && dataset().require_non_empty_ && next_ < shards) {
        return InvalidArgument(
            "Could not apply FILE based sharding: the dataset only has ", next_,
            " file(s), which is not enough for the required ", shards,
            " shards/workers.");
      }
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(InputIterator::Save(c, w));
      if (input_) w.PutInt(prefix(), "next_index", next_);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(shard_, dataset().Numbers(c));
      HR_RETURN_IF_ERROR(InputIterator::Restore(c, r));
      if (!input_) return OkStatus();
      HR_ASSIGN_OR_RETURN(next_, r.GetCount(prefix(), "next_index"));
      return OkStatus();
    }

   private:
    FileShard shard_;
    int64_t next_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  StatusOr<FileShard> Numbers(const PullContext& c) const {
    if (shards_ != kShardHint) return FileShard{shards_, index_};
    if (c.hint) return *c.hint;
    return FailedPrecondition(
        "a shard whose numbers are left open (SHARD_HINT) is one of workers of "
        "the data service, under ShardingPolicy.HINT, or of a strategy's "
        "distributed dataset, under AutoShardPolicy.HINT");
  }

  const int64_t shards_, index_;  // kShardHint both: left open
  const bool require_non_empty_;
};

template <typename D>
Status MakeCount(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t count, IntInput(c, 1, "count"));
  return SetDataset<D>(c, std::move(spec), std::move(input), count);
}

Status MakeShard(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t shards, IntInput(c, 1, "num_shards"));
  HR_ASSIGN_OR_RETURN(const int64_t index, IntInput(c, 2, "index"));
  const bool open = shards == kShardHint && index == kShardHint;
  if (shards <= 0 && !open) {
    return InvalidArgument(
        "Number of shards must be greater than zero (currently num_shards = ",
        shards, ").");
  }
  if ((index < 0 || index >= shards) && !open) {
    return InvalidArgument("Index must be between 0 and ", shards - 1,
                           " (currently index = ", index, ").");
  }
  return SetDataset<ShardDataset>(c, std::move(spec), std::move(input), shards,
                                  index, c.op().bool_attr("require_non_empty"));
}

HR_OP(TakeDataset)
    .Input("input_dataset: variant")
    .Input("count: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The first elements.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeCount<TakeDataset>>);

HR_OP(SkipDataset)
    .Input("input_dataset: variant")
    .Input("count: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("All but the first elements.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeCount<SkipDataset>>);

HR_OP(ShardDataset)
    .Input("input_dataset: variant")
    .Input("num_shards: int64")
    .Input("index: int64")
    .Output("handle: variant")
    .Attr("require_non_empty: bool = false")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Every num_shards-th element.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeShard>);

}  // namespace

DatasetPtr ShardOf(DatasetPtr input, int64_t count, int64_t index,
                   bool of_files) {
  ElementSpec spec = input->spec();
  return MakeNested<const ShardDataset>(std::move(spec), std::move(input),
                                        count, index, of_files);
}

}  // namespace headrace
