// Batches of products over operands as plans find them: one part of what was
// stacked, its dimensions in another order. The copies that Unpack and
// Transpose would make are saved; the loops take any strides.
#include "absl/strings/str_join.h"
#include "op/op.h"
#include "ops/array/block_copy.h"
#include "ops/math/products/gemm.h"

namespace headrace {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

// How an operand is looked at: index `index` of dimension `axis` (if that is
// not -1), then the dimensions in the order `order` (if that is not empty).
struct Look {
  int64_t axis, index;
  std::vector<int64_t> order;
};

Look LookOf(const ResolvedOp& op, char side) {
  const std::string s(1, side);
  return {op.int_attr(s + "_axis"), op.int_attr(s + "_index"),
          op.attr<std::vector<int64_t>>(s + "_order")};
}

Status CheckOrder(const std::vector<int64_t>& order, int rank) {
  std::vector<bool> seen(rank);
  bool good = static_cast<int>(order.size()) == rank;
  for (int64_t d : order) {
    good = good && d >= 0 && d < rank && !seen[d];
    if (good) seen[d] = true;
  }
  if (good) return OkStatus();
  return InvalidArgument("[", absl::StrJoin(order, ", "),
                         "] is no order of the ", rank, " dimensions");
}

template <typename List>
void PutInOrder(const std::vector<int64_t>& order, List* list) {
  if (order.empty()) return;
  const List from = *list;
  for (size_t i = 0; i < order.size(); ++i) (*list)[i] = from[order[i]];
}

// The shape of what the look shows of `s`, whose rank is known.
StatusOr<Dims> DimsOf(const Look& look, const Shape& s) {
  Dims dims(s.dims().begin(), s.dims().end());
  if (look.axis >= 0) {
    if (look.axis >= s.rank() || look.index < 0 ||
        (dims[look.axis] >= 0 && look.index >= dims[look.axis])) {
      return InvalidArgument("there is no part ", look.index, " of axis ",
                             look.axis, " of ", s);
    }
    dims.erase(dims.begin() + look.axis);
  }
  const int rank = static_cast<int>(dims.size());
  if (rank < 2) return InvalidArgument("a matrix is expected, not ", s);
  if (!look.order.empty()) {
    HR_RETURN_IF_ERROR(CheckOrder(look.order, rank));
    PutInOrder(look.order, &dims);
  }
  return dims;
}

Status ViewedShape(ShapeContext& c) {
  if (!c.input(0).known_rank() || !c.input(1).known_rank()) return OkStatus();
  HR_ASSIGN_OR_RETURN(Dims x, DimsOf(LookOf(c.op(), 'x'), c.input(0)));
  HR_ASSIGN_OR_RETURN(Dims y, DimsOf(LookOf(c.op(), 'y'), c.input(1)));
  const size_t rank = x.size();
  if (c.op().bool_attr("adj_x")) std::swap(x[rank - 1], x[rank - 2]);
  if (y.size() == rank && c.op().bool_attr("adj_y")) {
    std::swap(y[rank - 1], y[rank - 2]);
  }
  auto differ = [](int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; };
  bool fit = y.size() == rank && !differ(x[rank - 1], y[rank - 2]);
  Dims out = x;
  for (size_t i = 0; fit && i + 2 < rank; ++i) {
    fit = !differ(x[i], y[i]);
    // -1 stands for unknown: the known size of the two.
    out[i] = std::max(x[i], y[i]);
  }
  if (!fit) {
    return InvalidArgument("the matrices do not fit: ", c.input(0), " and ",
                           c.input(1));
  }
  out[rank - 1] = y[rank - 1];
  const auto& order = c.op().attr<std::vector<int64_t>>("out_order");
  if (!order.empty()) {
    HR_RETURN_IF_ERROR(CheckOrder(order, static_cast<int>(rank)));
    // The loops store rows of C as vectors.
    if (order.back() != static_cast<int64_t>(rank) - 1) {
      return Unimplemented("products whose columns are not the last dimension");
    }
    PutInOrder(order, &out);
  }
  c.set_output(0, Shape(out));
  return OkStatus();
}

// An operand as the loops see it.
struct FactorView {
  Dims dims, strides;
  int64_t offset = 0;
  int64_t dim(int from_end) const { return dims[dims.size() - from_end]; }
  int64_t stride(int from_end) const { return strides[dims.size() - from_end]; }
};

StatusOr<FactorView> ViewOf(const Look& look, const Shape& s, bool adjoint) {
  FactorView v;
  HR_ASSIGN_OR_RETURN(v.dims, DimsOf(look, s));
  v.strides = RowMajorStrides(s.dims());
  if (look.axis >= 0) {
    v.offset = look.index * v.strides[look.axis];
    v.strides.erase(v.strides.begin() + look.axis);
  }
  PutInOrder(look.order, &v.strides);
  if (adjoint) {
    const size_t last = v.dims.size() - 1;
    std::swap(v.dims[last], v.dims[last - 1]);
    std::swap(v.strides[last], v.strides[last - 1]);
  }
  return v;
}

// The result's dimensions are in the order `order`.
FactorView OutputView(const Shape& s, const std::vector<int64_t>& order) {
  FactorView v;
  v.dims.assign(s.dims().begin(), s.dims().end());
  v.strides = RowMajorStrides(v.dims);
  const Dims dims = v.dims, strides = v.strides;
  for (size_t i = 0; i < order.size(); ++i) {
    v.dims[order[i]] = dims[i];
    // The inverse order: dimension i of the result is dimension order[i] of the
    // product.
    v.strides[order[i]] = strides[i];
  }
  return v;
}

class ViewedProduct : public Kernel, public KnowsWork {
 public:
  explicit ViewedProduct(const ResolvedOp& op)
      : x_(LookOf(op, 'x')),
        y_(LookOf(op, 'y')),
        out_order_(op.attr<std::vector<int64_t>>("out_order")),
        adj_x_(op.bool_attr("adj_x")),
        adj_y_(op.bool_attr("adj_y")),
        dtype_(op.type_attr("T")) {}

