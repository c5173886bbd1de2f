// Comparisons, and logic of bools.
#include <cmath>

#include "op/float_ops.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// With incompatible_shape_error unset, shapes that do not fit are no error:
// the tensors as wholes differ.
Status EqualShape(ShapeContext& c) {
  if (c.op().bool_attr("incompatible_shape_error")) return BroadcastShape(c);
  StatusOr<Shape> s = BroadcastShapes(c.input(0), c.input(1));
  const bool known = c.input(0).fully_known() && c.input(1).fully_known();
  if (s.ok()) {
    // Sizes that are not known may yet turn out not to fit.
    c.set_output(0,
                 known || c.input(0) == c.input(1) ? *s : Shape::UnknownRank());
  } else {
    // Sizes that cannot fit: a scalar, that says whether the wholes are equal.
    c.set_output(0, Shape());
  }
  return OkStatus();
}

template <bool kNot>
void StringLoop(const void* a, const void* b, void* y, int64_t n, int kind) {
  const auto* p = static_cast<const std::string*>(a);
  const auto* q = static_cast<const std::string*>(b);
  bool* to = static_cast<bool*>(y);
  for (int64_t i = 0; i < n; ++i) {
    to[i] = (p[kind == 1 ? 0 : i] == q[kind == 2 ? 0 : i]) != kNot;
  }
}

// The plain type whose equality is that of `d`.
DType ComparedAs(DType d) {
  switch (d) {
    case DType::kQint8:
    case DType::kInt4:
    case DType::kInt2:
      return DType::kInt8;
    case DType::kQuint8:
    case DType::kBool:
    case DType::kUint4:
    case DType::kUint2:
      return DType::kUint8;
    case DType::kQint16:
      return DType::kInt16;
    case DType::kQuint16:
      return DType::kUint16;
    case DType::kQint32:
      return DType::kInt32;
    default:
      return d;
  }
}

class EqualKernel : public Kernel {
 public:
  EqualKernel(BinaryLoop loop, float ns, bool is_not)
      : loop_(loop), ns_(ns), is_not_(is_not) {}
  Status Run(KernelContext& c) override {
    const Tensor &a = c.input(0), &b = c.input(1);
    // A plan gives memory only where it knew the shape.
    if (!c.output(0).has_buffer() || !a.shape().fully_known()) {
      HR_RETURN_IF_ERROR(c.Allocate(0, Shape()));
    }
    StatusOr<Shape> s = BroadcastShapes(a.shape(), b.shape());
    if (!s.ok()) {
      // Tensors of other shapes differ as wholes.
      *c.out<bool>(0) = is_not_;
      return OkStatus();
    }
    ComputeBinary(loop_, ns_, a, b, c.output(0));
    return OkStatus();
  }

 private:
  const BinaryLoop loop_;
  const float ns_;
  const bool is_not_;
};

template <bool kNot>
StatusOr<std::unique_ptr<Kernel>> MakeEqual(const ResolvedOp& op) {
  const DType t = op.type_attr("T");
  BinaryLoop loop = nullptr;
  float ns = 10;
  SmallLoops small;
  if (t == DType::kString) {
    loop = StringLoop<kNot>;
  } else if (const LoopEntry* e =
                 FindBinaryLoop(op.name(), static_cast<int>(ComparedAs(t)))) {
    loop = e->binary;
    ns = e->ns;
    small = e->small;
  }
  if (loop == nullptr) return nullptr;
  if (op.bool_attr("incompatible_shape_error")) {
    return MakeBinaryKernel(op, loop, ns, small);
  }
  return std::unique_ptr<Kernel>(std::make_unique<EqualKernel>(loop, ns, kNot));
}

