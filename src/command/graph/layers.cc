#include "command/graph/layers.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace headrace::command {
namespace {

constexpr int kSweeps = 8;
constexpr double kBendWidth = 6;  // of an arrow that passes a layer
// Above so many bends long arrows are drawn straight.
constexpr int64_t kMostBends = 20'000;

// A box, or a place where an arrow passes a layer.
struct Vertex {
  int layer = 0;
  double width = 0, x = 0, order = 0;
  std::vector<int> above, below;
};

class Layering {
 public:
  Layering(double gap, std::vector<LayoutBox>* boxes,
           std::vector<LayoutArrow>* arrows)
      : gap_(gap), boxes_(*boxes), arrows_(*arrows) {}

  double Run() {
    SetLayers();
    MakeVertices();
    Order();
    const double width = Place();
    Hand();
    return width;
  }

 private:
  // The longest way from a box that no arrow leads to; arrows that close
  // circles do not count.
  void SetLayers() {
    const int n = static_cast<int>(boxes_.size());
    std::vector<std::vector<int>> out(n);
    for (const LayoutArrow& a : arrows_) {
      if (a.from != a.to) out[a.from].push_back(a.to);
    }
    // Boxes behind all that they lead to; a stack of its own, as graphs are
    // longer than the thread's is deep.
    std::vector<int> order, state(n);
    std::vector<std::pair<int, size_t>> stack;
    std::vector<std::vector<int>> forward(n);
    for (int root = 0; root < n; ++root) {
      if (state[root]) continue;
      state[root] = 1;
      stack.push_back({root, 0});
      while (!stack.empty()) {
        auto& [v, next] = stack.back();
        if (next == out[v].size()) {
          state[v] = 2;
          order.push_back(v);
          stack.pop_back();
          continue;
        }
        const int to = out[v][next++];
        if (state[to] == 1) continue;  // closes a circle
        forward[v].push_back(to);
        if (state[to] == 0) {
          state[to] = 1;
          stack.push_back({to, 0});
        }
      }
    }
    std::reverse(order.begin(), order.end());
    for (const int v : order) {
      for (const int to : forward[v]) {
        boxes_[to].layer = std::max(boxes_[to].layer, boxes_[v].layer + 1);
      }
    }
    // What nothing leads to stands right above what it leads to.
    std::vector<bool> entered(n);
    for (const auto& list : forward) {
      for (const int to : list) entered[to] = true;
    }
    for (int v = 0; v < n; ++v) {
      if (entered[v] || forward[v].empty()) continue;
      int least = INT32_MAX;
      for (const int to : forward[v]) {
        least = std::min(least, boxes_[to].layer);
      }
      boxes_[v].layer = least - 1;
    }
  }

  void MakeVertices() {
    int last = 0;
    for (const LayoutBox& b : boxes_) {
      vertices_.push_back({b.layer, b.width});
      last = std::max(last, b.layer);
    }
    int64_t bends = 0;
    for (const LayoutArrow& a : arrows_) {
      bends += std::max(0, boxes_[a.to].layer - boxes_[a.from].layer - 1);
    }
    first_bend_.assign(arrows_.size(), -1);
    for (size_t i = 0; i < arrows_.size(); ++i) {
      const LayoutArrow& a = arrows_[i];
      const int length = boxes_[a.to].layer - boxes_[a.from].layer;
      if (length < 1) continue;
      int before = a.from;
      if (bends <= kMostBends && length > 1) {
        first_bend_[i] = static_cast<int>(vertices_.size());
        for (int k = 1; k < length; ++k) {
          const int bend = static_cast<int>(vertices_.size());
          vertices_.push_back({boxes_[a.from].layer + k, kBendWidth});
          Join(before, bend);
          before = bend;
        }
      }
      Join(before, a.to);
    }
    layers_.resize(last + 1);
    for (size_t v = 0; v < vertices_.size(); ++v) {
      auto& layer = layers_[vertices_[v].layer];
      vertices_[v].order = static_cast<double>(layer.size());
      layer.push_back(static_cast<int>(v));
    }
  }

