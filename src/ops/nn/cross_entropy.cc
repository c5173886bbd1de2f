// Softmax cross-entropy of logits with dense or sparse labels; both give the
// loss of each row and its gradient.
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/nn/softmax_loops.h"

namespace headrace {
namespace {

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

Status DenseShape(ShapeContext& c) {
  const Shape &x = c.input(0), &y = c.input(1);
  // Two matrices, or what is broadcast to one.
  auto both = MergeShapes(x.known_rank() ? x : Shape::UnknownOfRank(2), y);
  if (!both.ok() || both->rank() != 2) both = BroadcastShapes(x, y);
  if (!both.ok()) {
    return c.Refuse(
        NotBroadcast(x, y),
        InvalidArgument("logits and labels must be broadcastable: logits_size=",
                        x, " labels_size=", y));
  }
  if (both->known_rank() && both->rank() != 2) {
    return InvalidArgument(
        "logits and labels must be either 2-dimensional, or broadcasted to be "
        "2-dimensional: Shape must be broadcasted with rank 2, but is rank ",
        both->rank());
  }
  if (!both->known_rank()) both = Shape::UnknownOfRank(2);
  c.set_output(0, Shape{(*both)[0]});
  c.set_output(1, *std::move(both));
  return OkStatus();
}

Status SparseShape(ShapeContext& c) {
  const Shape &x = c.input(0), &y = c.input(1);
  if (x.known_rank() && x.rank() != 2) {
    return InvalidArgument("logits must be 2-D, but got shape ", x);
  }
  if (y.known_rank() && y.rank() != 1) {
    return InvalidArgument("labels must be 1-D, but got shape ", y);
  }
  int64_t rows = x.known_rank() ? x[0] : -1;
  const int64_t labels = y.known_rank() ? y[0] : -1;
  if (rows >= 0 && labels >= 0 && rows != labels) {
    return InvalidArgument(
        "logits and labels must have the same first dimension, got logits "
        "shape ",
        x, " and labels shape ", y);
  }
  if (x.known_rank() && x[1] == 0) {
    return InvalidArgument(
        "Must have at least one class, but got logits shape ", x);
  }
  if (rows < 0) rows = labels;
  c.set_output(0, Shape{rows});
  c.set_output(1, Shape{rows, x.known_rank() ? x[1] : -1});
  return OkStatus();
}

// `row` of a matrix that may be broadcast, as n wide elements.
template <typename T>
void ReadRow(const Tensor& t, int64_t row, int64_t n, Wide<T>* out) {
  const int64_t columns = t.rank() == 0 ? 1 : t.dim(t.rank() - 1);
  // Upstream broadcasts labels and logits against each other.
  const bool one_row = t.rank() < 2 || t.dim(0) == 1;
  const T* from = t.data<T>() + (one_row ? 0 : row * columns);
  for (int64_t i = 0; i < n; ++i) out[i] = from[columns == 1 ? 0 : i];
}

// Rows of logits and results in the type that is computed in.
template <typename T>
class Rows {
 public:
  Rows(KernelContext& c, int64_t n) : c_(c), n_(n), x_(n), y_(n) {}
  // exp(x - max) goes to y(); returns its sum.
  Wide<T> Exp(int64_t row) {
    ReadRow<T>(c_.input(0), row, n_, x_.data());
    // exp(x - max): no exponential overflows, and the sum is at least 1.
    return LoopsForSoftmax<Wide<T>>().exp_row(x_.data(), y_.data(), n_, &max_);
  }
  // x(i) is what exp was taken of.
  Wide<T> x(int64_t i) const { return x_[i] - max_; }
  Wide<T>* y() { return y_.data(); }

