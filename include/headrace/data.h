// Datasets: tf.data. A dataset describes a sequence of elements; each is a list
// of tensors, its components.
//
//   namespace data = tf::data;
//   auto batches = data::Dataset::FromTensorSlices({images, labels})
//                      .Shuffle(1000, /*seed=*/1)
//                      .Map([](const tf::Tensor& x, const tf::Tensor& y) {
//                        return data::Element{x / 255.0, y};
//                      })
//                      .Batch(32);
//   for (const data::Element& e : batches) Train(e[0], e[1]);
//
// Functions are traced once: they are op functions of the components, as
// tf::Function's are. The pipeline runs in C++ threads; what a function or a
// file fails with is thrown where the element is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/variable.h"

namespace headrace::tf::internal {
struct Recorded;
}  // namespace headrace::tf::internal

namespace headrace::tf::data {

// An element: its components, one tensor each.
using Element = std::vector<Tensor>;
// Components by name, as tf.data's dictionaries: they stand in an element in
// the order of their names.
using Named = std::map<std::string, Tensor>;

// What all elements are like: of each component the dtype and shape (-1: sizes
// that differ), and its name ("" for those without; empty where none has one).
// The three have one length, names apart.
struct ElementSpec {
  std::vector<DType> dtypes;
  std::vector<TensorShape> shapes;
  std::vector<std::string> names = {};
};

// What a function of elements gives: a tensor, a list, named components, or
// named components and one more behind them (a label).
struct HR_API Made {
  Made(Tensor t) : components{std::move(t)} {}           // NOLINT
  Made(Element e) : components(std::move(e)) {}          // NOLINT
  Made(const Named& named);                              // NOLINT
  Made(const std::pair<Named, Tensor>& named_and_more);  // NOLINT
  Element components;
  std::vector<std::string> names;
};

// The components of an element that have names in `spec`. Throws
// kInvalidArgument where none has one, and where two have the same.
HR_API Named NamedOf(const Element& element, const ElementSpec& spec);

// As many as are good: what buffers and threads take it for is said in
// docs/design/data.md (AUTOTUNE).
inline constexpr int64_t kAutotune = -1;             // as many as are good
inline constexpr int64_t kInfiniteCardinality = -1;  // of Dataset::cardinality
inline constexpr int64_t kUnknownCardinality = -2;

struct MapOptions {
  // How many elements are worked on at a time; 0: one, in the caller's thread;
  // kAutotune: as many threads as the process may have.
  int64_t num_parallel_calls = 0;
  // Whether parallel results keep their order; if not, what is ready goes
  // first.
  bool deterministic = true;
};

// How the datasets of Interleave take turns. With num_parallel_calls each open
// dataset is read ahead by a thread of its own; which number it is does not
// matter, but above a fixed cycle_length it is kInvalidArgument. The order is
// kept whatever `deterministic` says: there is nothing to gain by another.
struct InterleaveOptions {
  int64_t cycle_length = kAutotune;  // datasets that are open at a time
  int64_t block_length = 1;          // elements of one before the next's turn
  int64_t num_parallel_calls = 0;
  bool deterministic = true;
};

// One file or several, by name, or by a string tensor: a component of an
// element. Files that do not exist are kNotFound where they are read.
class FileNames {
 public:
  FileNames(const char* name) : names_(name) {}         // NOLINT
  FileNames(const std::string& name) : names_(name) {}  // NOLINT
  FileNames(std::initializer_list<std::string> names)   // NOLINT
      : names_(Tensor::From(std::vector<std::string>(names))) {}
  FileNames(const std::vector<std::string>& names)  // NOLINT
      : names_(Tensor::From(names)) {}
  FileNames(const Tensor& names) : names_(names) {}  // NOLINT
  const Tensor& tensor() const { return names_; }

 private:
  Tensor names_;
};

class ElementIterator;

// Immutable; a handle whose copies are cheap. Thread-safe: several walks go on
// side by side, each with its own place. Arguments that tf.data refuses are
// kInvalidArgument, here or where the first element is asked for. Functions are
// kept, with what they capture, as long as a dataset or walk that calls them.
class HR_API Dataset {
 public:
  // --- sources ---