  void Join(int from, int to) {
    vertices_[from].below.push_back(to);
    vertices_[to].above.push_back(from);
  }

  // Each layer in the order of what its vertices are joined with.
  void Order() {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t k = 0; k < layers_.size(); ++k) {
        auto& layer = layers_[down ? k : layers_.size() - 1 - k];
        std::vector<std::pair<double, int>> keyed;
        for (const int v : layer) {
          const auto& near = down ? vertices_[v].above : vertices_[v].below;
          double sum = 0;
          for (const int u : near) sum += vertices_[u].order;
          keyed.push_back({near.empty()
                               ? vertices_[v].order
                               : sum / static_cast<double>(near.size()),
                           v});
        }
        std::stable_sort(
            keyed.begin(), keyed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
        for (size_t i = 0; i < layer.size(); ++i) {
          layer[i] = keyed[i].second;
          vertices_[layer[i]].order = static_cast<double>(i);
        }
      }
    }
  }

  double Distance(int left, int right) const {
    return (vertices_[left].width + vertices_[right].width) / 2 + gap_;
  }

  // Side by side, then towards what they are joined with.
  double Place() {
    for (const auto& layer : layers_) {
      double x = 0;
      for (size_t i = 0; i < layer.size(); ++i) {
        x += i ? Distance(layer[i - 1], layer[i]) : 0;
        vertices_[layer[i]].x = x;
      }
    }
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (size_t k = 0; k < layers_.size(); ++k) {
        PlaceLayer(layers_[sweep % 2 ? layers_.size() - 1 - k : k]);
      }
    }
    double left = 0, right = 0;
    for (const Vertex& v : vertices_) {
      left = std::min(left, v.x - v.width / 2);
      right = std::max(right, v.x + v.width / 2);
    }
    for (Vertex& v : vertices_) v.x -= left;
    return right - left;
  }

  void PlaceLayer(const std::vector<int>& layer) {
    // The mean of two packings, from the left and from the right, each of which
    // keeps the distances: so does their mean.
    std::vector<double> wanted, from_left, from_right;
    for (const int v : layer) {
      double sum = 0;
      size_t count = 0;
      for (const auto* near : {&vertices_[v].above, &vertices_[v].below}) {
        for (const int u : *near) sum += vertices_[u].x;
        count += near->size();
      }
      wanted.push_back(count ? sum / static_cast<double>(count)
                             : vertices_[v].x);
    }
    from_left = from_right = wanted;
    for (size_t i = 1; i < layer.size(); ++i) {
      from_left[i] = std::max(
          wanted[i], from_left[i - 1] + Distance(layer[i - 1], layer[i]));
    }
    for (size_t i = layer.size(); i-- > 1;) {
      from_right[i - 1] = std::min(
          wanted[i - 1], from_right[i] - Distance(layer[i - 1], layer[i]));
    }
    for (size_t i = 0; i < layer.size(); ++i) {
      vertices_[layer[i]].x = (from_left[i] + from_right[i]) / 2;
    }
  }

  void Hand() {
    for (size_t i = 0; i < boxes_.size(); ++i) boxes_[i].x = vertices_[i].x;
    for (size_t i = 0; i < arrows_.size(); ++i) {
      LayoutArrow& a = arrows_[i];
      if (first_bend_[i] < 0) continue;
      const int length = boxes_[a.to].layer - boxes_[a.from].layer;
      for (int k = 0; k + 1 < length; ++k) {
        a.through.push_back(vertices_[first_bend_[i] + k].x);
      }
    }
  }

  const double gap_;
  std::vector<LayoutBox>& boxes_;
  std::vector<LayoutArrow>& arrows_;
  std::vector<Vertex> vertices_;  // those of the boxes first
  std::vector<int> first_bend_;   // by arrow, or -1
  std::vector<std::vector<int>> layers_;
};

}  // namespace

double LayOut(double gap, std::vector<LayoutBox>* boxes,
              std::vector<LayoutArrow>* arrows) {
  if (boxes->empty()) return 0;
  return Layering(gap, boxes, arrows).Run();
}

}  // namespace headrace::command
