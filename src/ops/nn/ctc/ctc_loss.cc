// CTCLoss: how unlikely a sequence of labels is, and the gradient for logits.
// Labels stand between blanks (the last class): an extended sequence whose
// paths through time are summed forwards and backwards, in logarithms.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/nn/ctc/ctc.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

struct Options {
  bool collapse, merge, ignore_longer;
  explicit Options(const ResolvedOp& op)
      : collapse(op.bool_attr("preprocess_collapse_repeated")),
        merge(op.bool_attr("ctc_merge_repeated")),
        ignore_longer(op.bool_attr("ignore_longer_outputs_than_inputs")) {}
};

Status LossShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 3));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 1));
  const Shape &x = c.input(0), &lengths = c.input(3);
  if (c.input(1).known_rank() && c.input(2).known_rank() &&
      c.input(1)[0] >= 0 && c.input(2)[0] >= 0 &&
      c.input(1)[0] != c.input(2)[0]) {
    return InvalidArgument("Dimensions must be equal, but are ", c.input(1)[0],
                           " and ", c.input(2)[0]);
  }
  int64_t batch = x.known_rank() ? x[1] : -1;
  if (batch < 0 && lengths.known_rank()) batch = lengths[0];
  c.set_output(0, Shape{batch});
  c.set_output(1, x);
  return OkStatus();
}

// One sequence: probabilities y [time, classes] and its labels.
class Paths {
 public:
  Paths(const double* y, int64_t time, int64_t classes,
        const std::vector<int32_t>& labels, bool merge)
      : y_(y), time_(time), classes_(classes), blank_(classes - 1) {
    // A blank before, between and behind all.
    extended_.assign(2 * labels.size() + 1, static_cast<int32_t>(blank_));
    for (size_t i = 0; i < labels.size(); ++i) extended_[2 * i + 1] = labels[i];
    const int64_t n = size();
    skips_.assign(n, false);
    stays_.assign(n, true);
    for (int64_t u = 0; u < n; ++u) {
      if (extended_[u] == blank_) continue;
      // Without merging a label lasts one step.
      stays_[u] = merge;
      // Past the blank between two labels, but not between equal ones, which
      // would merge.
      skips_[u] = u > 1 && !(merge && extended_[u] == extended_[u - 2]);
    }
  }

  // The loss; fills dy [time, classes] with its gradient for the logits.
  double Run(double* dy) {
    // The gradient for logits: softmax less the share of the paths through each
    // class.
    std::copy_n(y_, time_ * classes_, dy);
    const int64_t n = size();
    Forwards();
    const double* last = alpha_.data() + (time_ - 1) * n;
    double total = last[n - 1];
    // A path ends in the last blank or in the last label.
    if (n > 1) total = LogAdd(total, last[n - 2]);
    // No path: an infinite loss, and softmax as the gradient.
    if (total == kNever) return -kNever;
    std::vector<double> beta(n, kNever), next(n), used(classes_);
    beta[n - 1] = 0;
    if (n > 1) beta[n - 2] = 0;
    for (int64_t t = time_ - 1; t >= 0; --t) {
      std::fill(used.begin(), used.end(), kNever);
      for (int64_t u = 0; u < n; ++u) {
        double& sum = used[extended_[u]];
        // All paths through u at t: the ways there times the ways on.
        sum = LogAdd(sum, alpha_[t * n + u] + beta[u]);
      }
      for (int64_t k = 0; k < classes_; ++k) {
        dy[t * classes_ + k] -= std::exp(used[k] - total);
      }
      if (t > 0) Backwards(t, &beta, &next);
    }
    return -total;
  }

 private:
  int64_t size() const { return static_cast<int64_t>(extended_.size()); }
  double Log(int64_t t, int64_t u) const {
    return std::log(y_[t * classes_ + extended_[u]]);
  }

  // alpha[t][u]: all ways to be at u at time t, that step counted.
  void Forwards() {
    const int64_t n = size();
    alpha_.assign(time_ * n, kNever);
    alpha_[0] = Log(0, 0);
    if (n > 1) alpha_[1] = Log(0, 1);
    for (int64_t t = 1; t < time_; ++t) {
      const double* before = alpha_.data() + (t - 1) * n;
      for (int64_t u = 0; u < n; ++u) {
        double sum = stays_[u] ? before[u] : kNever;
        if (u > 0) sum = LogAdd(sum, before[u - 1]);
        if (skips_[u]) sum = LogAdd(sum, before[u - 2]);
        alpha_[t * n + u] = Log(t, u) + sum;
      }
    }
  }