  // One element; and the rows of tensors of one first size (kInvalidArgument
  // for scalars and for sizes that differ). No components are kInvalidArgument.
  static Dataset FromTensors(const Element& components);
  static Dataset FromTensorSlices(const Element& components);
  // The same with names: FromTensorSlices(Named{{"x", x}, {"y", y}}).
  template <typename N, typename = std::enable_if_t<std::is_same_v<N, Named>>>
  static Dataset FromTensors(const N& named) {
    return FromMade(Made(named), /*slices=*/false);
  }
  template <typename N, typename = std::enable_if_t<std::is_same_v<N, Named>>>
  static Dataset FromTensorSlices(const N& named) {
    return FromMade(Made(named), /*slices=*/true);
  }
  // int64 scalars from `start` up to `stop` (which is not among them), as
  // Python's range; a step of 0 is kInvalidArgument.
  static Dataset Range(int64_t stop);
  static Dataset Range(int64_t start, int64_t stop, int64_t step = 1);
  // The lines of text files (without their ends); the records of TFRecord files
  // (damaged ones are kDataLoss), and of files whose records have one size,
  // behind a header and before a footer: string scalars, file by file.
  // `compression` is "", "GZIP" or "ZLIB", of the whole file.
  static Dataset TextLine(const FileNames& files,
                          const std::string& compression = "");
  static Dataset TFRecord(const FileNames& files,
                          const std::string& compression = "");
  static Dataset FixedLengthRecord(const FileNames& files, int64_t record_bytes,
                                   int64_t header_bytes = 0,
                                   int64_t footer_bytes = 0,
                                   const std::string& compression = "");
  // The names of files that match patterns ("folder/*.txt"), in random order
  // unless told otherwise, drawn anew for each walk. Files are looked for now.
  // Throws kInvalidArgument when none matches.
  static Dataset ListFiles(const FileNames& patterns, bool shuffle = true,
                           std::optional<int64_t> seed = {});
  // Components of all side by side, as long as the shortest. Throws
  // kInvalidArgument for no datasets.
  static Dataset Zip(const std::vector<Dataset>& datasets);
  // Random int64 scalars from 0 to 2^32 - 1 without end; in upstream's order
  // for a seed. With rerandomize_each_iteration each walk draws others.
  static Dataset Random(std::optional<int64_t> seed = {},
                        bool rerandomize_each_iteration = false);
  // The next element of the dataset whose number, an int64 scalar, `choices`
  // gives, up to its end. Datasets that have ended are passed over, or end it
  // all. Their elements must have the same dtypes.
  static Dataset Choose(const std::vector<Dataset>& datasets,
                        const Dataset& choices,
                        bool stop_on_empty_dataset = true);
  // By chance, in the proportions of `weights` (none: alike; 0: never). Throws
  // kInvalidArgument unless there is one weight, not negative, a dataset. A
  // dataset that has ended is passed over, or ends it all.
  static Dataset Sample(const std::vector<Dataset>& datasets,
                        const std::vector<float>& weights = {},
                        std::optional<int64_t> seed = {},
                        bool stop_on_empty_dataset = false);

  // `begin` is called where a walk begins and gives a function that puts the
  // next element into its argument, or returns false at the end. Both run on
  // the thread that asks for the element, which is a pipeline's own behind
  // Prefetch or parallel functions; walks side by side call them side by side.
  // A walk that is restored from a checkpoint calls the function as often as it
  // had been called. Exceptions become that element's error; an element that
  // does not fit `spec` is kInvalidArgument.
  using NextFunction = std::function<bool(Element*)>;
  static Dataset FromGenerator(std::function<NextFunction()> begin,
                               const ElementSpec& spec);

  // --- functions of elements ---

  // Takes a list of components (const Element&), one argument each (const
  // Tensor&), those with names (const Named&), or these and the one behind
  // them (const Named&, const Tensor&); gives what Made is made of.
  template <typename F>
  // What the function gives, element by element. Takes a list of components
  // (const Element&), one argument each (const Tensor&, up to four), those with
  // names (const Named&), or these and the one behind them (const Named&, const
  // Tensor&); gives what Made is made of. Throws what the function throws while
  // it is traced, now, and kInvalidArgument where elements have another number
  // of components.
  Dataset Map(F function, MapOptions options = {}) const {
    return MapElements(AsElementFunction(std::move(function)), options);
  }
  // The elements for which the function gives true, and those up to the first
  // for which it does not.
  template <typename F>
  // The elements for which the function gives true, and those up to the first
  // for which it does not. kInvalidArgument unless it gives one bool scalar.
  Dataset Filter(F predicate) const {
    return Chosen("FilterDataset", AsElementFunction(std::move(predicate)));
  }
  template <typename F>
  Dataset TakeWhile(F predicate) const {
    return Chosen("TakeWhileDataset", AsElementFunction(std::move(predicate)));
  }
  // The elements of the datasets that a function gives, one behind another, or
  // by turns. Functions of Window's elements take a Dataset a component.
  template <typename F>
  // The elements of the datasets that a function gives, one behind another, or
  // by turns. Functions of Window's elements take a Dataset a component; others
  // take what Map's take. The datasets' elements have one spec, that of the
  // trace.
  Dataset FlatMap(F function) const {
    return Flattened(AsDatasetFunction(std::move(function)), nullptr);
  }
  template <typename F>
  Dataset Interleave(F function, InterleaveOptions options = {}) const {
    return Flattened(AsDatasetFunction(std::move(function)), &options);
  }

