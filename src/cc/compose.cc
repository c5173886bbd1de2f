#include "cc/compose.h"

#include "cc/seeds.h"

namespace headrace::tf::internal {

void Throw(ErrorCode code, const std::string& text) { throw Error(code, text); }

std::vector<Tensor> OpAll(const char* op, const std::vector<Tensor>& inputs,
                          const AttrMap& attrs) {
  return TensorsOf(CallOp(op, ValuesOf(inputs), attrs));
}

Tensor Op(const char* op, const std::vector<Tensor>& inputs,
          const AttrMap& attrs) {
  return CallOp1(op, ValuesOf(inputs), attrs);
}

Tensor Constant(headrace::Tensor t) {
  OpScope scope;
  Value v = scope.Const(std::move(t));
  Check(scope.status());
  return Access::Wrap(std::move(v));
}

Tensor Number(DType dtype, double v) {
  return Constant(Check(ScalarOf(Core(dtype), v)));
}

Tensor Int(int64_t v) { return Number(DType::kInt32, static_cast<double>(v)); }

Tensor Ints(const std::vector<int64_t>& values) {
  std::vector<int32_t> narrow;
  for (const int64_t v : values) {
    // Shapes and axes go as int32, as Python's do: then both languages build
    // the same graphs.
    if (v != static_cast<int32_t>(v)) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("the size ", v, " does not fit into 32 bits"));
    }
    narrow.push_back(static_cast<int32_t>(v));
  }
  return Constant(headrace::Tensor::Vector<int32_t>(narrow));
}

Tensor Full(DType dtype, const TensorShape& shape, double v) {
  return Op("Fill", {Constant(headrace::Tensor::Vector<int64_t>(shape.dims)),
                     Number(dtype, v)});
}

Tensor Cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return Op("Cast", {x}, {{"DstT", Core(dtype)}});
}

Tensor Reshape(const Tensor& x, const std::vector<int64_t>& shape) {
  return Op("Reshape", {x, Ints(shape)});
}

Tensor Transpose(const Tensor& x, const std::vector<int64_t>& order) {
  return Op("Transpose", {x, Ints(order)});
}

Tensor ShapeOf(const Tensor& x) {
  OpScope scope;
  Value shape = scope.ShapeOf(Access::ValueOf(x));
  Check(scope.status());
  return Access::Wrap(std::move(shape));
}

Tensor Reduce(const char* op, const Tensor& x, std::vector<int64_t> axes,
              bool keep_dims) {
  // No axes mean all of them, as in Python.
  if (axes.empty()) {
    if (!x.shape().known_rank) {
      const Tensor rank = Op("Rank", {x});
      const Tensor all = Op("Range", {Int(0), rank, Int(1)});
      return Op(op, {x, all}, {{"keep_dims", keep_dims}});
    }
    for (int i = 0; i < x.shape().rank(); ++i) axes.push_back(i);
  }
  return Op(op, {x, Ints(axes)}, {{"keep_dims", keep_dims}});
}

Tensor SumAll(const Tensor& x) { return Reduce("Sum", x, {}); }
Tensor MeanAll(const Tensor& x) { return Reduce("Mean", x, {}); }

Tensor DivideNoNan(const Tensor& num, const Tensor& den) {
  return Op("DivNoNan", {num, den});
}

Tensor ClipByValue(const Tensor& x, double low, double high) {
  // In Python's order: where the bounds cross, the lower one wins.
  const Tensor below = Op("Minimum", {x, Number(x.dtype(), high)});
  return Op("Maximum", {below, Number(x.dtype(), low)});
}

Tensor ClipByNorm(const Tensor& x, double limit) {
  const Tensor squares = Reduce("Sum", x * x, {}, /*keep_dims=*/true);
  const Tensor positive = squares > 0;
  // The root of 0 has an infinite gradient, which a selection would turn into
  // NaN: the other branch is computed at 1.
  const Tensor safe =
      Op("SelectV2", {positive, squares, Op("OnesLike", {squares})});
  const Tensor norm = Op("SelectV2", {positive, Op("Sqrt", {safe}), squares});
  const Tensor most = Number(x.dtype(), limit);
  return x * most / Op("Maximum", {norm, most});
}

