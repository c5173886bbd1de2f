// What shape functions of users' ops see and say.
#include "c/custom/shape_inference.h"

#include <limits>

#include "c/status.h"

struct TF_ShapeInferenceContext {
  headrace::ShapeContext& c;
};
struct TF_ShapeHandle {
  headrace::Shape shape = headrace::Shape::UnknownRank();
};
struct TF_DimensionHandle {
  int64_t size = headrace::Shape::kUnknown;
};

namespace headrace::capi {
namespace {

Status CheckIndex(int i, int count, StringView what) {
  if (i >= 0 && i < count) return OkStatus();
  return InvalidArgument(what, " index out of range: ", i, " is not in [0, ",
                         count, ")");
}

Status CheckPlaces(const TF_ShapeInferenceContext* ctx,
                   const TF_ShapeHandle* shape, const TF_ShapeHandle* result) {
  HR_RETURN_IF_ERROR(NotNull(ctx, "ctx"));
  HR_RETURN_IF_ERROR(NotNull(shape, "handle"));
  return NotNull(result, "result");
}

// The rank as Shape counts it.
StatusOr<int> RankAsInt(int64_t rank) {
  if (rank >= 0 && rank <= Shape::kMaxRank) return static_cast<int>(rank);
  return InvalidArgument("a rank of ", rank, " is not in [0, ", Shape::kMaxRank,
                         "]");
}

StatusOr<Shape> WithRank(const Shape& s, int64_t rank64) {
  HR_ASSIGN_OR_RETURN(const int rank, RankAsInt(rank64));
  if (s.known_rank()) {
    HR_RETURN_IF_ERROR(CheckRank(s, rank));
    return s;
  }
  return Shape::UnknownOfRank(rank);
}

// start or end as a place in [0, rank]. A start beyond the end is the end; so
// is upstream's word for it, the largest number.
StatusOr<int> PlaceIn(const Shape& s, int64_t at, StringView what) {
  if (at > s.rank()) at = s.rank();
  if (at < 0) at += s.rank();
  if (at >= 0) return static_cast<int>(at);
  return InvalidArgument("Subshape ", what, " out of bounds: ", at - s.rank(),
                         ", for shape with rank ", s.rank());
}

StatusOr<Shape> Subshape(const Shape& s, int64_t start64, int64_t end64) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  if (!s.known_rank()) {
    if (start64 == 0 && end64 == kEnd) return s;
    return Shape::UnknownRank();
  }
  HR_ASSIGN_OR_RETURN(const int start, PlaceIn(s, start64, "start"));
  HR_ASSIGN_OR_RETURN(const int end, PlaceIn(s, end64, "end"));
  if (start > end) {
    return InvalidArgument("Subshape must have computed start <= end, but is ",
                           start, " and ", end, " (computed from start ",
                           start64, " and end ", end64,
                           " over shape with rank ", s.rank(), ")");
  }
  Shape part;
  for (int i = start; i < end; ++i) part.AddDim(s[i]);
  return part;
}

StatusOr<Shape> Concatenated(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return Shape::UnknownRank();
  HR_RETURN_IF_ERROR(RankAsInt(int64_t{a.rank()} + b.rank()).status());
  Shape both = a;
  for (int64_t size : b.dims()) both.AddDim(size);
  return both;
}

// f() is a StatusOr of the shape that *result gets.
template <typename F>
void SetResult(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* from,
               TF_ShapeHandle* result, TF_Status* status, F&& f) {
  Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(CheckPlaces(ctx, from, result));
    HR_ASSIGN_OR_RETURN(result->shape, f());
    return OkStatus();
  });
}

}  // namespace

Status RunShapeFunction(ShapeFunction f, ShapeContext& c) {
  TF_ShapeInferenceContext ctx{c};
  TF_Status status;
  HR_RETURN_IF_ERROR(
      Guarded(absl::StrCat("the shape function of op ", c.op().name()), [&] {
        f(&ctx, &status);
        return OkStatus();
      }));
  return status.status;
}

}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::Shape;
using headrace::Status;
using headrace::StatusOr;

int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx) {
  return ctx ? ctx->c.num_inputs() : 0;
}

TF_ShapeHandle* TF_NewShapeHandle() {
  return new (std::nothrow) TF_ShapeHandle;
}

TF_DimensionHandle* TF_NewDimensionHandle() {
  return new (std::nothrow) TF_DimensionHandle;
}

void TF_DeleteShapeHandle(TF_ShapeHandle* handle) { delete handle; }

void TF_DeleteDimensionHandle(TF_DimensionHandle* handle) { delete handle; }

void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i,
                                      TF_ShapeHandle* handle,
                                      TF_Status* status) {
  capi::SetResult(ctx, handle, handle, status, [&]() -> StatusOr<Shape> {
    HR_RETURN_IF_ERROR(capi::CheckIndex(i, ctx->c.num_inputs(), "input"));
    return ctx->c.input(i);
  });
}