  // function(state, element), of a state that keeps its number of tensors and
  // their dtypes and begins as `initial`: {the next state, what takes the
  // element's place}. Where a state's shape changes, the function is traced
  // again with that size unknown. kInvalidArgument for other states.
  Dataset Scan(
      const Element& initial,
      const std::function<std::pair<Element, Made>(
          const Element& state, const Element& element)>& function) const;
  // The last state of function(state, element), `initial` without elements;
  // runs now and waits. Of elements without end it never returns (but for a
  // CancellationScope).
  Element Reduce(
      const Element& initial,
      const std::function<Element(const Element& state,
                                  const Element& element)>& function) const;

  // --- groups ---

  // Consecutive elements stacked: each component gets a first axis of
  // batch_size (at least 1), the last batch what is left, unless
  // drop_remainder. Components must have one shape a batch, else the batch is
  // kInvalidArgument. With num_parallel_calls batches are made in several
  // threads.
  Dataset Batch(int64_t batch_size, bool drop_remainder = false,
                int64_t num_parallel_calls = 0) const;
  // The same, padded at the end of each axis to one shape: `padded_shapes` are
  // one a component, -1 the longest of the batch, none: -1 wherever sizes
  // differ. `padding_values` are scalars of the components' dtypes, none: zeros
  // and empty strings. kInvalidArgument for other numbers of them and for
  // components of unknown rank without padded_shapes; kDataLoss, as upstream
  // has it, where an element is larger than its padded shape.
  Dataset PaddedBatch(int64_t batch_size,
                      const std::vector<TensorShape>& padded_shapes = {},
                      const std::vector<Tensor>& padding_values = {},
                      bool drop_remainder = false) const;
  // The rows of elements: the first axis goes. kInvalidArgument for scalars and
  // for first sizes that differ.
  Dataset Unbatch() const;
  // Unbatch, then Batch, of components whose rows are one element each.
  Dataset Rebatch(int64_t batch_size, bool drop_remainder = false) const;
  // Elements of one key (an integer scalar) are gathered; `reduce` makes a
  // dataset of up to window_size of them, and the datasets follow one another.
  template <typename Key>
  // Elements of one key (an int32 or int64 scalar, else kInvalidArgument) are
  // gathered; `reduce` makes a dataset of up to window_size of them, and the
  // datasets follow one another. All elements of windows that are not full are
  // held in memory; at the end these windows come too. `reduce` is traced once.
  Dataset GroupByWindow(
      Key key,
      const std::function<Dataset(const Tensor& key, const Dataset& window)>&
          reduce,
      int64_t window_size) const {
    return Grouped(AsElementFunction(std::move(key)), reduce, {window_size});
  }
  // Padded batches of elements of like lengths, which waste less on padding:
  // `length` is an integer scalar; bucket i has lengths from boundaries[i - 1]
  // up to below boundaries[i], and batches of batch_sizes[i], one size more
  // than boundaries. Throws kInvalidArgument for other numbers.
  struct BucketOptions {
    std::vector<TensorShape> padded_shapes;  // as of PaddedBatch
    std::vector<Tensor> padding_values;
    bool no_padding = false;  // elements of a batch have one shape
    bool drop_remainder = false;
  };
  template <typename Length>
  Dataset BucketBySequenceLength(Length length,
                                 const std::vector<int64_t>& boundaries,
                                 const std::vector<int64_t>& batch_sizes,
                                 const BucketOptions& options) const {
    return Bucketed(AsElementFunction(std::move(length)), boundaries,
                    batch_sizes, options);
  }
  template <typename Length>
  Dataset BucketBySequenceLength(
      Length length, const std::vector<int64_t>& boundaries,
      const std::vector<int64_t>& batch_sizes) const {
    return BucketBySequenceLength(std::move(length), boundaries, batch_sizes,
                                  BucketOptions());
  }
  // Datasets of `size` consecutive elements, `shift` (0: size) apart, every
  // stride-th element; shorter ones at the end unless drop_remainder. An
  // element has a dataset for each component: FlatMap and Map take them on. All
  // numbers are at least 1.
  Dataset Window(int64_t size, int64_t shift = 0, int64_t stride = 1,
                 bool drop_remainder = false) const;

