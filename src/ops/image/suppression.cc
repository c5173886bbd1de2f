#include "ops/image/suppression.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace headrace {
namespace {

struct Candidate {
  int32_t box;
  float score;
  size_t seen;  // selected boxes that were already compared
  bool operator<(const Candidate& o) const {
    return score < o.score || (score == o.score && box > o.box);
  }
};

}  // namespace

std::vector<Selected> SelectBoxes(
    absl::Span<const float> scores, const SuppressionRule& rule,
    absl::FunctionRef<float(int64_t, int64_t)> overlap) {
  std::vector<Candidate> first;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > rule.lowest_score) {
      first.push_back({static_cast<int32_t>(i), scores[i], 0});
    }
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(),
                                       std::move(first));
  const bool soft = rule.soft_sigma > 0;
  const float scale = soft ? -0.5f / rule.soft_sigma : 0;
  std::vector<Selected> selected;
  while (static_cast<int64_t>(selected.size()) < rule.most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool out = false;
    for (size_t j = selected.size(); j-- > next.seen;) {
      const float o = overlap(next.box, selected[j].box);
      if (o > rule.overlap && !soft) {
        out = true;
        break;
      }
      next.score *= soft || o <= rule.overlap ? std::exp(scale * o * o) : 0;
      if (next.score <= rule.lowest_score) break;
    }
    next.seen = selected.size();
    if (out) continue;
    if (next.score == before) {
      selected.push_back({next.box, next.score});
    } else if (next.score > rule.lowest_score) {
      queue.push(next);
    }
  }
  return selected;
}

float OverlapOfBoxes(const float* a, const float* b) {
  struct Edges {
    float top, left, bottom, right;
    explicit Edges(const float* p)
        : top(std::min(p[0], p[2])),
          left(std::min(p[1], p[3])),
          bottom(std::max(p[0], p[2])),
          right(std::max(p[1], p[3])) {}
    float area() const { return (bottom - top) * (right - left); }
  };
  const Edges x(a), y(b);
  const float area_x = x.area(), area_y = y.area();
  if (area_x <= 0 || area_y <= 0) return 0;
  const float height =
      std::max(std::min(x.bottom, y.bottom) - std::max(x.top, y.top), 0.0f);
  const float width =
      std::max(std::min(x.right, y.right) - std::max(x.left, y.left), 0.0f);
  const float both = height * width;
  return both / (area_x + area_y - both);
}

Status CheckSuppressionScalars(ShapeContext& c, int first) {
  for (int i = first; i < c.num_inputs(); ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 0) {
      return InvalidArgument(
          c.op().def().inputs[i].name, " must be 0-D, got shape ", c.input(i),
          " (Shape must be rank 0 but is rank ", c.input(i).rank(), ")");
    }
  }
  return OkStatus();
}

StatusOr<int64_t> CountOfBoxes(const Shape& boxes, const Shape& scores) {
  int64_t count = -1;
  if (boxes.known_rank()) {
    if (boxes.rank() != 2)
      return InvalidArgument("boxes must be 2-D", boxes,
                             " (Shape must be rank 2 but is rank ",
                             boxes.rank(), ")");
    if (boxes[1] >= 0 && boxes[1] != 4) {
      return InvalidArgument(
          "boxes must have 4 columns (Dimension must be 4 but is ", boxes[1],
          ")");
    }
    count = boxes[0];
  }
  if (scores.known_rank()) {
    if (scores.rank() != 1) {
      return InvalidArgument("scores must be 1-D", scores,
                             " (Shape must be rank 1 but is rank ",
                             scores.rank(), ")");
    }
    if (count >= 0 && scores[0] >= 0 && count != scores[0]) {
      return InvalidArgument(
          "scores has incompatible shape (Dimensions must be equal, but are ",
          count, " and ", scores[0], ")");
    }
    if (count < 0) count = scores[0];
  }
  if (count > INT32_MAX) return InvalidArgument("too many boxes: ", count);
  return count;
}

}  // namespace headrace