class ApproximateKernel : public Kernel {
 public:
  explicit ApproximateKernel(const ResolvedOp& op)
      : tolerance_(op.float_attr("tolerance")) {}
  Status Run(KernelContext& c) override {
    bool found = DispatchDType(c.input(0).dtype(), TypeList<float, double>{},
                               [&](auto tag) {
                                 using T = typename decltype(tag)::type;
                                 const T *a = c.in<T>(0), *b = c.in<T>(1);
                                 bool* y = c.out<bool>(0);
                                 // Compared in the operands' type, as upstream:
                                 // a double is held against the float's value.
                                 const T tolerance = tolerance_;
                                 const int64_t n = c.input(0).num_elements();
                                 for (int64_t i = 0; i < n; ++i) {
                                   // Below, not at: NaN is near nothing.
                                   y[i] = std::fabs(a[i] - b[i]) < tolerance;
                                 }
                               });
    return found ? OkStatus() : Internal("ApproximateEqual: wrong type");
  }

 private:
  const float tolerance_;
};
StatusOr<std::unique_ptr<Kernel>> MakeApproximate(const ResolvedOp& op) {
  const DType t = op.type_attr("T");
  if (t != DType::kFloat && t != DType::kDouble) return nullptr;
  return std::unique_ptr<Kernel>(std::make_unique<ApproximateKernel>(op));
}
Status ApproximateShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  if (!a.CompatibleWith(b)) {
    return InvalidArgument("x and y must be of the same shape. x shape: ", a,
                           ". y shape: ", b);
  }
  return MergeAllInputs(c);
}

OpBuilder CompareOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("x: T")
      .Input("y: T")
      .Output("z: bool")
      .Attr("T: realnumbertype")
      .Doc(doc)
      .Shape(BroadcastShape)
      .Vectorize(VectorizeBroadcast)
      .NoGradient()
      .Cpu(BinaryKernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kCompareOps[] = {
    CompareOp("Less", "x < y."),
    CompareOp("LessEqual", "x <= y."),
    CompareOp("Greater", "x > y."),
    CompareOp("GreaterEqual", "x >= y."),
};

// What compares tensors of any shapes as wholes has a form only where they fit.
Status VectorizeEquality(VectorizeContext& c) {
  if (!c.op().bool_attr("incompatible_shape_error") &&
      !BroadcastShapes(c.row_shape(0), c.row_shape(1)).ok()) {
    return c.Refuse("the shapes do not fit.");
  }
  return VectorizeBroadcast(c);
}

OpBuilder EqualityOp(const char* name, const char* doc, KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("x: T")
      .Input("y: T")
      .Output("z: bool")
      .Attr("T: type")
      .Attr("incompatible_shape_error: bool = true")
      .Doc(doc)
      .Commutative()
      .Shape(EqualShape)
      .Vectorize(VectorizeEquality)
      .NoGradient()
      .Cpu(kernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kEqualities[] = {
    EqualityOp("Equal", "x == y.", MakeEqual<false>),
    EqualityOp("NotEqual", "x != y.", MakeEqual<true>),
};

HR_OP(ApproximateEqual)
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: numbertype")
    .Attr("tolerance: float = 1e-05")
    .Doc("|x - y| < tolerance.")
    .Commutative()
    .Shape(ApproximateShape)
    .Vectorize(VectorizeBatched)
    .NoGradient()
    .Cpu(MakeApproximate);

OpBuilder LogicalOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("x: bool")
      .Input("y: bool")
      .Output("z: bool")
      .Doc(doc)
      .Commutative()
      .Shape(BroadcastShape)
      .Vectorize(VectorizeBroadcast)
      .NoGradient()
      .InPlace({0, 1})
      .Cpu(BinaryKernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kLogicals[] = {
    LogicalOp("LogicalAnd", "x and y."),
    LogicalOp("LogicalOr", "x or y."),
};
HR_OP(LogicalNot)
    .Input("x: bool")
    .Output("y: bool")
    .Doc("not x.")
    .Vectorize(VectorizeBroadcast)
    .Shape(UnchangedShape)
    .NoGradient()
    .InPlace({0})
    .Cpu(UnaryKernel);

const FloatOps compare_float_ops({"Less", "LessEqual", "Greater",
                                  "GreaterEqual", "Equal", "NotEqual"},
                                 FloatOpsPerElement<1>);

}  // namespace
}  // namespace headrace