 private:
  KernelContext& c_;
  const int64_t n_;
  std::vector<Wide<T>> x_, y_;
  Wide<T> max_ = 0;
};

template <typename T>
Status RunDense(KernelContext& c) {
  using W = Wide<T>;
  const int64_t rows = c.output(1).dim(0), n = c.output(1).dim(1);
  T* loss = c.out<T>(0);
  T* backprop = c.out<T>(1);
  ParallelFor(rows, n * 1.5, [&](int64_t begin, int64_t end) {
    Rows<T> r(c, n);
    std::vector<W> labels(n);
    for (int64_t row = begin; row < end; ++row) {
      // -log softmax(x) = log(sum) - (x - max).
      const W sum = r.Exp(row), log_sum = std::log(sum), scale = 1 / sum;
      ReadRow<T>(c.input(1), row, n, labels.data());
      W total = 0;
      for (int64_t i = 0; i < n; ++i) {
        // 0 times an infinite logit would be NaN.
        if (labels[i] != 0) total += labels[i] * (log_sum - r.x(i));
        // The gradient by the logits is softmax less labels, at hardly any
        // further cost.
        backprop[row * n + i] = static_cast<T>(r.y()[i] * scale - labels[i]);
      }
      loss[row] = static_cast<T>(total);
    }
  });
  return OkStatus();
}

// Every label must name a class; upstream's text lists them all.
Status CheckLabels(const Tensor& labels, int64_t classes) {
  for (int64_t i = 0; i < labels.num_elements(); ++i) {
    const int64_t label = labels.IntAt(i);
    if (label >= 0 && label < classes) continue;
    std::string all;
    for (int64_t j = 0; j < labels.num_elements(); ++j) {
      absl::StrAppend(&all, j ? " " : "", labels.IntAt(j));
    }
    return InvalidArgument("Received a label value of ", label,
                           " which is outside the valid range of [0, ", classes,
                           ").  Label values: ", all);
  }
  return OkStatus();
}

template <typename T>
Status RunSparse(KernelContext& c) {
  using W = Wide<T>;
  const Tensor& labels = c.input(1);
  const int64_t rows = c.output(1).dim(0), n = c.output(1).dim(1);
  // Before the threads: none could report.
  HR_RETURN_IF_ERROR(CheckLabels(labels, n));
  T* loss = c.out<T>(0);
  T* backprop = c.out<T>(1);
  ParallelFor(rows, n * 1.2, [&](int64_t begin, int64_t end) {
    Rows<T> r(c, n);
    for (int64_t row = begin; row < end; ++row) {
      const W sum = r.Exp(row), scale = 1 / sum;
      const int64_t label = labels.IntAt(row);
      T* to = backprop + row * n;
      loss[row] = static_cast<T>(std::log(sum) - r.x(label));
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(r.y()[i] * scale);
      to[label] = static_cast<T>(r.y()[label] * scale - 1);
    }
  });
  return OkStatus();
}

template <bool kSparse>
ComputeFn Pick(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), FloatTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fn = kSparse ? RunSparse<T> : RunDense<T>;
  });
  return fn;
}

// A gradient of each row as a column.
Value AsColumn(GradientContext& g, const Value& d) {
  return Named(g, "ExpandDims", "ExpandDims",
               {d, {"dim", Tensor::Scalar<int32_t>(-1)}});
}

// What reaches the logits: by the loss, and by the backprop output, which a
// second derivative differentiates.
Value LogitsGradient(GradientContext& g) {
  // Either output may have a gradient, or both.
  Value d = g.grad(0), dd = g.grad(1), total;
  if (d) {
    Value column = AsColumn(g, d);
    total = Named(g, "mul", "Mul", {column, g.output(1)});
  }
  if (dd) {
    Value softmax = g("Softmax", {g.input(0)});
    // The derivative of softmax: diag(s) - s s^T.
    Value dot = g("Sum", {g("Mul", {dd, softmax}), g.Int32s({1})},
                  {{"keep_dims", true}});
    Value part = g("Mul", {g("Sub", {dd, dot}), softmax});
    total = total ? g("AddV2", {total, part}) : part;
  }
  return total;
}

Status DenseGradient(GradientContext& g) {
  // As upstream: what was broadcast is not summed, and the labels get nothing
  // by way of the backprop output.
  if (Value logits = LogitsGradient(g)) g.set(0, logits);
  if (Value d = g.grad(0); d && g.wants(1)) {
    // The loss is linear in the labels.
    Value slope = g("Neg", {g("LogSoftmax", {g.input(0)})});
    Value column = AsColumn(g, d);
    g.set(1, Named(g, "mul", "Mul", {column, slope}));
  }
  return g.status();
}

Status SparseGradient(GradientContext& g) {
  if (Value v = LogitsGradient(g)) g.set(0, v);
  return g.status();
}

Status VectorizeCrossEntropy(VectorizeContext& c) {
  // Sizes of 1 would broadcast among rows.
  if (!c.row_shape(0).fully_known() || c.row_shape(0) != c.row_shape(1)) {
    return c.Refuse("features and labels may broadcast.");
  }
  return VectorizeFoldedAll(c);
}

HR_OP(SoftmaxCrossEntropyWithLogits)
    .Input("features: T")
    .Input("labels: T")
    .Output("loss: T")
    .Output("backprop: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Doc("Cross-entropy of rows of logits with rows of probabilities.")
    .Shape(DenseShape)
    .Gradient(DenseGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeCrossEntropy)
    .Cpu(ComputeFor<Pick<false>>);

HR_OP(SparseSoftmaxCrossEntropyWithLogits)
    .Input("features: T")
    .Input("labels: Tlabels")
    .Output("loss: T")
    .Output("backprop: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Attr("Tlabels: {int32, int64} = int64")
    .Doc("Cross-entropy of rows of logits with the number of a class each.")
    .Shape(SparseShape)
    .Gradient(SparseGradient)
    .GradientSkips({1}, {0})
    .Vectorize(VectorizeFoldedAll)
    .Cpu(ComputeFor<Pick<true>>);

}  // namespace
}  // namespace headrace
