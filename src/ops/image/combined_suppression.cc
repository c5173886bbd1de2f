// CombinedNonMaxSuppression: suppression by class, then the best over all
// classes, an image at a time.
#include <algorithm>

#include "base/thread_pool.h"
#include "ops/image/suppression.h"

namespace headrace {
namespace {

struct Suppression {
  int64_t batch = 0, boxes = 0, classes = 0, rows = 0;
  int64_t kinds = 1;  // 1, or a box for each class
  SuppressionRule rule;
  bool clips = false;
};

struct Found {
  float score;
  int64_t kind, box;
};

// Inputs 2 and 3, where known: rows of the outputs, or -1.
StatusOr<int64_t> RowsOf(ShapeContext& c, int64_t classes) {
  bool know_each = false, know_total = false;
  int64_t each = 0, total = 0;
  HR_RETURN_IF_ERROR(c.IntValue(2, &know_each, &each));
  HR_RETURN_IF_ERROR(c.IntValue(3, &know_total, &total));
  if (know_each && each <= 0) {
    return InvalidArgument("max_size_per_class must be positive");
  }
  if (know_total && total <= 0) {
    return InvalidArgument("max_total_size must be > 0");
  }
  if (!know_total) return -1;
  if (!c.op().bool_attr("pad_per_class")) return total;
  if (!know_each || classes < 0) return -1;
  int64_t all;
  // A product that overflows is larger than any total.
  if (!MultiplyChecked(each, classes, &all)) return total;
  return std::min(total, all);
}

Status CombinedShape(ShapeContext& c) {
  const Shape &boxes = c.input(0), &scores = c.input(1);
  HR_RETURN_IF_ERROR(CheckSuppressionScalars(c, 2));
  if (boxes.known_rank()) {
    if (boxes.rank() != 4) return InvalidArgument("boxes must be 4-D", boxes);
    if (boxes[3] >= 0 && boxes[3] != 4) {
      return InvalidArgument("boxes must have 4 columns");
    }
  }
  if (scores.known_rank() && scores.rank() != 3) {
    return InvalidArgument("scores must be 3-D", scores);
  }
  int64_t batch = boxes.known_rank() ? boxes[0] : -1;
  int64_t classes = -1;
  if (scores.known_rank()) {
    classes = scores[2];
    auto differ = [](int64_t a, int64_t b) {
      return a >= 0 && b >= 0 && a != b;
    };
    if (boxes.known_rank() &&
        (differ(boxes[0], scores[0]) || differ(boxes[1], scores[1]))) {
      return InvalidArgument("scores has incompatible shape");
    }
    if (boxes.known_rank() && boxes[2] != 1 && differ(boxes[2], classes)) {
      return InvalidArgument(
          "third dimension of boxes must be either 1 or num classes");
    }
    if (batch < 0) batch = scores[0];
  }
  HR_ASSIGN_OR_RETURN(int64_t rows, RowsOf(c, classes));
  HR_ASSIGN_OR_RETURN(Shape four, Shape::Make({batch, rows, 4}, true));
  c.set_output(0, std::move(four));
  c.set_output(1, Shape{batch, rows});
  c.set_output(2, Shape{batch, rows});
  c.set_output(3, Shape{batch});
  return OkStatus();
}

// The best boxes of one image, best first.
std::vector<Found> BestOf(const Suppression& r, const float* boxes,
                          const float* scores) {
  std::vector<Found> found;
  std::vector<float> of_class(r.boxes);
  for (int64_t k = 0; k < r.classes; ++k) {
    const int64_t kind = r.kinds == 1 ? 0 : k;
    for (int64_t i = 0; i < r.boxes; ++i) {
      of_class[i] = scores[i * r.classes + k];
    }
    auto box = [&](int64_t i) { return boxes + (i * r.kinds + kind) * 4; };
    for (const Selected& s :
         SelectBoxes(of_class, r.rule, [&](int64_t i, int64_t j) {
           return OverlapOfBoxes(box(i), box(j));
         })) {
      found.push_back({s.score, k, s.box});
    }
  }
  // Equal scores keep the order of their classes.
  std::stable_sort(
      found.begin(), found.end(),
      [](const Found& a, const Found& b) { return a.score > b.score; });
  if (static_cast<int64_t>(found.size()) > r.rows) found.resize(r.rows);
  return found;
}

Status RunCombined(KernelContext& c) {
  const Shape &boxes = c.input(0).shape(), &scores = c.input(1).shape();
  Suppression r;
  r.batch = boxes[0];
  r.boxes = boxes[1];
  r.kinds = boxes[2];
  r.classes = scores[2];
  r.rows = c.output(1).dim(1);
  r.rule.most = c.input(2).scalar<int32_t>();
  r.rule.overlap = c.input(4).scalar<float>();
  r.rule.lowest_score = c.input(5).scalar<float>();
  r.clips = c.op().bool_attr("clip_boxes");
  // Written so that a NaN is refused, too.
  if (!(r.rule.overlap >= 0 && r.rule.overlap <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1]");
  }
  const double cost = 100.0 * r.boxes * r.classes;
  ParallelFor(r.batch, cost, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const float* in = c.in<float>(0) + b * r.boxes * r.kinds * 4;
      const auto best = BestOf(r, in, c.in<float>(1) + b * r.boxes * r.classes);
      float* to = c.out<float>(0) + b * r.rows * 4;
      float* score = c.out<float>(1) + b * r.rows;
      float* kind = c.out<float>(2) + b * r.rows;
      // Rows behind the last box are zeros by the op's definition.
      std::fill_n(to, r.rows * 4, 0.0f);
      std::fill_n(score, r.rows, 0.0f);
      std::fill_n(kind, r.rows, 0.0f);
      for (size_t i = 0; i < best.size(); ++i) {
        const int64_t which = r.kinds == 1 ? 0 : best[i].kind;
        const float* box = in + (best[i].box * r.kinds + which) * 4;
        for (int k = 0; k < 4; ++k) {
          to[i * 4 + k] =
              r.clips ? std::max(std::min(box[k], 1.0f), 0.0f) : box[k];
        }
        score[i] = best[i].score;
        kind[i] = static_cast<float>(best[i].kind);
      }
      c.out<int32_t>(3)[b] = static_cast<int32_t>(best.size());
    }
  });
  return OkStatus();
}

HR_OP(CombinedNonMaxSuppression)
    .Input("boxes: float")
    .Input("scores: float")
    .Input("max_output_size_per_class: int32")
    .Input("max_total_size: int32")
    .Input("iou_threshold: float")
    .Input("score_threshold: float")
    .Output("nmsed_boxes: float")
    .Output("nmsed_scores: float")
    .Output("nmsed_classes: float")
    .Output("valid_detections: int32")
    .Attr("pad_per_class: bool = false")
    .Attr("clip_boxes: bool = true")
    .Doc("The best boxes of all classes that do not overlap better ones.")
    .Shape(CombinedShape)
    .Cpu(Compute<RunCombined>);

}  // namespace
}  // namespace headrace