  Status Run(KernelContext& c) override;
  CallWork WorkOf(absl::Span<const Shape* const> in,
                  absl::Span<const Shape* const> out) const override;

 private:
  const Look x_, y_;
  const std::vector<int64_t> out_order_;
  const bool adj_x_, adj_y_;
  const DType dtype_;
};

Status ViewedProduct::Run(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(FactorView x, ViewOf(x_, c.input(0).shape(), adj_x_));
  HR_ASSIGN_OR_RETURN(FactorView y, ViewOf(y_, c.input(1).shape(), adj_y_));
  const Tensor& out = c.output(0);
  if (out.num_elements() == 0) return OkStatus();
  const FactorView z = OutputView(out.shape(), out_order_);
  GemmDims d;
  d.m = x.dim(2);
  d.k = x.dim(1);
  d.n = y.dim(1);
  d.a_row = x.stride(2);
  d.a_col = x.stride(1);
  d.b_row = y.stride(2);
  d.b_col = y.stride(1);
  d.c_row = z.stride(2);
  const size_t batch = z.dims.size() - 2;
  auto steps = [batch](const FactorView& v) {
    return absl::MakeSpan(v.strides).first(batch);
  };
  const std::vector<GemmOffsets> offsets =
      BatchOffsets(absl::MakeSpan(z.dims).first(batch), steps(x), steps(y),
                   steps(z), {x.offset, y.offset, 0});
  return BatchGemm(out.dtype(), d, c.input(0).raw(), c.input(1).raw(),
                   out.raw(), offsets);
}

CallWork ViewedProduct::WorkOf(absl::Span<const Shape* const> in,
                               absl::Span<const Shape* const> out) const {
  const StatusOr<FactorView> x = ViewOf(x_, *in[0], adj_x_);
  const StatusOr<FactorView> y = ViewOf(y_, *in[1], adj_y_);
  // (The run says what is wrong.)
  if (!x.ok() || !y.ok() || out[0]->num_elements() == 0) return {};
  const int64_t m = x->dim(2), n = y->dim(1);
  return GemmWork(dtype_, m, n, x->dim(1), out[0]->num_elements() / (m * n));
}

HR_OP(_ViewedBatchMatMul)
    .Input("x: T")
    .Input("y: T")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Attr("adj_x: bool = false")
    .Attr("adj_y: bool = false")
    .Attr("x_axis: int = -1")
    .Attr("x_index: int = 0")
    .Attr("x_order: list(int) = []")
    .Attr("y_axis: int = -1")
    .Attr("y_index: int = 0")
    .Attr("y_order: list(int) = []")
    .Attr("out_order: list(int) = []")
    .Doc(
        "BatchMatMul of parts of its operands, their dimensions in another "
        "order; made by the planner.")
    .Role(OpRole::kBatchMatMul)
    .Traits({OpTrait::kHeavy})
    .Shape(ViewedShape)
    .Cpu(Bind<ViewedProduct>);

}  // namespace
}  // namespace headrace
