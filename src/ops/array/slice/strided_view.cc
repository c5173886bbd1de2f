#include "ops/array/slice/strided_view.h"

#include <algorithm>
#include <bit>

#include "ops/array/block_copy.h"
#include "ops/array/index/nd_index.h"

namespace headrace {
namespace {

bool Bit(int64_t mask, int64_t i) { return i < 63 && ((mask >> i) & 1); }

// Begin or end of a range: kept within what a step of that sign can reach.
int64_t Clamp(int64_t x, bool masked, bool is_end, int64_t dim, bool forward) {
  const int64_t low = forward ? 0 : -1, high = forward ? dim : dim - 1;
  if (masked) return forward == is_end ? high : low;
  return std::clamp(x < 0 ? x + dim : x, low, high);
}

// Reads the indices one by one and fills a view.
class Resolver {
 public:
  Resolver(const SliceMasks& masks, const Shape& shape, StridedView* view)
      : masks_(masks), shape_(shape), view_(view) {}

  // A dimension taken whole.
  void Whole() {
    Add(0, 1, shape_[at_]);
    view_->result.AddDim(shape_[at_]);
    ++at_;
  }

  Status Index(int64_t i, int64_t begin, int64_t end, int64_t stride) {
    if (shape_.rank() == 0) {
      return InvalidArgument("Attempting to slice scalar input.");
    }
    if (at_ >= shape_.rank()) {
      return InvalidArgument("Index out of range using input dim ", at_,
                             "; input has only ", shape_.rank(), " dims");
    }
    if (stride == 0) {
      return InvalidArgument("strides[", i, "] must be non-zero");
    }
    const int64_t dim = shape_[at_];
    if (Bit(masks_.shrink, i)) return Single(i, begin, stride, dim);
    if (dim < 0) {
      Add(0, stride, -1);
      view_->result.AddDim(-1);
    } else {
      const int64_t b =
          Clamp(begin, Bit(masks_.begin, i), false, dim, stride > 0);
      const int64_t e = Clamp(end, Bit(masks_.end, i), true, dim, stride > 0);
      const int64_t length = e - b;
      const bool empty = length == 0 || (length < 0) != (stride < 0);
      const int64_t n =
          empty ? 0 : length / stride + (length % stride != 0 ? 1 : 0);
      Add(b, stride, n);
      view_->result.AddDim(n);
    }
    ++at_;
    return OkStatus();
  }

  int at() const { return at_; }

 private:
  Status Single(int64_t i, int64_t begin, int64_t stride, int64_t dim) {
    if (stride < 0) {
      return InvalidArgument("only stride 1 allowed on non-range indexing.");
    }
    if (dim >= 0) {
      if (begin < 0) begin += dim;
      if (begin < 0 || begin >= dim) {
        return InvalidArgument("slice index ", begin, " of dimension ", at_,
                               " out of bounds.");
      }
    }
    Add(begin, 1, 1);
    view_->singles.push_back({i, at_});
    ++at_;
    return OkStatus();
  }

  void Add(int64_t begin, int64_t stride, int64_t size) {
    view_->begin.push_back(begin);
    view_->stride.push_back(stride);
    view_->size.push_back(size);
  }

  const SliceMasks& masks_;
  const Shape& shape_;
  StridedView* view_;
  int at_ = 0;
};

// How many dimensions the ellipsis at index `i` of `n` stands for.
int EllipsisDims(const SliceMasks& masks, int64_t i, int64_t n, int at,
                 int rank) {
  int64_t later = 0;
  for (int64_t k = i + 1; k < n; ++k) later += !Bit(masks.new_axis, k);
  return static_cast<int>(std::max<int64_t>(0, rank - at - later));
}

Status CheckOneEllipsis(const SliceMasks& masks) {
  if (std::popcount(static_cast<uint64_t>(masks.ellipsis)) > 1) {
    return InvalidArgument("Multiple ellipses in slice spec not allowed");
  }
  return OkStatus();
}

int64_t FirstElement(const StridedView& view,
                     absl::Span<const int64_t> strides) {
  int64_t at = 0;
  for (size_t i = 0; i < strides.size(); ++i) at += view.begin[i] * strides[i];
  return at;
}

// `value` broadcast to `shape`.
StatusOr<Tensor> Spread(const Tensor& value, const Shape& shape) {
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(value.dtype(), shape));
  const auto from = RowMajorStrides(value.shape().dims());
  const auto to = RowMajorStrides(shape.dims());
  const int extra = shape.rank() - value.rank();
  BlockDims dims;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeats = i < extra || value.dim(i - extra) == 1;
    dims.push_back({shape[i], repeats ? 0 : from[i - extra], to[i]});
  }
  CopyBlock(value.dtype(), value.raw(), out.raw(), std::move(dims));
  return out;
}

}  // namespace

SliceMasks::SliceMasks(const ResolvedOp& op)
    : begin(op.int_attr("begin_mask")),
      end(op.int_attr("end_mask")),
      ellipsis(op.int_attr("ellipsis_mask")),
      new_axis(op.int_attr("new_axis_mask")),
      shrink(op.int_attr("shrink_axis_mask")) {}

int64_t StridedView::num_elements() const {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  return n;
}

