// Datasets: descriptions of sequences of elements, and what walks along them.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/nested.h"
#include "op/kernel.h"
#include "tensor/variant.h"

namespace headrace {

class StateReader;
class StateWriter;
class StatsTarget;  // data/inspect/stats.h

// The components of one element, in the order of flattening.
using Element = std::vector<Tensor>;

// What every element is like.
struct ElementSpec {
  std::vector<DType> types;
  std::vector<Shape> shapes;
};

// Upstream's numbers for sequences without a known length.
inline constexpr int64_t kInfiniteCardinality = -1;
inline constexpr int64_t kUnknownCardinality = -2;

// How walks are done: what tf.data.Options say of it. The rewrites are those
// that upstream does by default.
struct WalkOptions {
  bool deterministic = true;    // the order, where datasets leave it open
  bool fuse_batches = true;     // a map and a batch become one
  bool fuse_shuffles = true;    // a shuffle and a repeat become one
  bool drop_idle = true;        // take(-1) and the like go away
  bool parallel_maps = true;    // maps without effects are saved as parallel
  bool inject_prefetch = true;  // the last dataset is saved as a prefetch
  int64_t threads = 0;          // of parallel datasets; 0: the machine's
  int op_threads = 0;           // of one op; 0: the machine's
};

// One of so many parts of the files that a walk reads.
struct FileShard {
  int64_t count = 1, index = 0;
};

class Dataset;
class DatasetIterator;
using IteratorPtr = std::unique_ptr<DatasetIterator, NestedDelete>;

// Which elements of its sources a walk gives, of several that share these.
class SourceShares {
 public:
  virtual ~SourceShares() = default;
  // What is left for this walk of `all`, which goes along `source`, a dataset
  // without inputs.
  virtual IteratorPtr Of(const Dataset& source, IteratorPtr all) = 0;
};

// What the iterators of one walk share. Copies share it too.
struct PullContext {
  RunServices services;  // of the functions that are called
  // Cancelled when the walk is given up, and part of what the threads that work
  // for it listen to. Not null; outlives the iterators.
  CancellationToken* token = nullptr;
  WalkOptions options;
  // Along a dataset that a function of the walk made.
  bool inner = false;
  // Which files are read by iterators that start; of all: those of count 1.
  FileShard files;
  // The numbers of shards that are left open (SHARD_HINT); none: refused.
  std::optional<FileShard> hint;
  // Null: all elements of all sources.
  std::shared_ptr<SourceShares> shares;
  // Where iterators tell how long they take; null: nowhere.
  std::shared_ptr<const StatsTarget> stats;
  // Set by iterators that keep threads of their own.
  std::shared_ptr<std::atomic<bool>> has_threads =
      std::make_shared<std::atomic<bool>>(false);

  Status CheckCancelled() const { return CheckStopOften(); }
  // For the datasets that functions make.
  PullContext Inner() const {
    PullContext c = *this;
    c.inner = true;
    c.files = {};
    c.shares = nullptr;
    return c;
  }
};

// What came of an attempt to make an element.
struct Pulled {
  Element element;
  Status status;
};

// A place in the sequence of a dataset. One thread at a time uses it, not
// always the same.
class DatasetIterator {
 public:
  explicit DatasetIterator(std::string prefix) : prefix_(std::move(prefix)) {}
  virtual ~DatasetIterator() = default;
  DatasetIterator(const DatasetIterator&) = delete;
  DatasetIterator& operator=(const DatasetIterator&) = delete;

  // Called once, before all else: makes the iterators of the inputs.
  virtual Status Start(PullContext& c) { return OkStatus(); }
  // Puts the next element into *out, or sets *end (given as false). Calls after
  // the end give the end again. After an error the next call goes on behind
  // the element that failed.
  virtual Status Next(PullContext& c, Element* out, bool* end) = 0;
  // Passes over up to `n` elements; *skipped is how many there were.
  virtual Status Skip(PullContext& c, int64_t n, int64_t* skipped);
  // The next `n` elements (fewer at the end) as one element with a new first
  // dimension, where that is cheaper than element by element. *done says
  // whether it was done; if not, nothing was taken.
  virtual Status NextRows(PullContext& c, int64_t n, Element* rows,
                          int64_t* count, bool* done);
  // The exact place, to be taken up by an iterator of an equal dataset.
  virtual Status Save(PullContext& c, StateWriter& w) = 0;
  virtual Status Restore(PullContext& c, const StateReader& r) = 0;

  // Where the iterator stands among all of the walk, "Iterator::Root::Range":
  // the name of its state.
  const std::string& prefix() const { return prefix_; }

