// The loops and branches of TensorFlow 1 in a graph, found by its nodes alone,
// so that imported graphs have them as built ones do.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "graph/graph.h"

namespace headrace {

// Of a graph at one moment; nodes that come later are told by Add.
class FlowMap {
 public:
  // A frame.
  struct Loop {
    // What goes round: Enter and NextIteration meet in a Merge, a Switch sends
    // the value into the body or to the Exit. Null where it is not there.
    struct Variable {
      Node* enter = nullptr;
      Node* merge = nullptr;
      Node* choose = nullptr;  // the Switch
      Node* next = nullptr;
      Node* exit = nullptr;
    };
    Loop* around = nullptr;
    std::string frame;
    std::vector<Variable> variables;
    std::vector<Node*> constants;  // Enters of what is the same in all turns
    std::vector<Node*> exits;
    Node* condition = nullptr;  // LoopCond
    // Whether each variable goes round as above.
    bool is_whole() const;
  };
  // A node within a branch runs where `pred` is `side`, and where what `pred`
  // is in itself runs.
  struct Guard {
    Edge pred;
    int side;
    const Guard* around;
    int depth;
  };

  explicit FlowMap(const Graph& graph);
  // Whether the graph has any node of this kind.
  static bool IsNeeded(const Graph& graph);

  // The loop in whose turns the values of `n` are seen; null: in none. Those of
  // an Exit are seen around its loop.
  const Loop* SeenIn(const Node& n) const { return At(n).seen_in; }
  // The loop that an Exit leaves; null for other nodes.
  const Loop* LeftBy(const Node& n) const;
  // The innermost guard, within the loop that the value is seen in.
  const Guard* GuardOf(const Edge& e) const;
  // Of what the node itself does.
  const Guard* GuardOfNode(const Node& n) const { return At(n).guard; }
  // Whether `n` hands on what goes round in a loop.
  static bool GoesRound(const Node& n);
  // Whether a Switch is one that a loop's condition decides.
  static bool IsOfLoop(const Node& choose);
  // Says that `n` is seen where `like` is, with the same guard.
  void Add(const Node& n, const Node& like);

 private:
  struct Place {
    Loop* runs_in = nullptr;
    Loop* seen_in = nullptr;
    const Guard* guard = nullptr;  // of Switches: that of the node itself
  };
  const Place& At(const Node& n) const;
  void FindLoops();
  void FindVariables(Loop* loop);
  void FindGuards();
  std::vector<Edge> GuardingInputs(const Node& n) const;
  const Guard* GuardFromInputs(const Node& n) const;
  const Guard* NewGuard(const Edge& pred, int side, const Guard* around);

  const Graph& graph_;
  std::vector<Place> places_;              // by node
  std::vector<std::vector<Node*>> users_;  // by node
  std::deque<Loop> loops_;
  HashMap<std::pair<const Loop*, std::string>, Loop*> by_frame_;
  std::deque<Guard> guards_;
  HashMap<std::pair<Edge, std::pair<int, const Guard*>>, const Guard*>
      guard_of_;
  HashMap<Edge, const Guard*> switched_;  // outputs of Switches
};

}  // namespace headrace
