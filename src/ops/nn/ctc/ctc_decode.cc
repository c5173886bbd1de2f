// CTCGreedyDecoder and CTCBeamSearchDecoder: labels from logits over time.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "op/op.h"
#include "ops/nn/ctc/ctc.h"

namespace headrace {
namespace {

using Sequence = std::vector<int64_t>;

Status CheckLogits(const ShapeContext& c, int64_t* batch) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 3));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  *batch = c.input(0).known_rank() ? c.input(0)[1] : -1;
  if (*batch < 0 && c.input(1).known_rank()) *batch = c.input(1)[0];
  return OkStatus();
}

// Sequences that begin `path` in the outputs: a sparse [batch, longest].
Status SetDecoded(const KernelContext& c, int first, int step,
                  const std::vector<Sequence>& decoded) {
  int64_t count = 0, longest = 0;
  for (const Sequence& s : decoded) {
    count += static_cast<int64_t>(s.size());
    longest = std::max(longest, static_cast<int64_t>(s.size()));
  }
  HR_RETURN_IF_ERROR(c.Allocate(first, Shape{count, 2}));
  HR_RETURN_IF_ERROR(c.Allocate(first + step, Shape{count}));
  // The outputs of one path lie `step` apart: first all indices, then all
  // values, then all shapes.
  HR_RETURN_IF_ERROR(c.Allocate(first + 2 * step, Shape{2}));
  int64_t* at = c.out<int64_t>(first);
  int64_t* values = c.out<int64_t>(first + step);
  for (size_t b = 0; b < decoded.size(); ++b) {
    for (size_t i = 0; i < decoded[b].size(); ++i) {
      *at++ = static_cast<int64_t>(b);
      *at++ = static_cast<int64_t>(i);
      *values++ = decoded[b][i];
    }
  }
  c.out<int64_t>(first + 2 * step)[0] = static_cast<int64_t>(decoded.size());
  c.out<int64_t>(first + 2 * step)[1] = longest;
  return OkStatus();
}

Status CheckLengths(const KernelContext& c) {
  const Shape& s = c.input(0).shape();
  if (c.input(1).num_elements() != s[1]) {
    return FailedPrecondition("len(sequence_length) != batch_size.  ",
                              "len(sequence_length):  ",
                              c.input(1).num_elements(), " batch_size: ", s[1]);
  }
  if (s[2] == 0 || s[0] == 0) {
    return InvalidArgument("inputs must not have 0 classes or steps, got ", s);
  }
  for (int64_t b = 0; b < s[1]; ++b) {
    const int64_t length = c.in<int32_t>(1)[b];
    if (length < 0 || length > s[0]) {
      return FailedPrecondition("sequence_length(", b, ") <= ", s[0]);
    }
  }
  return OkStatus();
}

Status GreedyShape(ShapeContext& c) {
  int64_t batch;
  HR_RETURN_IF_ERROR(CheckLogits(c, &batch));
  c.set_output(0, Shape{-1, 2});
  c.set_output(1, Shape{-1});
  c.set_output(2, Shape{2});
  c.set_output(3, Shape{batch, 1});
  return OkStatus();
}

template <typename T>
Status RunGreedy(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckLengths(c));
  const Shape& s = c.input(0).shape();
  const int64_t batch = s[1], classes = s[2];
  const bool merge = c.op().bool_attr("merge_repeated");
  int64_t blank = c.op().int_attr("blank_index");
  // Counted from the end, -1 the last class.
  if (blank < 0) blank += classes;
  if (blank < 0 || blank >= classes) {
    return InvalidArgument("blank_index expected to be between ", -classes,
                           " and ", classes - 1, " but was ", blank);
  }
  std::vector<Sequence> decoded(batch);
  HR_RETURN_IF_ERROR(c.Allocate(3, Shape{batch, 1}));
  for (int64_t b = 0; b < batch; ++b) {
    T sum = 0;
    int64_t before = -1;
    for (int64_t t = 0; t < c.in<int32_t>(1)[b]; ++t) {
      const T* row = c.in<T>(0) + (t * batch + b) * classes;
      const int64_t best = std::max_element(row, row + classes) - row;
      // The negative of the logits' sum, as upstream gives it.
      sum -= row[best];
      // Equal labels merge unless a blank is between them.
      if (best != blank && !(merge && best == before)) {
        decoded[b].push_back(best);
      }
      before = best;
    }
    c.out<T>(3)[b] = sum;
  }
  return SetDecoded(c, 0, 1, decoded);
}