  // From all ways to the end after time t to those after time t - 1.
  void Backwards(int64_t t, std::vector<double>* beta,
                 std::vector<double>* next) const {
    const int64_t n = size();
    for (int64_t u = 0; u < n; ++u) {
      double sum = stays_[u] ? (*beta)[u] + Log(t, u) : kNever;
      if (u + 1 < n) sum = LogAdd(sum, (*beta)[u + 1] + Log(t, u + 1));
      if (u + 2 < n && skips_[u + 2]) {
        sum = LogAdd(sum, (*beta)[u + 2] + Log(t, u + 2));
      }
      (*next)[u] = sum;
    }
    beta->swap(*next);
  }

  const double* y_;
  const int64_t time_, classes_, blank_;
  std::vector<int32_t> extended_;
  std::vector<bool> skips_, stays_;
  std::vector<double> alpha_;
};

using Labels = std::vector<std::vector<int32_t>>;

std::string Listed(const std::vector<int32_t>& labels) {
  return JoinInts(Dims(labels.begin(), labels.end()));
}

// Labels are classes below the blank; what is not may follow them and is cut
// off.
Status CheckLabels(std::vector<int32_t>& labels, int64_t b, int64_t classes) {
  const auto blank = static_cast<int32_t>(classes - 1);
  const auto end = std::find_if(labels.begin(), labels.end(),
                                [&](int32_t v) { return v >= blank; });
  if (std::any_of(labels.begin(), end, [](int32_t v) { return v < 0; })) {
    return InvalidArgument("All labels must be nonnegative integers, batch: ",
                           b, " labels: ", Listed(labels));
  }
  if (std::any_of(end, labels.end(), [&](int32_t v) { return v < blank; })) {
    return InvalidArgument(
        "Saw a non-null label (index >= num_classes - 1) following a null "
        "label, batch: ",
        b, " num_classes: ", classes, " labels: ", Listed(labels));
  }
  labels.erase(end, labels.end());
  return OkStatus();
}

// Labels of each sequence, from a sparse [batch, length] in order.
StatusOr<Labels> LabelsOf(const KernelContext& c, int64_t batch,
                          int64_t classes) {
  const Tensor& at = c.input(1);
  if (at.dim(1) != 2) {
    return InvalidArgument("labels_indices must be of shape [n, 2], got ",
                           at.shape());
  }
  Labels labels(batch);
  std::vector<int64_t> last(batch, -1);
  for (int64_t i = 0; i < at.dim(0); ++i) {
    const int64_t b = at.data<int64_t>()[2 * i];
    const int64_t place = at.data<int64_t>()[2 * i + 1];
    if (b < 0 || b >= batch) {
      return InvalidArgument("labels batch must be between 0 and ", batch,
                             " but saw: ", b);
    }
    // Sparse indices in order, so that labels can be taken as they come.
    if (place <= last[b]) {
      return InvalidArgument("labels_indices[", i, ",:] is out of order");
    }
    last[b] = place;
    labels[b].push_back(c.in<int32_t>(2)[i]);
  }
  for (int64_t b = 0; b < batch; ++b) {
    if (labels[b].empty()) {
      return InvalidArgument("Labels length is zero in batch ", b);
    }
    HR_RETURN_IF_ERROR(CheckLabels(labels[b], b, classes));
  }
  return labels;
}

// Each label needs a step of time. (A blank between equal ones, too; without
// time for those there is no path, and the loss is infinite.)
Status CheckTime(const std::vector<int32_t>& labels, int64_t time, int64_t b) {
  const auto needed = static_cast<int64_t>(labels.size());
  if (needed <= time) return OkStatus();
  return InvalidArgument(
      "Not enough time for target transition sequence (required: ", needed,
      ", available: ", time, ")", b,
      "You can turn this error into a warning by using the flag "
      "ignore_longer_outputs_than_inputs");
}