Status CheckSliceIndices(const Shape& begin, const Shape& end,
                         const Shape& strides) {
  for (const Shape* s : {&begin, &end, &strides}) {
    if (!s->known_rank()) return OkStatus();
  }
  if (begin.rank() == 1 && begin.CompatibleWith(end) &&
      begin.CompatibleWith(strides) && end.CompatibleWith(strides)) {
    return OkStatus();
  }
  return InvalidArgument(
      "Expected begin, end, and strides to be 1D equal size tensors, but got "
      "shapes ",
      begin, ", ", end, ", and ", strides, " instead.");
}

StatusOr<StridedView> ResolveSlice(const SliceMasks& masks, const Tensor& begin,
                                   const Tensor& end, const Tensor& strides,
                                   const Shape& shape) {
  HR_RETURN_IF_ERROR(
      CheckSliceIndices(begin.shape(), end.shape(), strides.shape()));
  HR_RETURN_IF_ERROR(CheckOneEllipsis(masks));
  StridedView view;
  Resolver resolver(masks, shape, &view);
  const int64_t n = begin.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    if (Bit(masks.ellipsis, i)) {
      int count = EllipsisDims(masks, i, n, resolver.at(), shape.rank());
      while (count-- > 0) resolver.Whole();
    } else if (Bit(masks.new_axis, i)) {
      view.result.AddDim(1);
    } else {
      HR_RETURN_IF_ERROR(resolver.Index(i, IndexAt(begin, i), IndexAt(end, i),
                                        IndexAt(strides, i)));
    }
  }
  while (resolver.at() < shape.rank()) resolver.Whole();
  if (view.result.rank() > Shape::kMaxRank) {
    return InvalidArgument("the slice has too many dimensions: ",
                           view.result.rank());
  }
  return view;
}

Shape UnknownSliceShape(const SliceMasks& masks, int num_indices,
                        const Tensor* strides, const Shape& shape) {
  Shape out;
  int at = 0;
  for (int i = 0; i < num_indices; ++i) {
    if (Bit(masks.ellipsis, i)) {
      int count = EllipsisDims(masks, i, num_indices, at, shape.rank());
      while (count-- > 0) out.AddDim(shape[at++]);
    } else if (Bit(masks.new_axis, i)) {
      out.AddDim(1);
    } else {
      if (at == shape.rank()) return Shape::UnknownRank();
      const int64_t dim = shape[at++];
      if (Bit(masks.shrink, i)) continue;
      const bool whole = Bit(masks.begin, i) && Bit(masks.end, i);
      const int64_t step =
          strides ? std::max(std::abs(IndexAt(*strides, i)), int64_t{1}) : 0;
      out.AddDim(whole && step > 0 && dim >= 0 ? (dim + step - 1) / step
                                               : Shape::kUnknown);
    }
  }
  while (at < shape.rank()) out.AddDim(shape[at++]);
  return out;
}

void CopyOutOfView(const StridedView& view, const Tensor& from, Tensor& to) {
  if (to.num_elements() == 0) return;
  const auto strides = RowMajorStrides(from.shape().dims());
  BlockDims dims(view.size.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    dims[i] = {view.size[i], strides[i] * view.stride[i], step};
    step *= view.size[i];
  }
  CopyBlock(from.dtype(), At(from, FirstElement(view, strides)), to.raw(),
            std::move(dims));
}

Status CopyIntoView(const StridedView& view, const Tensor& value, Tensor& to) {
  StatusOr<Shape> together = BroadcastShapes(value.shape(), view.result);
  if (!together.ok() || *together != view.result) {
    return InvalidArgument("Cannot broadcast input shape ", value.shape(),
                           " into final shape ", view.result);
  }
  if (view.num_elements() == 0) return OkStatus();
  const auto strides = RowMajorStrides(to.shape().dims());
  BlockDims dims;
  if (value.num_elements() == 1) {
    for (size_t i = 0; i < view.size.size(); ++i) {
      dims.push_back({view.size[i], 0, strides[i] * view.stride[i]});
    }
    CopyBlock(to.dtype(), value.raw(), At(to, FirstElement(view, strides)),
              std::move(dims));
    return OkStatus();
  }
  Tensor dense = value;
  if (value.shape() != view.result) {
    HR_ASSIGN_OR_RETURN(dense, Spread(value, view.result));
  }
  dims.resize(view.size.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    dims[i] = {view.size[i], step, strides[i] * view.stride[i]};
    step *= view.size[i];
  }
  CopyBlock(to.dtype(), dense.raw(), At(to, FirstElement(view, strides)),
            std::move(dims));
  return OkStatus();
}

OpBuilder SliceOp(const char* name, const char* first, const char* last,
                  const char* output, const char* index) {
  OpBuilder b(name);
  b.Input(first);
  b.Input("begin: Index").Input("end: Index").Input("strides: Index");
  if (last) b.Input(last);
  if (output) b.Output(output);
  b.Attr("T: type")
      .Attr(index)
      .Attr("begin_mask: int = 0")
      .Attr("end_mask: int = 0")
      .Attr("ellipsis_mask: int = 0")
      .Attr("new_axis_mask: int = 0")
      .Attr("shrink_axis_mask: int = 0");
  return b;
}

AttrMap MaskAttrs(const ResolvedOp& op) {
  AttrMap attrs;
  for (const char* name : {"begin_mask", "end_mask", "ellipsis_mask",
                           "new_axis_mask", "shrink_axis_mask"}) {
    attrs.Set(name, op.int_attr(name));
  }
  return attrs;
}

}  // namespace headrace
