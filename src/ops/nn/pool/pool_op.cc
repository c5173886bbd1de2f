#include "ops/nn/pool/pool_op.h"

#include "absl/strings/match.h"

namespace headrace {
namespace {

bool WindowsAreInputs(const ResolvedOp& op) {
  return op.attrs().Find("ksize") == nullptr;
}

StatusOr<std::vector<int64_t>> FourInts(const Tensor& t, StringView what) {
  if (t.rank() != 1 || t.num_elements() != 4) {
    return InvalidArgument("Sliding window ", what,
                           " field must specify 4 dimensions");
  }
  std::vector<int64_t> v;
  for (int i = 0; i < 4; ++i) v.push_back(t.IntAt(i));
  return v;
}

Status SetFrom(const Tensor& ksize, const Tensor& strides, PoolAttrs* attrs) {
  HR_ASSIGN_OR_RETURN(auto k, FourInts(ksize, "ksize"));
  HR_ASSIGN_OR_RETURN(auto s, FourInts(strides, "strides"));
  return attrs->Set(k, s);
}

}  // namespace

StatusOr<PoolRun> PoolRun::Make(const KernelContext& c, const Shape& x_shape) {
  PoolRun r;
  HR_ASSIGN_OR_RETURN(r.attrs_, PoolAttrs::Make(c.op()));
  if (WindowsAreInputs(c.op())) {
    const int n = c.num_inputs();
    HR_RETURN_IF_ERROR(SetFrom(c.input(n - 2), c.input(n - 1), &r.attrs_));
  }
  HR_ASSIGN_OR_RETURN(r.geometry_, r.attrs_.Geometry(x_shape));
  return r;
}

StatusOr<Tensor> PoolRun::In(const KernelContext& c, int i) const {
  // The loops know channels last only.
  if (!attrs_.window.channels_first) return c.input(i);
  return ChannelsLast(c.input(i));
}

StatusOr<Tensor> PoolRun::Out(const KernelContext& c) const {
  const Tensor& out = c.output(0);
  if (!attrs_.window.channels_first) return out;
  return Tensor::Allocate(out.dtype(), out.shape());
}

Status PoolRun::Finish(const KernelContext& c, const Tensor& made) const {
  if (!attrs_.window.channels_first) return OkStatus();
  return ChannelsFirstInto(made, c.output(0));
}

StatusOr<Tensor> PoolRun::Places(const KernelContext& c) const {
  HR_ASSIGN_OR_RETURN(Tensor x, In(c, 0));
  HR_ASSIGN_OR_RETURN(
      Tensor places,
      Tensor::Allocate(
          DType::kInt64,
          Shape{geometry_.batch, geometry_.out_pixels(), geometry_.channels}));
  HR_RETURN_IF_ERROR(
      MaxPoolPlaces(x.dtype(), geometry_, x.raw(), places.data<int64_t>()));
  return places;
}

StatusOr<bool> PoolAttrsFor(ShapeContext& c, PoolAttrs* attrs) {
  HR_ASSIGN_OR_RETURN(*attrs, PoolAttrs::Make(c.op()));
  if (!WindowsAreInputs(c.op())) return true;
  const int n = c.num_inputs();
  if (!c.value(n - 2) || !c.value(n - 1)) return false;
  HR_RETURN_IF_ERROR(SetFrom(*c.value(n - 2), *c.value(n - 1), attrs));
  return true;
}

Status PooledShape(ShapeContext& c) {
  PoolAttrs attrs;
  HR_ASSIGN_OR_RETURN(bool known, PoolAttrsFor(c, &attrs));
  if (!known) {
    c.set_output(0, Shape::UnknownOfRank(4));
    return OkStatus();
  }
  const Shape& x = c.input(0);
  const WindowAttrs& w = attrs.window;
  if (x.known_rank() && x.rank() != w.spatial + 2) {
    return c.Refuse(RankIsNot(w.spatial + 2, x.rank()),
                    attrs.Output(x).status());
  }
  for (int i = 0; x.known_rank() && i < w.spatial; ++i) {
    HR_RETURN_IF_ERROR(CheckWindowInGraph(c, w.padding, x[w.spatial_axis(i)],
                                          attrs.sizes[i], w.dilations[i]));
  }
  HR_ASSIGN_OR_RETURN(Shape out, attrs.Output(x));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return OkStatus();
}

OpBuilder& WithPool2D(OpBuilder& op, bool explicit_paddings,
                      const char* formats) {
  op.Attr("ksize: list(int) >= 4").Attr("strides: list(int) >= 4");
  if (explicit_paddings) {
    op.Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
        .Attr("explicit_paddings: list(int) = []");
  } else {
    op.Attr("padding: {'SAME', 'VALID'}");
  }
  return op.Attr(formats);
}

OpBuilder& WithPool3D(OpBuilder& op) {
  return op.Attr("ksize: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'");
}

AttrMap PoolAttrMap(const ResolvedOp& op, bool explicit_paddings) {
  AttrMap attrs;
  // Those that the op at hand has; the others do not exist for its kind.
  for (const char* name : {"ksize", "strides", "padding", "data_format",
                           "explicit_paddings", "include_batch_in_index"}) {
    const AttrValue* v = op.attrs().Find(name);
    if (v == nullptr) continue;
    if (!explicit_paddings && absl::string_view(name) == "explicit_paddings") {
      continue;
    }
    attrs.Set(name, *v);
  }
  return attrs;
}

bool Pools3D(const ResolvedOp& op) {
  return absl::StrContains(op.name(), "Pool3D");
}

}  // namespace headrace
