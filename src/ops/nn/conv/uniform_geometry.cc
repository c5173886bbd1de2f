#include "ops/nn/conv/uniform_geometry.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "tensorflow/core/util/quantization/uniform_quant_ops_attr.pb.h"

namespace headrace {
namespace {

using Numbers = tensorflow::UniformQuantizedConvolutionDimensionNumbersAttr;

// Bounds, so that sums and products of sizes cannot overflow.
constexpr int64_t kFarthest = int64_t{1} << 30;

// One number a spatial dimension; none stand for 1.
StatusOr<std::vector<int64_t>> PositiveList(const ResolvedOp& op,
                                            StringView name, size_t spatial) {
  std::vector<int64_t> v = op.attr<std::vector<int64_t>>(name);
  if (v.empty()) return std::vector<int64_t>(spatial, 1);
  if (v.size() != spatial) {
    return InvalidArgument("Size of ", name, " Attr must be dims - 2.");
  }
  for (int64_t x : v) {
    if (x >= 1 && x <= kFarthest) continue;
    return InvalidArgument("All elements of ", name, " must be >= 1. Given ",
                           absl::StrJoin(v, ", "));
  }
  return v;
}

StatusOr<Numbers> NumbersOf(const ResolvedOp& op, int rank) {
  const std::string& bytes = op.string_attr("dimension_numbers");
  Numbers n;
  if (bytes.empty()) {
    // Batch, features, then what is spatial; of the filter those made first.
    n.set_input_feature_dimension(1);
    n.set_kernel_input_feature_dimension(1);
    n.set_output_feature_dimension(1);
    for (int i = 2; i < rank; ++i) {
      n.add_input_spatial_dimensions(i);
      n.add_kernel_spatial_dimensions(i);
      n.add_output_spatial_dimensions(i);
    }
    return n;
  }
  if (!n.ParseFromString(bytes)) {
    return InvalidArgument("Error parsing convolution dimension numbers.");
  }
  return n;
}

// The dimensions must be all of [0, rank), each once.
Status CheckDims(StringView what, int rank, int64_t a, int64_t b,
                 const google::protobuf::RepeatedField<int64_t>& spatial) {
  std::vector<int64_t> all(spatial.begin(), spatial.end());
  all.push_back(a);
  all.push_back(b);
  std::sort(all.begin(), all.end());
  bool fits = static_cast<int>(all.size()) == rank;
  for (int i = 0; fits && i < rank; ++i) fits = all[i] == i;
  if (fits) return OkStatus();
  return InvalidArgument("Error parsing convolution dimension numbers: the ",
                         what, " dimensions must be a permutation of [0, ",
                         rank, "), got ", absl::StrJoin(all, ", "));
}

int64_t Dilated(int64_t size, int64_t dilation) {
  return size <= 0 ? size : (size - 1) * dilation + 1;
}

Status SolveAxis(const std::string& padding, UniformGeometry::Axis* a) {
  if (a->in < 0 || a->size < 0) return OkStatus();
  if (a->in > kFarthest || a->size > kFarthest) {
    return InvalidArgument("a spatial dimension of ", std::max(a->in, a->size),
                           " is too large to convolve");
  }
  const int64_t in = Dilated(a->in, a->lhs_dilation);
  const int64_t reach = Dilated(a->size, a->rhs_dilation);
  if (padding == "SAME") {
    a->made = (in + a->stride - 1) / a->stride;
    const int64_t total =
        std::max<int64_t>(0, (a->made - 1) * a->stride + reach - in);
    a->before = total / 2;
    a->after = total - a->before;
    return OkStatus();
  }
  const int64_t room = in + a->before + a->after - reach;
  if (room + 1 < 0) {
    return InvalidArgument("Expected shape dimensions to be non-negative, got ",
                           room + 1);
  }
  a->made = room < 0 ? 0 : room / a->stride + 1;
  return OkStatus();
}

Status SetPadding(const ResolvedOp& op, int rank, UniformGeometry* g) {
  const std::string& padding = op.string_attr("padding");
  const auto& list = op.attr<std::vector<int64_t>>("explicit_padding");
  if (padding != "EXPLICIT" && padding != "SAME" && padding != "VALID") {
    return InvalidArgument("padding Attr must be one of [EXPLICIT | SAME | ",
                           "VALID], but given: ", padding);
  }
  if (padding != "EXPLICIT") {
    if (list.empty()) return OkStatus();
    return InvalidArgument("If padding is not 'EXPLICIT', explicit_padding ",
                           "Attr must be empty.");
  }
  if (list.size() != 2 * g->axes.size()) {
    return InvalidArgument("Size of explicit_padding Attr must be 2 * (rank - ",
                           "2). Given rank ", rank,
                           " and explicit_padding of size ", list.size());
  }
  for (int64_t v : list) {
    if (v >= 0 && v <= kFarthest) continue;
    return InvalidArgument("All elements of explicit_padding must be >= 0. ",
                           "Given ", absl::StrJoin(list, ", "));
  }
  for (size_t i = 0; i < g->axes.size(); ++i) {
    g->axes[i].before = list[2 * i];
    g->axes[i].after = list[2 * i + 1];
  }
  return OkStatus();
}

// The two kinds of groups, against the sizes that they part.
Status CheckGroups(const UniformGeometry& g, const Shape& lhs,
                   const Shape& rhs) {
  const int64_t batch = lhs[g.lhs_batch], features = lhs[g.lhs_feature];
  const int64_t out = rhs[g.rhs_out], in = rhs[g.rhs_in];
  if (batch >= 0 && batch % g.batch_groups != 0) {
    return InvalidArgument("lhs batch dimension size must be a multiple of ",
                           "batch_group_count, but ", batch,
                           " is not a multiple of ", g.batch_groups);
  }
  if (features >= 0 && in >= 0 &&
      (features % g.feature_groups != 0 || features / g.feature_groups != in)) {
    return InvalidArgument(
        "lhs feature dimension size divided by feature_group_count must equal ",
        "the rhs input feature dimension size, but ", features, " / ",
        g.feature_groups, " != ", in);
  }
  if (out >= 0 && out % g.feature_groups != 0) {
    return InvalidArgument("rhs output dimension size must be a multiple of ",
                           "feature_group_count, but ", out,
                           " is not a multiple of ", g.feature_groups);
  }
  if (out >= 0 && out % g.batch_groups != 0) {
    return InvalidArgument("rhs output dimension size must be a multiple of ",
                           "batch_group_count, but ", out,
                           " is not a multiple of ", g.batch_groups);
  }
  if (g.batch_groups > 1 && g.feature_groups > 1) {
    return InvalidArgument("At most one of batch_group_count and ",
                           "feature_group_count may be greater than 1.");
  }
  return OkStatus();
}

Status SetGroups(const ResolvedOp& op, UniformGeometry* g) {
  g->batch_groups = op.int_attr("batch_group_count");
  g->feature_groups = op.int_attr("feature_group_count");
  if (g->batch_groups <= 0) {
    return InvalidArgument(
        "batch_group_count Attr must be a positive integer. Given: ",
        g->batch_groups);
  }
  if (g->feature_groups <= 0) {
    return InvalidArgument(
        "feature_group_count must be a positive integer, given: ",
        g->feature_groups);
  }
  return OkStatus();
}

// Fills what the numbers of the dimensions say.
Status SetLayout(const Numbers& n, int rank, UniformGeometry* g) {
  HR_RETURN_IF_ERROR(CheckDims("input", rank, n.input_batch_dimension(),
                               n.input_feature_dimension(),
                               n.input_spatial_dimensions()));
  HR_RETURN_IF_ERROR(CheckDims(
      "kernel", rank, n.kernel_output_feature_dimension(),
      n.kernel_input_feature_dimension(), n.kernel_spatial_dimensions()));
  HR_RETURN_IF_ERROR(CheckDims("output", rank, n.output_batch_dimension(),
                               n.output_feature_dimension(),
                               n.output_spatial_dimensions()));
  g->lhs_batch = static_cast<int>(n.input_batch_dimension());
  g->lhs_feature = static_cast<int>(n.input_feature_dimension());
  g->rhs_out = static_cast<int>(n.kernel_output_feature_dimension());
  g->rhs_in = static_cast<int>(n.kernel_input_feature_dimension());
  g->out_batch = static_cast<int>(n.output_batch_dimension());
  g->out_feature = static_cast<int>(n.output_feature_dimension());
  for (int i = 0; i < rank - 2; ++i) {
    g->axes.push_back({static_cast<int>(n.input_spatial_dimensions(i)),
                       static_cast<int>(n.kernel_spatial_dimensions(i)),
                       static_cast<int>(n.output_spatial_dimensions(i))});
  }
  return OkStatus();
}

}  // namespace

StatusOr<UniformGeometry> UniformGeometry::Make(const ResolvedOp& op,
                                                const Shape& lhs,
                                                const Shape& rhs) {
  const int rank = lhs.rank();
  if (rhs.rank() != rank) {
    return InvalidArgument(
        "lhs and rhs must have same dims. Given lhs and rhs ",
        "of shapes: ", lhs, rhs);
  }
  if (rank < 2) {
    return InvalidArgument("lhs and rhs must have at least 2 dims. Given lhs ",
                           "and rhs of shapes: ", lhs, rhs);
  }
  const size_t spatial = rank - 2;
  HR_ASSIGN_OR_RETURN(auto strides,
                      PositiveList(op, "window_strides", spatial));
  HR_ASSIGN_OR_RETURN(auto left, PositiveList(op, "lhs_dilation", spatial));
  HR_ASSIGN_OR_RETURN(auto right, PositiveList(op, "rhs_dilation", spatial));
  HR_ASSIGN_OR_RETURN(const Numbers numbers, NumbersOf(op, rank));
  UniformGeometry g;
  HR_RETURN_IF_ERROR(SetLayout(numbers, rank, &g));
  HR_RETURN_IF_ERROR(SetGroups(op, &g));
  HR_RETURN_IF_ERROR(CheckGroups(g, lhs, rhs));
  HR_RETURN_IF_ERROR(SetPadding(op, rank, &g));
  std::vector<int64_t> made(rank, Shape::kUnknown);
  const int64_t batch = lhs[g.lhs_batch];
  made[g.out_batch] = batch < 0 ? batch : batch / g.batch_groups;
  made[g.out_feature] = rhs[g.rhs_out];
  for (size_t i = 0; i < spatial; ++i) {
    Axis& a = g.axes[i];
    a.in = lhs[a.lhs];
    a.size = rhs[a.rhs];
    a.stride = strides[i];
    a.lhs_dilation = left[i];
    a.rhs_dilation = right[i];
    HR_RETURN_IF_ERROR(SolveAxis(op.string_attr("padding"), &a));
    made[a.out] = a.made;
  }
  HR_ASSIGN_OR_RETURN(g.made, Shape::Make(made, /*allow_unknown=*/true));
  return g;
}

std::vector<int64_t> StepsOf(const Shape& s) {
  std::vector<int64_t> steps(s.rank(), 1);
  for (int i = s.rank() - 2; i >= 0; --i) steps[i] = steps[i + 1] * s[i + 1];
  return steps;
}

}  // namespace headrace
