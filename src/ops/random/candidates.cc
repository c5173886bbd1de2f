// UniformCandidateSampler, LogUniformCandidateSampler,
// FixedUnigramCandidateSampler, LearnedUnigramCandidateSampler,
// ThreadUnsafeUnigramCandidateSampler, AllCandidateSampler and
// ComputeAccidentalHits: classes drawn to stand for all others in a loss.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/cancellation.h"
#include "base/files/files.h"
#include "base/mutex.h"
#include "op/op.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

// Draws classes in [0, range), each with its probability.
class Distribution {
 public:
  virtual ~Distribution() = default;
  virtual int64_t Draw(PhiloxWords& words) const = 0;
  virtual double Probability(int64_t value) const = 0;
  // How many classes Draw may give.
  virtual int64_t classes() const = 0;
  // Tells it the true classes that a call brought.
  virtual void Learn(absl::Span<const int64_t> values) {}
  // Calls `use`, which calls the above. One that learns has them called one at
  // a time.
  virtual Status Use(absl::FunctionRef<Status()> use) { return use(); }
};

uint64_t Bits64(PhiloxWords& words) {
  // The first word is the low half; the order of evaluation matters, so there
  // are two statements.
  const uint64_t low = words.Next();
  return low | uint64_t{words.Next()} << 32;
}

class Uniform : public Distribution {
 public:
  explicit Uniform(int64_t range) : range_(range) {}
  int64_t Draw(PhiloxWords& words) const override {
    // The remainder favours small numbers by less than range / 2^64, which 64
    // bits make negligible.
    return static_cast<int64_t>(Bits64(words) % static_cast<uint64_t>(range_));
  }
  double Probability(int64_t) const override {
    // Upstream's probabilities are floats.
    return static_cast<float>(1.0 / static_cast<double>(range_));
  }
  int64_t classes() const override { return range_; }

 private:
  const int64_t range_;
};

// The probability of k is log((k + 2) / (k + 1)) / log(range + 1).
class LogUniform : public Distribution {
 public:
  explicit LogUniform(int64_t range)
      : range_(range), log_range_(std::log1p(static_cast<double>(range))) {}
  int64_t Draw(PhiloxWords& words) const override {
    // The inverse of the distribution function log(k + 1) / log(range + 1).
    const double v = std::exp(words.NextDouble() * log_range_);
    // Rounding may bring exp to range + 1, which the remainder turns into class
    // 0.
    return (static_cast<int64_t>(v) - 1) % range_;
  }
  double Probability(int64_t value) const override {
    const double v = static_cast<double>(value);
    return static_cast<float>(std::log((v + 2) / (v + 1)) / log_range_);
  }
  int64_t classes() const override { return range_; }

 private:
  const int64_t range_;
  const double log_range_;
};

// By weights: a column for each class, cut in two by another (alias method).
class Weighted : public Distribution {
 public:
  Weighted(std::vector<float> weights, int64_t shards, int64_t shard)
      : weights_(std::move(weights)), shards_(shards), shard_(shard) {
    const auto n = static_cast<int64_t>(weights_.size());
    double sum = 0;
    for (float w : weights_) {
      // The columns are cut in double, the probabilities divided by a float
      // sum, as upstream does.
      sum += w;
      total_ += w;
    }
    cut_.resize(n);
    other_.assign(n, -1);
    std::vector<int64_t> high, low;
    std::vector<double> part(n);
    for (int64_t i = 0; i < n; ++i) {
      // Scaled to a mean of one: each class fills a column of height one or
      // more, or leaves room in it.
      part[i] = weights_[i] * static_cast<double>(n) / sum;
      (part[i] < 1 ? low : high).push_back(i);
    }
    // Vose's way: a class that leaves room gets the rest of its column from one
    // that has more than a column.
    while (!high.empty() && !low.empty()) {
      const int64_t l = low.back(), h = high.back();
      low.pop_back();
      high.pop_back();
      other_[l] = h;
      part[h] -= 1 - part[l];
      (part[h] < 1 ? low : high).push_back(h);
    }
    for (int64_t i = 0; i < n; ++i) cut_[i] = static_cast<float>(part[i]);
    // Whoever is left over has a full column but for rounding.
    for (const auto* rest : {&high, &low}) {
      for (int64_t i : *rest) {
        cut_[i] = 1;
        other_[i] = i;
      }
    }
  }