 private:
  const std::string prefix_;
};

// Elements by their numbers, in any order. One thread at a time.
class ElementReader {
 public:
  virtual ~ElementReader() = default;
  // Element `i` of those that there are.
  virtual Status Read(PullContext& c, int64_t i, Element* out) = 0;
};
using ElementReaderPtr = std::unique_ptr<ElementReader>;

class Dataset;
using DatasetPtr = std::shared_ptr<const Dataset>;

// The call of an op that made a dataset: graphs of datasets repeat it.
struct DatasetCall {
  const OpDef* op = nullptr;
  AttrMap attrs;
  std::vector<Tensor> inputs;
};

// Immutable; shared by tensors of variants and by its iterators. Made by
// MakeNested: chains of datasets may be long.
class Dataset : public VariantValue,
                public std::enable_shared_from_this<Dataset> {
 public:
  explicit Dataset(ElementSpec spec) : spec_(std::move(spec)) {}

  StringView type_name() const override {
    return "tensorflow::DatasetVariantWrapper";
  }
  // The kind, as it stands in prefixes: "Range".
  virtual StringView kind() const = 0;
  // The number of elements, kInfiniteCardinality or kUnknownCardinality. Asked
  // of Count once: the datasets of a pipeline may share their inputs.
  int64_t Cardinality() const;
  virtual std::vector<DatasetPtr> inputs() const { return {}; }
  // How many datasets lie one behind the other, this one included.
  int depth() const;
  // ResourceExhausted where they are so many that what recurses along them, a
  // walk most of all, would leave this thread's stack.
  Status CheckDepth() const;
  // Datasets whose walks differ by how many there were: that number, to be
  // saved with iterators; -1 for all others.
  virtual int64_t walks() const { return -1; }
  virtual void SetWalks(int64_t n) const {}
  // What takes this dataset's place in walks, as upstream rewrites pipelines;
  // null: nothing. States bear the names of what stands in.
  virtual DatasetPtr StandIn(const PullContext& c) const { return nullptr; }
  // The last of those that stand in for each other; the dataset itself where
  // nothing does.
  DatasetPtr Resolved(const PullContext& c) const;
  // How many elements of its input each of its elements is; -1: not one number.
  virtual int64_t batch_size() const { return -1; }
  // Whether it reads files, or calls a function that does, and so leaves out
  // those of other shards (PullContext::files).
  virtual bool reads_files() const { return false; }
  // The options that this dataset sets.
  virtual void SetOptions(WalkOptions* options) const {}
  // Null for datasets that no op made: windows, what functions were given.
  const DatasetCall* call() const { return call_.get(); }
  // By who made the dataset, before others see it.
  void SetCall(DatasetCall call) const {
    call_ = std::make_unique<const DatasetCall>(std::move(call));
  }
  // Reads elements by number; FailedPrecondition where the dataset, or one that
  // it is made of, has to be walked along. What is read holds this dataset.
  virtual StatusOr<ElementReaderPtr> Reader(PullContext& c) const;
  // A walk from the beginning, started; `parent` is the prefix above it.
  StatusOr<IteratorPtr> Iterate(PullContext& c, StringView parent) const;

  const ElementSpec& spec() const { return spec_; }
  int width() const { return static_cast<int>(spec_.types.size()); }

 protected:
  virtual IteratorPtr NewIterator(std::string prefix) const = 0;
  virtual int64_t Count() const { return kUnknownCardinality; }

 private:
  const ElementSpec spec_;
  mutable std::unique_ptr<const DatasetCall> call_;
  static constexpr int64_t kNotCounted = -3;
  mutable std::atomic<int64_t> cardinality_{kNotCounted};
  mutable std::atomic<int> depth_{0};  // 0: not counted yet
};

// A reader that is `read`, called as ElementReader::Read; it keeps what it
// captures.
template <typename F>
ElementReaderPtr ReaderOf(F read) {
  class Calling : public ElementReader {
   public:
    explicit Calling(F f) : f_(std::move(f)) {}
    Status Read(PullContext& c, int64_t i, Element* out) override {
      return f_(c, i, out);
    }

   private:
    F f_;
  };
  return std::make_unique<Calling>(std::move(read));
}
// Element place(i) of `input`.
template <typename F>
ElementReaderPtr ReadAt(ElementReaderPtr input, F place) {
  return ReaderOf([input = std::move(input), place](PullContext& c, int64_t i,
                                                    Element* out) {
    return input->Read(c, place(i), out);
  });
}

// An iterator of datasets of class D, which it keeps.
template <typename D>
class IteratorOf : public DatasetIterator {
 public:
  IteratorOf(const D* dataset, std::string prefix)
      : DatasetIterator(std::move(prefix)),
        dataset_(
            std::static_pointer_cast<const D>(dataset->shared_from_this())) {}

 protected:
  const D& dataset() const { return *dataset_; }

 private:
  const std::shared_ptr<const D> dataset_;
};

// An iterator of datasets of class D, whose elements are those of a dataset
// that a function makes when the walk begins.
template <typename D>
class MadeIteratorOf : public IteratorOf<D> {
 public:
  using IteratorOf<D>::IteratorOf;
  Status Start(PullContext& c) override {
    inner_ = c.Inner();
    HR_ASSIGN_OR_RETURN(made_, Make(c, inner_));
    return OkStatus();
  }
  Status Next(PullContext&, Element* out, bool* end) override {
    return made_->Next(inner_, out, end);
  }
  Status Save(PullContext&, StateWriter& w) override {
    return made_->Save(inner_, w);
  }
  Status Restore(PullContext&, const StateReader& r) override {
    return made_->Restore(inner_, r);
  }

 private:
  // `inner`: the context that the made dataset is walked in.
  virtual StatusOr<IteratorPtr> Make(PullContext& c, PullContext& inner) = 0;

  PullContext inner_;
  IteratorPtr made_;
};

// The dataset of a scalar variant; InvalidArgument when it holds none.
StatusOr<DatasetPtr> DatasetOf(const Tensor& t);
// A scalar variant that holds it.
Tensor DatasetTensor(DatasetPtr dataset);

// A copy of rows stacked: `elements` as one element with a new first
// dimension. InvalidArgument when shapes differ.
Status StackElements(absl::Span<const Element> elements, Element* out);
// Row i of a tensor without its first dimension, sharing memory.
Tensor RowOf(const Tensor& t, int64_t i);

}  // namespace headrace