std::vector<Tensor> ClipByGlobalNorm(const std::vector<Tensor>& list,
                                     double limit) {
  std::vector<Tensor> halves, out;
  // Half the sum of squares, in one op; the factor of two comes back below.
  for (const Tensor& t : list) halves.push_back(Op("L2Loss", {t}));
  const int64_t count = static_cast<int64_t>(list.size());
  const Tensor total = SumAll(Op("Pack", halves, {{"N", count}, {"axis", 0}}));
  const Tensor norm = Op("Sqrt", {total * 2.0});
  const Tensor one = Number(norm.dtype(), 1),
               most = Number(norm.dtype(), limit);
  // min(1 / norm, 1 / limit) * limit is limit / max(norm, limit), as upstream
  // writes it.
  const Tensor finite = most * Op("Minimum", {one / norm, one / most});
  const Tensor scale = finite + (norm - norm);  // NaN where it is not finite
  for (const Tensor& t : list) out.push_back(t * scale);
  return out;
}

Tensor TimesKernel(const Tensor& x, const Tensor& kernel) {
  const TensorShape shape = x.shape();
  if (shape.rank() == 2 || !shape.known_rank) return Op("MatMul", {x, kernel});
  const int last = shape.rank() - 1;
  const int64_t width = kernel.shape()[1];
  // More dimensions than two are rows of one matrix: one large product instead
  // of many small ones.
  const Tensor rows = Reshape(x, {-1, kernel.shape()[0]});
  const Tensor flat = Op("MatMul", {rows, kernel});
  int open = 0;
  std::vector<int64_t> sizes(shape.dims.begin(), shape.dims.end() - 1);
  for (const int64_t n : sizes) open += n < 0;
  sizes.push_back(width);
  // Reshape can find one unknown size (-1); more have to be taken from the
  // input at run time.
  if (open <= 1) return Reshape(flat, sizes);
  const Tensor outer =
      Op("StridedSlice", {ShapeOf(x), Ints({0}), Ints({last}), Ints({1})});
  const Tensor full =
      Op("ConcatV2", {outer, Ints({width}), Int(0)}, {{"N", 2}});
  return Op("Reshape", {flat, full});
}

std::vector<Tensor> Split(const Tensor& x, int64_t count, int64_t axis) {
  return OpAll("Split", {Int(axis), x}, {{"num_split", count}});
}

Tensor SqueezeLast(const Tensor& x) {
  return Op("Squeeze", {x}, {{"squeeze_dims", std::vector<int64_t>{-1}}});
}

Tensor GatherRows(const Variable& table, const Tensor& rows) {
  // Tapes watch the variable before they see the gather that follows.
  if (table.trainable() && HasRecorders()) {
    TellVariableAccessed(Access::ValueOf(table.handle()));
  }
  return Op("ResourceGather", {table.handle(), rows},
            {{"dtype", Core(table.dtype())}});
}

Tensor Dropped(const Tensor& x, double rate, const Tensor& shape,
               std::optional<int64_t> seed) {
  const DType dtype = x.dtype();
  const Tensor share = Number(dtype, rate), one = Number(dtype, 1);
  // Scaled up in training, so that the expected value is the same without
  // dropout.
  const Tensor scaled = x * (one / (one - share));
  const auto [first, second] = OpSeeds(seed);
  const Tensor drawn =
      Op("RandomUniform", {shape},
         {{"dtype", Core(dtype)}, {"seed", first}, {"seed2", second}});
  const Tensor keep = Op("GreaterEqual", {drawn, share});
  return Op("SelectV2", {keep, scaled, Number(dtype, 0)});
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 ||
         dtype == DType::kFloat16 || dtype == DType::kBfloat16;
}

}  // namespace headrace::tf::internal