  int64_t Draw(PhiloxWords& words) const override {
    const uint32_t bits = words.Next();
    // Upstream's uniform float: 23 bits as the fraction of a number in [1, 2),
    // less 1.
    const float r =
        __builtin_bit_cast(float, (127u << 23) | (bits & 0x7fffff)) - 1.0f;
    const auto i =
        static_cast<int64_t>(words.Next() % static_cast<uint32_t>(cut_.size()));
    // A shard has every shards-th class; the columns count within it.
    return (r < cut_[i] ? i : other_[i]) * shards_ + shard_;
  }
  double Probability(int64_t value) const override {
    // Classes of other shards never come up here.
    if (value < 0 || value % shards_ != shard_) return 0;
    const int64_t i = value / shards_;
    if (i >= static_cast<int64_t>(weights_.size())) return 0;
    return weights_[i] / total_;
  }
  // Weights may be too small for the columns, too.
  int64_t classes() const override {
    std::vector<bool> drawn(cut_.size());
    for (size_t i = 0; i < cut_.size(); ++i) {
      if (cut_[i] > 0) drawn[i] = true;
      if (cut_[i] < 1) drawn[other_[i]] = true;
    }
    return std::count(drawn.begin(), drawn.end(), true);
  }

 private:
  const std::vector<float> weights_;
  const int64_t shards_, shard_;
  float total_ = 0;
  std::vector<float> cut_;
  std::vector<int64_t> other_;
};

// By how often a class was a true one in earlier calls, and once more. The
// counts lie in a binary indexed tree: O(log range) to draw and to learn.
class Learned : public Distribution {
 public:
  static StatusOr<std::unique_ptr<Distribution>> Make(int64_t range) {
    // The counts begin at one each and the total is an int32, so there must be
    // room left to learn.
    if (range > std::numeric_limits<int32_t>::max() / 2) {
      return InvalidArgument("range_max is ", range, ", too large to learn");
    }
    return std::make_unique<Learned>(range);
  }
  explicit Learned(int64_t range)
      : range_(range), total_(range), weights_(range, 1), sums_(range + 1, 0) {
    for (int64_t i = 1; i <= range; ++i) {
      // Fenwick's tree, built in linear time: node i sums the i & -i counts up
      // to i and passes its sum on to the next larger node.
      sums_[i] += 1;
      const int64_t next = i + (i & -i);
      if (next <= range) sums_[next] += sums_[i];
    }
    while (highest_ * 2 <= range) highest_ *= 2;
  }

  int64_t Draw(PhiloxWords& words) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int64_t left = words.NextBelow(static_cast<uint32_t>(total_)), at = 0;
    // Binary search down the tree: the largest prefix whose sum is not above
    // the number drawn.
    for (int64_t step = highest_; step > 0; step /= 2) {
      if (at + step <= range_ && sums_[at + step] <= left) {
        at += step;
        left -= sums_[at];
      }
    }
    return at;
  }
  double Probability(int64_t value) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (value < 0 || value >= range_) return 0;
    return static_cast<float>(static_cast<double>(weights_[value]) /
                              static_cast<double>(total_));
  }
  int64_t classes() const override { return range_; }
  void Learn(absl::Span<const int64_t> values) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (int64_t v : values) {
      // Learning ends before the total overflows; the counts are fixed from
      // then on.
      if (total_ >= std::numeric_limits<int32_t>::max()) return;
      ++total_;
      ++weights_[v];
      for (int64_t i = v + 1; i <= range_; i += i & -i) ++sums_[i];
    }
  }
  Status Use(absl::FunctionRef<Status()> use) override {
    // Held for a whole call: the expectations must be those of the counts that
    // the classes were drawn by.
    MutexLock lock(mutex_);
    return use();
  }

 private:
  const int64_t range_;
  int64_t highest_ = 1;
  Mutex mutex_;
  int64_t total_ ABSL_GUARDED_BY(mutex_);
  std::vector<int32_t> weights_ ABSL_GUARDED_BY(mutex_);
  std::vector<int32_t> sums_ ABSL_GUARDED_BY(mutex_);
};

