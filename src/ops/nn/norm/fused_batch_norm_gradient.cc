#include "ops/nn/norm/fused_batch_norm_gradient.h"

#include "absl/strings/match.h"

namespace headrace {

Status FusedBatchNormGradient(GradientContext& g) {
  Value d = g.grad(0);
  if (!d) return g.status();
  const std::string& name = g.op().name();
  const bool training = g.op().bool_attr("is_training");
  const std::string grad_name =
      "FusedBatchNormGrad" + name.substr(std::string("FusedBatchNorm").size());
  // Given moments in inference; the batch's own in training.
  Value mean = training ? g.output(3) : g.input(3);
  Value variance = training ? g.output(4) : g.input(4);
  ValueList in{d, g.input(0), g.input(1), mean, variance};
  if (g.num_outputs() == 6) in.push_back(g.output(5));
  ValueList out = g.All(grad_name, absl::MakeConstSpan(in),
                        {{"epsilon", g.op().float_attr("epsilon")},
                         {"data_format", g.op().string_attr("data_format")},
                         {"is_training", training}});
  if (!g.ok()) return g.status();
  for (int i = 0; i < 3; ++i) g.set(i, out[i]);
  return g.status();
}

namespace {

// The quantities that batch normalisation's derivatives are made of, over
// channels-last or channels-first tensors in float.
class NormMath {
 public:
  NormMath(GradientContext& g)
      : g_(g),
        first_(absl::StartsWith(g.op().string_attr("data_format"), "NC")),
        training_(g.op().bool_attr("is_training")) {
    const std::string& format = g.op().string_attr("data_format");
    const int rank = static_cast<int>(format.size());
    for (int i = 0; i < rank; ++i) {
      // All but the channels'.
      if (i != (first_ ? 1 : rank - 1)) axes_.push_back(i);
    }
    // A channel's number for each, shaped so that it broadcasts.
    column_.assign(rank, 1);
    column_[first_ ? 1 : rank - 1] = -1;
    dy_ = Float(g.input(0));
    x_ = Float(g.input(1));
    scale_ = Column(g.input(2));
    // Emitted once more in training: their own dependence on x is part of the
    // second derivative.
    mean_ = training_ ? Mean(x_) : Column(g.input(3));
    Value centred = g("Sub", {x_, mean_});
    Value variance =
        training_ ? Mean(g("Square", {centred})) : Column(g.input(4));
    Value epsilon = g.Scalar(DType::kFloat, g.op().float_attr("epsilon"));
    r_ = g("Rsqrt", {g("AddV2", {variance, epsilon})});
    hat_ = Mul(centred, r_);
  }

  Value Mul(const Value& a, const Value& b) { return g_("Mul", {a, b}); }
  Value Add(const Value& a, const Value& b) {
    if (!a) return b;
    return b ? g_("AddV2", {a, b}) : a;
  }
  Value Mean(const Value& v) {
    return g_("Mean", {v, g_.Int32s(axes_)}, {{"keep_dims", true}});
  }
  Value Sum(const Value& v, bool keep = false) {
    return g_("Sum", {v, g_.Int32s(axes_)}, {{"keep_dims", keep}});
  }
  Value Float(const Value& v) {
    if (!v || v.dtype() == DType::kFloat) return v;
    return g_("Cast", {v}, {{"DstT", DType::kFloat}});
  }
  Value Back(const Value& v, const Value& like) {
    if (!v || like.dtype() == DType::kFloat) return v;
    return g_("Cast", {v}, {{"DstT", like.dtype()}});
  }
  Value Column(const Value& v) {
    return v ? g_("Reshape", {Float(v), g_.Int32s(column_)}) : v;
  }
  // v without its mean and its part along hat.
  Value Project(const Value& v) {
    Value rest = g_("Sub", {v, Mean(v)});
    return g_("Sub", {rest, Mul(hat_, Mean(Mul(v, hat_)))});
  }

  Status Emit(const Value& ddx, const Value& dds, const Value& ddb);

 private:
  GradientContext& g_;
  const bool first_, training_;
  std::vector<int32_t> axes_, column_;
  Value dy_, x_, scale_, mean_, r_, hat_;
};

// ddx, dds, ddb: what arrives at x_backprop, scale_backprop, offset_backprop.
// With P the projection, x_backprop = scale r P(dy).
Status NormMath::Emit(const Value& ddx, const Value& dds, const Value& ddb) {
  Value to_dy, to_x, to_scale;
  Value sr = Mul(scale_, r_);
  if (ddx) {
    Value projected = training_ ? Project(ddx) : ddx;
    to_dy = Mul(sr, projected);
    Value whole = Mul(projected, dy_);
    to_scale = Sum(Mul(r_, whole));
    if (training_) {
      // By way of hat, then by way of r.
      Value by_hat =
          Add(Mul(ddx, Mean(Mul(dy_, hat_))), Mul(dy_, Mean(Mul(ddx, hat_))));
      Value h = g_("Neg", {Mul(sr, by_hat)});
      if (dds) h = Add(h, Mul(dds, dy_));
      to_x = Mul(r_, Project(h));
      Value by_r = Mul(Mul(sr, r_), Mean(whole));
      to_x = g_("Sub", {to_x, Mul(by_r, hat_)});
    }
  }
  if (dds) {
    to_dy = Add(to_dy, Mul(dds, hat_));
    Value h = Mul(dds, dy_);
    if (!training_) {
      to_x = Mul(r_, h);
    } else if (!ddx) {
      to_x = Mul(r_, Project(h));
    }
  }
  if (ddb) {
    // offset_backprop is the plain sum of dy.
    Value ones = g_("OnesLike", {dy_});
    to_dy = Add(to_dy, Mul(ddb, ones));
  }
  if (to_dy) g_.set(0, Back(to_dy, g_.input(0)));
  if (to_x) g_.set(1, Back(to_x, g_.input(1)));
  if (to_scale) g_.set(2, Back(to_scale, g_.input(2)));
  return g_.status();
}

}  // namespace

Status FusedBatchNormGradGradient(GradientContext& g) {
  NormMath math(g);
  Value ddx = math.Float(g.grad(0));
  Value dds = math.Column(g.grad(1)), ddb = math.Column(g.grad(2));
  if (!ddx && !dds && !ddb) return g.status();
  return math.Emit(ddx, dds, ddb);
}

}  // namespace headrace
