// NonMaxSuppression and its versions 2 to 5, and NonMaxSuppressionWithOverlaps.
#include <algorithm>
#include <limits>

#include "ops/image/suppression.h"

namespace headrace {
namespace {

// A float or half scalar or vector, as float.
float FloatAt(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kHalf ? static_cast<float>(t.data<half>()[i])
                                   : t.data<float>()[i];
}
std::vector<float> Floats(const Tensor& t) {
  std::vector<float> v(t.num_elements());
  for (size_t i = 0; i < v.size(); ++i) v[i] = FloatAt(t, i);
  return v;
}

// The inputs after boxes and scores: how many, the largest overlap, the lowest
// score, sigma; as many as the version has.
StatusOr<SuppressionRule> RuleOf(const KernelContext& c, bool of_boxes) {
  SuppressionRule r;
  r.most = c.input(2).scalar<int32_t>();
  if (r.most < 0) {
    return InvalidArgument("output size must be non-negative");
  }
  const float* attr = c.op().attrs().Get<float>("iou_threshold");
  r.overlap = attr ? *attr : FloatAt(c.input(3), 0);
  r.lowest_score = c.num_inputs() > 4 ? FloatAt(c.input(4), 0)
                                      : std::numeric_limits<float>::lowest();
  r.soft_sigma = c.num_inputs() > 5 ? FloatAt(c.input(5), 0) : 0;
  // Given overlaps may be of any measure; those of boxes are shares. So written
  // that NaN is refused.
  if (of_boxes && !(r.overlap >= 0 && r.overlap <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1]");
  }
  if (!(r.soft_sigma >= 0)) {
    return InvalidArgument("soft_nms_sigma_val must be >= 0");
  }
  return r;
}

bool Pads(const ResolvedOp& op) {
  const bool* pads = op.attrs().Get<bool>("pad_to_max_output_size");
  return pads && *pads;
}

// Outputs: indices; scores where the op has three; how many where it has two.
Status Give(KernelContext& c, const std::vector<Selected>& chosen,
            int64_t most) {
  const int64_t count = chosen.size();
  const int64_t rows = Pads(c.op()) ? most : count;
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{rows}));
  int32_t* index = c.out<int32_t>(0);
  std::fill_n(index, rows, 0);
  for (int64_t i = 0; i < count; ++i) index[i] = chosen[i].box;
  if (c.num_outputs() == 3) {
    HR_RETURN_IF_ERROR(c.Allocate(1, Shape{rows}));
    DispatchDType(c.output(1).dtype(), TypeList<float, half>{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(c.out<T>(1), rows, static_cast<T>(0.0f));
      for (int64_t i = 0; i < count; ++i) {
        c.out<T>(1)[i] = static_cast<T>(chosen[i].score);
      }
    });
  }
  if (c.num_outputs() > 1) {
    const int last = c.num_outputs() - 1;
    HR_RETURN_IF_ERROR(c.Allocate(last, Shape()));
    c.output(last).scalar<int32_t>() = static_cast<int32_t>(count);
  }
  return OkStatus();
}

Status RunBoxes(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SuppressionRule rule, RuleOf(c, true));
  const std::vector<float> boxes = Floats(c.input(0)),
                           scores = Floats(c.input(1));
  const auto chosen = SelectBoxes(scores, rule, [&](int64_t i, int64_t j) {
    return OverlapOfBoxes(&boxes[i * 4], &boxes[j * 4]);
  });
  return Give(c, chosen, rule.most);
}

Status RunOverlaps(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SuppressionRule rule, RuleOf(c, false));
  const float* overlaps = c.in<float>(0);
  const std::vector<float> scores = Floats(c.input(1));
  const int64_t n = scores.size();
  const auto chosen = SelectBoxes(
      scores, rule, [&](int64_t i, int64_t j) { return overlaps[i * n + j]; });
  return Give(c, chosen, rule.most);
}