// The last field of each line of a vocabulary is its weight.
StatusOr<std::vector<float>> WeightsOf(const ResolvedOp& op) {
  const auto* unigrams = op.attrs().Get<std::vector<float>>("unigrams");
  const std::string& file = op.string_attr("vocab_file");
  std::vector<float> given;
  if (unigrams && !unigrams->empty()) {
    if (!file.empty()) {
      return InvalidArgument(
          "Must only provide one of vocab_file and unigrams.");
    }
    given = *unigrams;
  } else if (!file.empty()) {
    std::string path;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(file, &path));
    HR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(fs, path));
    for (StringView line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const std::vector<StringView> fields = absl::StrSplit(line, ',');
      float w = 0;
      if (!absl::SimpleAtof(fields.back(), &w)) {
        return InvalidArgument("Wrong vocabulary format at line: ", line);
      }
      given.push_back(w);
    }
  } else {
    return InvalidArgument("Must provide either vocab_file or unigrams.");
  }
  const float distortion = op.float_attr("distortion");
  const int64_t shards = op.int_attr("num_shards"),
                shard = op.int_attr("shard");
  const int64_t reserved = op.int_attr("num_reserved_ids");
  const int64_t range = op.int_attr("range_max");
  if (shard < 0 || shard >= shards || reserved < 0 || reserved > range) {
    return InvalidArgument("shard ", shard, " of ", shards, " and ", reserved,
                           " reserved ids do not fit");
  }
  const int64_t count = reserved + static_cast<int64_t>(given.size());
  if (count != range) {
    return InvalidArgument("range is ", range,
                           " must be equal to weights size  ", count);
  }
  std::vector<float> weights;
  bool any = false;
  for (int64_t i = shard; i < count; i += shards) {
    // Reserved ids come first and are never drawn.
    const float w =
        i < reserved ? 0 : std::pow(given[i - reserved], distortion);
    if (!std::isfinite(w) || w < 0) {
      return InvalidArgument("weights must be finite and not negative");
    }
    any |= w > 0;
    weights.push_back(w);
  }
  // Without a weight the columns could not be scaled, and unique draws would
  // never end.
  if (!any) return InvalidArgument("no class has a weight");
  return weights;
}

StatusOr<std::unique_ptr<Distribution>> DistributionOf(const ResolvedOp& op) {
  const std::string& name = op.name();
  if (name == "FixedUnigramCandidateSampler") {
    HR_ASSIGN_OR_RETURN(std::vector<float> weights, WeightsOf(op));
    return std::make_unique<Weighted>(
        std::move(weights), op.int_attr("num_shards"), op.int_attr("shard"));
  }
  const int64_t range = op.int_attr("range_max");
  if (name == "LogUniformCandidateSampler") {
    return std::make_unique<LogUniform>(range);
  }
  // The "thread unsafe" sampler is locked here too; its results are the same.
  if (name == "LearnedUnigramCandidateSampler" ||
      name == "ThreadUnsafeUnigramCandidateSampler") {
    return Learned::Make(range);
  }
  return std::make_unique<Uniform>(range);
}

// The true classes, input 0, are classes.
Status CheckTrue(const KernelContext& c, int64_t range) {
  const int64_t* classes = c.in<int64_t>(0);
  for (int64_t i = 0; i < c.input(0).num_elements(); ++i) {
    if (classes[i] < 0 || classes[i] >= range) {
      return InvalidArgument("`true_candidate` out of range [0, ", range,
                             "), received ", classes[i]);
    }
  }
  return OkStatus();
}