template <typename T>
void RunSequence(const KernelContext& c, int64_t b, const Options& options,
                 const std::vector<int32_t>& labels) {
  const Shape& s = c.input(0).shape();
  const int64_t batch = s[1], classes = s[2], time = c.in<int32_t>(3)[b];
  const T* x = c.in<T>(0) + b * classes;
  std::vector<double> y(time * classes), dy(time * classes);
  for (int64_t t = 0; t < time; ++t) {
    const T* row = x + t * batch * classes;
    const double top = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) {
      sum += y[t * classes + k] = std::exp(row[k] - top);
    }
    for (int64_t k = 0; k < classes; ++k) y[t * classes + k] /= sum;
  }
  Paths paths(y.data(), time, classes, labels, options.merge);
  c.out<T>(0)[b] = static_cast<T>(paths.Run(dy.data()));
  T* to = c.out<T>(1) + b * classes;
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t k = 0; k < classes; ++k) {
      to[t * batch * classes + k] = static_cast<T>(dy[t * classes + k]);
    }
  }
}

template <typename T>
Status RunLoss(KernelContext& c) {
  const Options options(c.op());
  const Shape& s = c.input(0).shape();
  const int64_t time = s[0], batch = s[1], classes = s[2];
  if (c.input(3).num_elements() != batch) {
    return InvalidArgument("len(sequence_length) != batch_size.  ",
                           "len(sequence_length):  ", c.input(3).num_elements(),
                           " batch_size: ", batch);
  }
  if (time == 0 || classes == 0 || batch == 0) {
    return InvalidArgument("inputs must not have 0 elements, got ", s);
  }
  HR_ASSIGN_OR_RETURN(Labels labels, LabelsOf(c, batch, classes));
  // Sequences that are ignored have no loss and no gradient.
  std::fill_n(c.out<T>(0), batch, T(0));
  std::fill_n(c.out<T>(1), c.input(0).num_elements(), T(0));
  std::vector<int64_t> chosen;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = c.in<int32_t>(3)[b];
    if (length < 0) {
      return InvalidArgument("sequence_length(", b, ") < 0");
    }
    if (length > time) {
      return InvalidArgument("sequence_length(", b, ") <= ", time);
    }
    std::vector<int32_t>& own = labels[b];
    if (options.collapse) {
      // Before the time is checked: fewer labels need less.
      own.erase(std::unique(own.begin(), own.end()), own.end());
    }
    const Status fits = CheckTime(own, length, b);
    if (!fits.ok() && !options.ignore_longer) return fits;
    if (fits.ok() && length > 0) chosen.push_back(b);
  }
  const double cost = 50.0 * static_cast<double>(time * classes);
  ParallelFor(static_cast<int64_t>(chosen.size()), cost,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  RunSequence<T>(c, chosen[i], options, labels[chosen[i]]);
                }
              });
  return OkStatus();
}

ComputeFn PickLoss(const ResolvedOp& op) {
  return op.type_attr("T") == DType::kDouble ? RunLoss<double> : RunLoss<float>;
}

// Its own output is the gradient, once; a second one has no rule.
Status LossGradient(GradientContext& g) {
  Value dy = g.grad(0);
  if (!dy) return g.status();
  Value slope = g(
      "PreventGradient", {g.output(1)},
      {{"message", std::string("Currently there is no way to take the second "
                               " derivative of ctc_loss due to the fused "
                               "implementation's interaction with tf.gradients"
                               "()")}});
  Value column =
      g("ExpandDims", {g("ExpandDims", {dy, g.Int32(0)}), g.Int32(2)});
  g.set(0, g("Mul", {column, slope}));
  return g.status();
}

HR_OP(CTCLoss)
    .Input("inputs: T")
    .Input("labels_indices: int64")
    .Input("labels_values: int32")
    .Input("sequence_length: int32")
    .Output("loss: T")
    .Output("gradient: T")
    .Attr("preprocess_collapse_repeated: bool = false")
    .Attr("ctc_merge_repeated: bool = true")
    .Attr("ignore_longer_outputs_than_inputs: bool = false")
    .Attr("T: {float, double} = DT_FLOAT")
    .Doc("How unlikely labels are, however they lie in time; and its gradient.")
    .Shape(LossShape)
    .Gradient(LossGradient)
    .GradientSkips({0, 1, 2, 3}, {0})
    .Cpu(ComputeFor<PickLoss>);

}  // namespace
}  // namespace headrace