// Unknown counts, but where the result is padded to one that is known.
Status SetOutputs(ShapeContext& c) {
  Shape rows{-1};
  bool known = false;
  int64_t most = -1;
  HR_RETURN_IF_ERROR(c.IntValue(2, &known, &most));
  if (known && most < 0) {
    return InvalidArgument("output size must be non-negative");
  }
  if (known && Pads(c.op())) rows = Shape{most};
  c.set_output(0, rows);
  if (c.num_outputs() == 3) c.set_output(1, rows);
  if (c.num_outputs() > 1) c.set_output(c.num_outputs() - 1, Shape());
  return OkStatus();
}

Status BoxesShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CountOfBoxes(c.input(0), c.input(1)).status());
  HR_RETURN_IF_ERROR(CheckSuppressionScalars(c, 2));
  return SetOutputs(c);
}

Status OverlapsShape(ShapeContext& c) {
  const Shape &o = c.input(0), &scores = c.input(1);
  if (o.known_rank()) {
    if (o.rank() != 2) return InvalidArgument("overlaps must be 2-D", o);
    if (o[0] >= 0 && o[1] >= 0 && o[0] != o[1]) {
      return InvalidArgument("overlaps must be square", o);
    }
  }
  if (scores.known_rank()) {
    if (scores.rank() != 1) {
      return InvalidArgument("scores must be 1-D", scores);
    }
    if (o.known_rank() && o[0] >= 0 && scores[0] >= 0 && o[0] != scores[0]) {
      return InvalidArgument("scores has incompatible shape");
    }
  }
  HR_RETURN_IF_ERROR(CheckSuppressionScalars(c, 2));
  return SetOutputs(c);
}

HR_OP(NonMaxSuppression)
    .Input("boxes: float")
    .Input("scores: float")
    .Input("max_output_size: int32")
    .Output("selected_indices: int32")
    .Attr("iou_threshold: float = 0.5")
    .Doc("The best boxes that do not overlap better ones.")
    .Shape(BoxesShape)
    .NoGradient()
    .Cpu(ComputeOwn<RunBoxes>);

OpBuilder Version(const char* name, int version) {
  OpBuilder op(name);
  op.Input("boxes: T").Input("scores: T").Input("max_output_size: int32");
  const bool one_type = version == 5;
  op.Input(one_type ? "iou_threshold: T" : "iou_threshold: T_threshold");
  if (version > 2) {
    op.Input(one_type ? "score_threshold: T" : "score_threshold: T_threshold");
  }
  if (version > 4) op.Input("soft_nms_sigma: T");
  op.Output("selected_indices: int32");
  if (version > 4) op.Output("selected_scores: T");
  if (version > 3) op.Output("valid_outputs: int32");
  op.Attr("T: {half, float} = float");
  if (!one_type) op.Attr("T_threshold: {half, float} = float");
  if (version > 3) op.Attr("pad_to_max_output_size: bool = false");
  op.Doc("The best boxes that do not overlap better ones.");
  op.Shape(BoxesShape).Cpu(ComputeOwn<RunBoxes>);
  if (version == 2) op.NoGradient();  // of the later ones nobody says so
  return op;
}

const bool suppressions_registered = [] {
  Version("NonMaxSuppressionV2", 2).Register();
  Version("NonMaxSuppressionV3", 3).Register();
  Version("NonMaxSuppressionV4", 4).Register();
  Version("NonMaxSuppressionV5", 5).Register();
  return true;
}();

HR_OP(NonMaxSuppressionWithOverlaps)
    .Input("overlaps: float")
    .Input("scores: float")
    .Input("max_output_size: int32")
    .Input("overlap_threshold: float")
    .Input("score_threshold: float")
    .Output("selected_indices: int32")
    .Doc("The best boxes that do not overlap better ones, by their overlaps.")
    .Shape(OverlapsShape)
    .NoGradient()
    .Cpu(ComputeOwn<RunOverlaps>);

}  // namespace
}  // namespace headrace