Status SamplerShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  const int64_t true_count = c.op().int_attr("num_true");
  const Shape& s = c.input(0);
  if (s.known_rank() && s[1] >= 0 && s[1] != true_count) {
    return InvalidArgument(
        "true_classes must have num_true columns, expected: ", s[1],
        " was: ", true_count);
  }
  const int64_t sampled = c.op().int_attr("num_sampled");
  c.set_output(0, Shape{sampled});
  c.set_output(1, Shape{s.known_rank() ? s[0] : -1, true_count});
  c.set_output(2, Shape{sampled});
  return OkStatus();
}

class Sampler : public Kernel {
 public:
  Sampler(const ResolvedOp& op, std::unique_ptr<Distribution> distribution)
      : generator_(op), distribution_(std::move(distribution)) {}

  Status Run(KernelContext& c) override {
    HR_RETURN_IF_ERROR(CheckTrue(c, c.op().int_attr("range_max")));
    return distribution_->Use([&] { return Sample(c); });
  }

 private:
  Status Sample(KernelContext& c) {
    const int64_t n = c.output(0).num_elements();
    int64_t* classes = c.out<int64_t>(0);
    const absl::Span<const int64_t> truth(c.in<int64_t>(0),
                                          c.input(0).num_elements());
    // Groups set aside as upstream does: 2048 numbers for each sample, which
    // leaves room for unique draws.
    HR_ASSIGN_OR_RETURN(const Philox generator,
                        generator_.Reserve(static_cast<uint64_t>(n) * 512));
    PhiloxWords words(generator);
    const bool unique = c.op().bool_attr("unique");
    int64_t tries = n;
    if (!unique) {
      for (int64_t i = 0; i < n; ++i) classes[i] = distribution_->Draw(words);
    } else {
      HR_ASSIGN_OR_RETURN(tries, DrawUnique(c, words, n, classes));
    }
    auto expected = [&](int64_t value) {
      const double p = distribution_->Probability(value);
      const double times = static_cast<double>(tries);
      // The chance to come up at all in that many tries is 1 - (1 - p)^tries;
      // expm1 and log1p keep its digits when p is tiny.
      return static_cast<float>(unique && tries != n
                                    ? -std::expm1(times * std::log1p(-p))
                                    : p * times);
    };
    std::transform(truth.begin(), truth.end(), c.out<float>(1), expected);
    std::transform(classes, classes + n, c.out<float>(2), expected);
    // After the expectations, which must not know of the classes of this call.
    distribution_->Learn(truth);
    return OkStatus();
  }

  // How many draws it took.
  StatusOr<int64_t> DrawUnique(const KernelContext& c, PhiloxWords& words,
                               int64_t n, int64_t* classes) const {
    std::unordered_set<int64_t> used;
    int64_t tries = 0;
    for (int64_t i = 0; i < n; ++tries) {
      // A bound on draws for classes whose weights are all but zero.
      if (tries >= std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("too few classes have a weight");
      }
      // A look now and then, as a check for each draw would cost as much as the
      // draw.
      if (tries % 65536 == 65535) HR_RETURN_IF_ERROR(c.CheckCancelled());
      const int64_t value = distribution_->Draw(words);
      if (used.insert(value).second) classes[i++] = value;
    }
    return tries;
  }

  SeededGenerator generator_;
  const std::unique_ptr<Distribution> distribution_;
};

StatusOr<std::unique_ptr<Kernel>> BindSampler(const ResolvedOp& op) {
  const bool unique = op.bool_attr("unique");
  const int64_t wanted = op.int_attr("num_sampled");
  // Drawing without repetition needs as many classes; otherwise the loop would
  // not end.
  if (unique && wanted > op.int_attr("range_max")) {
    return InvalidArgument("Sampler's range is too small.");
  }
  HR_ASSIGN_OR_RETURN(auto distribution, DistributionOf(op));
  if (unique && wanted > distribution->classes()) {
    return InvalidArgument("Sampler's range is too small: ", wanted,
                           " different classes are wanted, and ",
                           distribution->classes(), " have a weight");
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<Sampler>(op, std::move(distribution)));
}