ComputeFn PickGreedy(const ResolvedOp& op) {
  return op.type_attr("T") == DType::kDouble ? RunGreedy<double>
                                             : RunGreedy<float>;
}

StatusOr<std::unique_ptr<Kernel>> BindGreedy(const ResolvedOp& op) {
  return MakeKernel(PickGreedy(op), /*own_outputs=*/true);
}

HR_OP(CTCGreedyDecoder)
    .Input("inputs: T")
    .Input("sequence_length: int32")
    .Output("decoded_indices: int64")
    .Output("decoded_values: int64")
    .Output("decoded_shape: int64")
    .Output("log_probability: T")
    .Attr("merge_repeated: bool = false")
    .Attr("blank_index: int = -1")
    .Attr("T: {float, double} = DT_FLOAT")
    .Doc("The most likely class of each step, without blanks.")
    .Shape(GreedyShape)
    .NoGradient()
    .Cpu(BindGreedy);

// A prefix of labels, and how likely it is to end here: with a blank last, or
// with its label.
struct Prefix {
  Prefix* parent = nullptr;
  int64_t label = -1;
  double blank = kNever, own = kNever;          // at this step
  double old_blank = kNever, old_own = kNever;  // at the step before
  bool active = false;                          // among the beam
  std::map<int64_t, std::unique_ptr<Prefix>> children;
  double total() const { return LogAdd(blank, own); }
  double old_total() const { return LogAdd(old_blank, old_own); }
};

// The likeliest prefixes, found step by step.
class Beam {
 public:
  Beam(int64_t width, int64_t classes) : width_(width), classes_(classes) {
    // log 1: before the first step the empty prefix is certain.
    root_.blank = 0;
    root_.active = true;
    leaves_.push_back(&root_);
  }

  template <typename T>
  void Step(const T* row) {
    const double top = *std::max_element(row, row + classes_);
    double sum = 0;
    for (int64_t k = 0; k < classes_; ++k) sum += std::exp(row[k] - top);
    // log-softmax; the largest logit out first, so that exp cannot overflow.
    const double norm = top + std::log(sum);
    auto log_of = [&](int64_t k) { return row[k] - norm; };
    for (Prefix* p : leaves_) {
      p->old_blank = p->blank;
      p->old_own = p->own;
    }
    // First all as they were, then what grows out of them: growing reads the
    // states of the step before.
    for (Prefix* p : leaves_) Stay(p, log_of(blank()), log_of);
    Sort();
    // A copy: growing changes the beam.
    const std::vector<Prefix*> branches = leaves_;
    for (Prefix* p : branches) Grow(p, log_of);
    Sort();
  }

  // The likeliest first; at most `count`.
  std::vector<const Prefix*> Best(int64_t count) const {
    const auto n = std::min<size_t>(leaves_.size(), count);
    return {leaves_.begin(), leaves_.begin() + n};
  }

 private:
  int64_t blank() const { return classes_ - 1; }

  template <typename F>
  void Stay(Prefix* p, double log_blank, const F& log_of) {
    if (p->parent) {
      if (p->parent->active) {
        // What the parent grows into this one by, in its old state.
        // A label repeated needs a blank between, else it is the same one going
        // on.
        const double from = p->label == p->parent->label
                                ? p->parent->old_blank
                                : p->parent->old_total();
        p->own = LogAdd(p->old_own, from);
      }
      p->own += log_of(p->label);
    }
    p->blank = p->old_total() + log_blank;
  }

  template <typename F>
  void Grow(Prefix* p, const F& log_of) {
    // Nothing that grows out of it is likelier than it was.
    if (Full() && p->old_total() <= leaves_.back()->total()) return;
    for (int64_t k = 0; k < blank(); ++k) {
      // Kept though it may leave the beam: it may come back with more behind
      // it.
      auto& child = p->children[k];
      if (!child) {
        child = std::make_unique<Prefix>();
        child->parent = p;
        child->label = k;
      }
      // Grown by Stay already.
      if (child->active) continue;
      const double from = k == p->label ? p->old_blank : p->old_total();
      const double own = log_of(k) + from;
      if (own == kNever || (Full() && own <= leaves_.back()->total())) continue;
      child->blank = kNever;
      child->own = own;
      Insert(child.get());
    }
  }

  bool Full() const { return static_cast<int64_t>(leaves_.size()) >= width_; }