  // --- order and number ---

  // Drawn at random from a buffer of that size, which is refilled from behind:
  // an element comes at most buffer_size places early, so a buffer of all
  // elements shuffles them evenly. For a seed in upstream's order. With
  // reshuffle_each_iteration each walk has another order. At least 1.
  Dataset Shuffle(int64_t buffer_size, std::optional<int64_t> seed = {},
                  bool reshuffle_each_iteration = true) const;
  Dataset Repeat(int64_t count = -1) const;  // -1: for ever
  Dataset Take(int64_t count) const;         // -1: all
  Dataset Skip(int64_t count) const;         // -1: all
  // Every num_shards-th element, from `index` on; kInvalidArgument unless 0 <=
  // index < num_shards.
  Dataset Shard(int64_t num_shards, int64_t index) const;
  // The element's number, int64, as a component before the others.
  Dataset Enumerate(int64_t start = 0) const;
  // The elements of `other` behind these. Of the same dtypes
  // (kInvalidArgument); sizes that differ become unknown.
  Dataset Concatenate(const Dataset& other) const;
  // Each element once, of one component: int32, int64 or string (others are
  // kInvalidArgument). What has come is kept in memory.
  Dataset Unique() const;
  // Without those that fail, which are told of on stderr if asked for. Errors
  // that are no element's own (a reader that fails for ever) make it wait for
  // ever.
  Dataset IgnoreErrors(bool log_warning = false) const;

  // --- speed ---

  // Made ahead of time, in a thread: up to buffer_size elements, with kAutotune
  // as many as keep the reader from waiting. An error comes in its place,
  // behind the elements before it.
  Dataset Prefetch(int64_t buffer_size = kAutotune) const;
  // Kept from the first whole walk on, in memory (of this dataset's handle: it
  // goes with the last copy) or in files of that name. A walk that is left
  // before its end keeps nothing in memory for later ones.
  Dataset Cache(const std::string& file = "") const;

  // --- folders ---

  // Writes all elements to a folder, for Load here, in Python or in
  // TensorFlow: into one shard, or those whose numbers, int64 scalars, a
  // function of the components gives. `compression`: "", "GZIP" or "SNAPPY";
  // Load must be given the same. Throws kUnimplemented for components that have
  // no bytes (datasets).
  void Save(const std::string& folder,
            const std::string& compression = "") const {
    SaveTo(folder, nullptr, compression);
  }
  template <typename F>
  void SaveInShards(const std::string& folder, F shard,
                    const std::string& compression = "") const {
    SaveTo(folder, AsElementFunction(std::move(shard)), compression);
  }
  // Throws kNotFound where nothing was saved, kDataLoss for a damaged
  // description, kUnimplemented for elements that are no tensors, tuples or
  // dictionaries of tensors.
  static Dataset Load(const std::string& folder,
                      const std::string& compression = "");
  // The elements, written to a folder by the first walk that comes to its end,
  // and read from there by all later ones. A dataset of another structure has
  // a place of its own in the folder; a function that changed is not noticed.
  Dataset Snapshot(const std::string& folder,
                   const std::string& compression = "SNAPPY") const;

  // --- what it is, and going along it ---

  // Of the elements; the reference lives as long as a copy of the dataset.
  const ElementSpec& spec() const;
  // How many elements there are, without making them, or kInfiniteCardinality,
  // kUnknownCardinality (behind Filter, FlatMap and the like).
  int64_t cardinality() const;
  // A walk from the beginning; the first element is made at once.
  ElementIterator begin() const;
  std::nullptr_t end() const { return nullptr; }
  // The components of an element of this dataset that have names; and the
  // number of the one of that name (kNotFound without one).
  Named NamedOf(const Element& element) const {
    return data::NamedOf(element, spec());
  }
  size_t IndexOf(const std::string& name) const;
  // The variant scalar that ops on datasets take.
  const Tensor& variant() const;

 private:
  friend class Iterator;
  struct State;
  using ElementFunction = std::function<Made(const Element&)>;
  using DatasetFunction =
      std::function<Dataset(const Dataset&, const Element&)>;