Status RunAll(KernelContext& c) {
  const int64_t n = c.output(0).num_elements();
  // All classes are sampled, so the range is num_sampled.
  HR_RETURN_IF_ERROR(CheckTrue(c, n));
  for (int64_t i = 0; i < n; ++i) c.out<int64_t>(0)[i] = i;
  // Every class is expected exactly once.
  std::fill_n(c.out<float>(1), c.output(1).num_elements(), 1.0f);
  std::fill_n(c.out<float>(2), n, 1.0f);
  return OkStatus();
}

// (Reach: the one that takes a file of counts does without where it has
// none, so that what it may read is asked where it opens the file.)
OpBuilder SamplerOp(const char* name) {
  OpBuilder b(name);
  b.Input("true_classes: int64")
      .Output("sampled_candidates: int64")
      .Output("true_expected_count: float")
      .Output("sampled_expected_count: float")
      .Attr("num_true: int >= 1")
      .Attr("num_sampled: int >= 1")
      .Attr("unique: bool")
      .Doc("Classes to compare the true ones with.")
      .Stateful()
      .Shape(SamplerShape);
  return b;
}

const bool registered = [] {
  for (const char* name :
       {"UniformCandidateSampler", "LogUniformCandidateSampler",
        "LearnedUnigramCandidateSampler",
        "ThreadUnsafeUnigramCandidateSampler"}) {
    SamplerOp(name)
        .Attr("range_max: int >= 1")
        .Attr("seed: int = 0")
        .Attr("seed2: int = 0")
        .Cpu(BindSampler)
        .Register();
  }
  SamplerOp("FixedUnigramCandidateSampler")
      .Attr("range_max: int >= 1")
      .Attr("vocab_file: string = ''")
      .Attr("distortion: float = 1.0")
      .Attr("num_reserved_ids: int = 0")
      .Attr("num_shards: int >= 1 = 1")
      .Attr("shard: int >= 0 = 0")
      .Attr("unigrams: list(float) = []")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Cpu(BindSampler)
      .Register();
  SamplerOp("AllCandidateSampler")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Cpu(Compute<RunAll>)
      .Register();
  return true;
}();

Status HitsShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  const int64_t count = c.op().int_attr("num_true");
  if (c.input(0).known_rank() && c.input(0)[1] >= 0 && c.input(0)[1] != count) {
    return InvalidArgument(
        "true_candidates must be a batch_size * num_true matrix");
  }
  for (int i = 0; i < 3; ++i) c.set_output(i, Shape{-1});
  return OkStatus();
}

Status RunHits(KernelContext& c) {
  const int64_t columns = c.input(0).dim(1);
  std::unordered_map<int64_t, int64_t> places;
  for (int64_t i = 0; i < c.input(1).num_elements(); ++i) {
    // A class sampled twice is reported at its last place, as upstream's map
    // does.
    places[c.in<int64_t>(1)[i]] = i;
  }
  std::vector<int32_t> rows;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < c.input(0).num_elements(); ++i) {
    const auto found = places.find(c.in<int64_t>(0)[i]);
    if (found == places.end()) continue;
    rows.push_back(static_cast<int32_t>(i / columns));
    ids.push_back(found->second);
  }
  const Shape shape{static_cast<int64_t>(ids.size())};
  for (int i = 0; i < 3; ++i) HR_RETURN_IF_ERROR(c.Allocate(i, shape));
  std::copy(rows.begin(), rows.end(), c.out<int32_t>(0));
  std::copy(ids.begin(), ids.end(), c.out<int64_t>(1));
  // The weight is added to the logits of accidental hits, which takes them out
  // of the softmax.
  std::fill_n(c.out<float>(2), ids.size(),
              std::numeric_limits<float>::lowest());
  return OkStatus();
}

HR_OP(ComputeAccidentalHits)
    .Input("true_classes: int64")
    .Input("sampled_candidates: int64")
    .Output("indices: int32")
    .Output("ids: int64")
    .Output("weights: float")
    .Attr("num_true: int")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Doc("Which sampled classes are true ones, and what takes them out.")
    .Shape(HitsShape)
    .Cpu(Compute<RunHits>);

}  // namespace
}  // namespace headrace