  void Insert(Prefix* p) {
    if (Full()) {
      Prefix* out = leaves_.back();
      out->active = false;
      out->blank = out->own = kNever;  // it may yet grow by its old state
      leaves_.pop_back();
    }
    p->active = true;
    const double total = p->total();
    // Behind its equals: who came first stays.
    auto at = std::upper_bound(
        leaves_.begin(), leaves_.end(), total,
        [](double t, const Prefix* q) { return t > q->total(); });
    leaves_.insert(at, p);
  }

  void Sort() {
    // Equal prefixes keep their order, as which of them falls off decides the
    // result.
    std::stable_sort(leaves_.begin(), leaves_.end(),
                     [](const Prefix* a, const Prefix* b) {
                       return a->total() > b->total();
                     });
  }

  const int64_t width_, classes_;
  Prefix root_;
  std::vector<Prefix*> leaves_;  // the beam, the likeliest first
};

Sequence LabelsOf(const Prefix* p, bool merge) {
  Sequence labels;
  for (int64_t before = -1; p->parent; p = p->parent) {
    // Upstream's option merges the labels of the path itself, blanks or not.
    if (!merge || p->label != before) labels.push_back(p->label);
    before = p->label;
  }
  std::reverse(labels.begin(), labels.end());
  return labels;
}

Status BeamShape(ShapeContext& c) {
  int64_t batch;
  HR_RETURN_IF_ERROR(CheckLogits(c, &batch));
  const int paths = static_cast<int>(c.op().int_attr("top_paths"));
  for (int i = 0; i < paths; ++i) {
    c.set_output(i, Shape{-1, 2});
    c.set_output(paths + i, Shape{-1});
    c.set_output(2 * paths + i, Shape{2});
  }
  c.set_output(3 * paths, Shape{batch, paths});
  return OkStatus();
}

template <typename T>
Status RunBeam(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckLengths(c));
  const Shape& s = c.input(0).shape();
  const int64_t batch = s[1], classes = s[2];
  const int64_t paths = c.op().int_attr("top_paths");
  const int64_t width = c.op().int_attr("beam_width");
  const bool merge = c.op().bool_attr("merge_repeated");
  std::vector<std::vector<Sequence>> decoded(paths,
                                             std::vector<Sequence>(batch));
  HR_RETURN_IF_ERROR(
      c.Allocate(static_cast<int>(3 * paths), Shape{batch, paths}));
  T* scores = c.out<T>(static_cast<int>(3 * paths));
  for (int64_t b = 0; b < batch; ++b) {
    // Searches are slow: a stop is looked for between sequences.
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    Beam beam(width, classes);
    for (int64_t t = 0; t < c.in<int32_t>(1)[b]; ++t) {
      beam.Step(c.in<T>(0) + (t * batch + b) * classes);
    }
    const std::vector<const Prefix*> best = beam.Best(paths);
    if (static_cast<int64_t>(best.size()) < paths) {
      return InvalidArgument("Less leaves in the beam search than requested.");
    }
    for (int64_t p = 0; p < paths; ++p) {
      decoded[p][b] = LabelsOf(best[p], merge);
      scores[b * paths + p] = static_cast<T>(best[p]->total());
    }
  }
  for (int64_t p = 0; p < paths; ++p) {
    HR_RETURN_IF_ERROR(SetDecoded(c, static_cast<int>(p),
                                  static_cast<int>(paths), decoded[p]));
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Kernel>> BindBeam(const ResolvedOp& op) {
  if (op.int_attr("top_paths") > op.int_attr("beam_width")) {
    return InvalidArgument("requested more paths than the beam width.");
  }
  const bool wide = op.type_attr("T") == DType::kDouble;
  return MakeKernel(wide ? RunBeam<double> : RunBeam<float>,
                    /*own_outputs=*/true);
}

HR_OP(CTCBeamSearchDecoder)
    .Input("inputs: T")
    .Input("sequence_length: int32")
    .Output("decoded_indices: top_paths * int64")
    .Output("decoded_values: top_paths * int64")
    .Output("decoded_shape: top_paths * int64")
    .Output("log_probability: T")
    .Attr("beam_width: int >= 1")
    .Attr("top_paths: int >= 1")
    .Attr("merge_repeated: bool = true")
    .Attr("T: {float, double} = DT_FLOAT")
    .Doc("The likeliest sequences of labels, however they lie in time.")
    .Shape(BeamShape)
    .NoGradient()
    .Cpu(BindBeam);

}  // namespace
}  // namespace headrace