void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i,
                                       TF_ShapeHandle* handle,
                                       TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::CheckPlaces(ctx, handle, handle));
    HR_RETURN_IF_ERROR(capi::CheckIndex(i, ctx->c.num_outputs(), "output"));
    ctx->c.set_output(i, handle->shape);
    return headrace::OkStatus();
  });
}

TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx) {
  return new (std::nothrow) TF_ShapeHandle{Shape()};
}

TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(
    TF_ShapeInferenceContext* ctx, size_t size) {
  return capi::OrElse<TF_ShapeHandle*>(nullptr, [&]() -> TF_ShapeHandle* {
    StatusOr<Shape> shape =
        Shape::Make({static_cast<int64_t>(size)}, /*allow_unknown=*/true);
    return shape.ok() ? new TF_ShapeHandle{*shape} : nullptr;
  });
}

void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx,
                                          const char* attr_name,
                                          TF_DataType* val, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    HR_RETURN_IF_ERROR(capi::NotNull(attr_name, "attr_name"));
    HR_RETURN_IF_ERROR(capi::NotNull(val, "val"));
    const headrace::ResolvedOp& op = ctx->c.op();
    const auto* type = op.attrs().Get<headrace::DType>(attr_name);
    if (op.attrs().Find(attr_name) == nullptr) {
      return headrace::NotFound("No attr named '", attr_name,
                                "' in NodeDef:\n\t [[{{node ", op.name(),
                                "}}]]");
    }
    if (type == nullptr) {
      return headrace::InvalidArgument("Op ", op.name(), " has no attr '",
                                       attr_name, "' that is a type");
    }
    *val = static_cast<TF_DataType>(static_cast<int>(*type));
    return headrace::OkStatus();
  });
}

int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* ctx,
                                     TF_ShapeHandle* handle) {
  return handle && handle->shape.known_rank() ? handle->shape.rank() : -1;
}

int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* ctx,
                                      TF_ShapeHandle* handle) {
  return handle && handle->shape.known_rank();
}

void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx,
                                      TF_ShapeHandle* handle, int64_t rank,
                                      TF_ShapeHandle* result,
                                      TF_Status* status) {
  capi::SetResult(ctx, handle, result, status,
                  [&] { return capi::WithRank(handle->shape, rank); });
}

void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* ctx,
                                             TF_ShapeHandle* handle,
                                             int64_t rank,
                                             TF_ShapeHandle* result,
                                             TF_Status* status) {
  capi::SetResult(ctx, handle, result, status, [&]() -> StatusOr<Shape> {
    HR_ASSIGN_OR_RETURN(const int least, capi::RankAsInt(rank));
    HR_RETURN_IF_ERROR(headrace::CheckRankAtLeast(handle->shape, least));
    return handle->shape;
  });
}

void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* ctx,
                                            TF_ShapeHandle* handle,
                                            int64_t rank,
                                            TF_ShapeHandle* result,
                                            TF_Status* status) {
  capi::SetResult(ctx, handle, result, status, [&]() -> StatusOr<Shape> {
    HR_ASSIGN_OR_RETURN(const int most, capi::RankAsInt(rank));
    HR_RETURN_IF_ERROR(headrace::CheckRankAtMost(handle->shape, most));
    return handle->shape;
  });
}

void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* ctx,
                                 TF_ShapeHandle* shape_handle, int64_t i,
                                 TF_DimensionHandle* result) {
  if (shape_handle == nullptr || result == nullptr) return;
  const Shape& s = shape_handle->shape;
  result->size = Shape::kUnknown;
  if (!s.known_rank() || i < -s.rank() || i >= s.rank()) return;
  result->size = s[static_cast<int>(i < 0 ? i + s.rank() : i)];
}

void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* ctx,
                                      TF_ShapeHandle* shape_handle,
                                      int64_t start, int64_t end,
                                      TF_ShapeHandle* result,
                                      TF_Status* status) {
  capi::SetResult(ctx, shape_handle, result, status, [&] {
    return capi::Subshape(shape_handle->shape, start, end);
  });
}

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx,
                                             TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    for (int i = 0; i < ctx->c.num_outputs(); ++i) {
      ctx->c.set_output(i, Shape::UnknownRank());
    }
    return headrace::OkStatus();
  });
}

int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle) {
  return dim_handle && dim_handle->size >= 0;
}

int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle) {
  return dim_handle ? dim_handle->size : Shape::kUnknown;
}

void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* ctx,
                                               TF_ShapeHandle* first,
                                               TF_ShapeHandle* second,
                                               TF_ShapeHandle* result,
                                               TF_Status* status) {
  capi::SetResult(ctx, first, result, status, [&]() -> StatusOr<Shape> {
    HR_RETURN_IF_ERROR(capi::NotNull(second, "second"));
    return capi::Concatenated(first->shape, second->shape);
  });
}