  explicit Dataset(std::shared_ptr<const State> state)
      : state_(std::move(state)) {}
  Dataset MapElements(const ElementFunction& function,
                      const MapOptions& options) const;
  Dataset Chosen(const char* op, const ElementFunction& predicate) const;
  Dataset Flattened(const DatasetFunction& function,
                    const InterleaveOptions* options) const;
  Dataset Like(const char* op, const std::vector<Tensor>& arguments,
               std::shared_ptr<const void> held = nullptr) const;
  // The dataset that component i of an element of this one is.
  Dataset Inner(const Element& element, size_t i) const;

  Dataset Grouped(
      const ElementFunction& key,
      const std::function<Dataset(const Tensor&, const Dataset&)>& reduce,
      const std::vector<int64_t>& window_sizes) const;
  Dataset Bucketed(const ElementFunction& length,
                   const std::vector<int64_t>& boundaries,
                   const std::vector<int64_t>& batch_sizes,
                   const BucketOptions& options) const;
  Dataset BatchOf(const Tensor& size, bool drop_remainder) const;
  Dataset PaddedBatchOf(const Tensor& size,
                        const std::vector<TensorShape>& padded_shapes,
                        const std::vector<Tensor>& padding_values,
                        bool drop_remainder) const;

  void SaveTo(const std::string& folder, const ElementFunction& shard,
              const std::string& compression) const;
  // The function that reads the shards of saved elements by turns.
  static internal::Recorded ReaderOf(const ElementSpec& spec,
                                     const std::vector<ElementSpec>& inner);

  static Dataset FromMade(const Made& made, bool slices);
  static const Tensor& OnlyUnnamed(const Element& e, const ElementSpec& spec);
  static void CheckCount(const Element& e, size_t count);
  template <typename F>
  ElementFunction AsElementFunction(F f) const {
    return [f = std::move(f), spec = spec()](const Element& e) {
      return Made(CallWith(f, e, spec));
    };
  }
  // f of the components, as many as it takes.
  template <typename F>
  static auto CallWith(const F& f, const Element& e, const ElementSpec& spec) {
    using T = const Tensor&;
    if constexpr (std::is_invocable_v<F, const Element&>) {
      return f(e);
    } else if constexpr (std::is_invocable_v<F, const Named&>) {
      return f(data::NamedOf(e, spec));
    } else if constexpr (std::is_invocable_v<F, const Named&, T>) {
      return f(data::NamedOf(e, spec), OnlyUnnamed(e, spec));
    } else if constexpr (std::is_invocable_v<F, T>) {
      return CheckCount(e, 1), f(e[0]);
    } else if constexpr (std::is_invocable_v<F, T, T>) {
      return CheckCount(e, 2), f(e[0], e[1]);
    } else if constexpr (std::is_invocable_v<F, T, T, T>) {
      return CheckCount(e, 3), f(e[0], e[1], e[2]);
    } else {
      return CheckCount(e, 4), f(e[0], e[1], e[2], e[3]);
    }
  }
  template <typename F>
  static DatasetFunction AsDatasetFunction(F f) {
    using D = const Dataset&;
    return [f = std::move(f)](D from, const Element& e) -> Dataset {
      if constexpr (std::is_invocable_v<F, D>) {
        return CheckCount(e, 1), f(from.Inner(e, 0));
      } else if constexpr (std::is_invocable_v<F, D, D>) {
        return CheckCount(e, 2), f(from.Inner(e, 0), from.Inner(e, 1));
      } else {
        return CallWith(f, e, from.spec());
      }
    };
  }

  std::shared_ptr<const State> state_;
};

// A place in a dataset, before its first element. As a part of a Checkpoint its
// exact place is saved, shuffle buffers included, and restored into an iterator
// of an equal pipeline, in C++ or Python; states that do not fit the pipeline
// are errors of restore(). One thread at a time uses it. Throws
// kFailedPrecondition for a dataset that a traced function made.
class HR_API Iterator : public Module {
 public:
  explicit Iterator(const Dataset& dataset);
  ~Iterator() override;
  Iterator(Iterator&&) = delete;
  // Puts the next element into *element; false at the end (and *element is
  // empty then). Throws what the element fails with; a further call goes on
  // behind it, where the pipeline can.
  bool Next(Element* element);

 private:
  struct State;
  explicit Iterator(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// What range-for goes along a dataset with; compared with nullptr for the end.
class HR_API ElementIterator {
 public:
  explicit ElementIterator(const Dataset& dataset);
  const Element& operator*() const { return element_; }
  const Element* operator->() const { return &element_; }
  ElementIterator& operator++();
  bool operator==(std::nullptr_t) const { return at_end_; }

 private:
  std::unique_ptr<Iterator> iterator_;
  Element element_;
  bool at_end_ = false;
};

}  // namespace headrace::tf::data
