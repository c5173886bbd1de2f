// Which calls that may wait (op/waiting.h) come before which others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/hash_map.h"
#include "graph/function.h"
#include "graph/graph.h"

namespace headrace {

// Waiting calls by their numbers, which grow in the order of the program.
using WaitSet = absl::InlinedVector<int32_t, 1>;

// An order of waiting calls. Sets hold the last ones alone: none that another
// of the set comes behind.
class WaitOrder {
 public:
  // A further waiting call, behind these; its number.
  int32_t Add(WaitSet behind);
  int size() const { return static_cast<int>(behind_.size()); }
  const WaitSet& behind(int32_t waiter) const { return behind_[waiter]; }
  // What follows both *set and `more` follows what *set is then.
  void Join(WaitSet* set, const WaitSet& more) const;
  // How many waiting calls what follows `set` comes behind, all counted.
  int CountBefore(const WaitSet& set) const;

 private:
  bool Follows(int32_t later, int32_t earlier) const {
    return before_[later][earlier / 64] >> (earlier % 64) & 1;
  }
  void Insert(WaitSet* set, int32_t waiter) const;

  std::vector<WaitSet> behind_;
  std::vector<std::vector<uint64_t>> before_;  // all, as bits
};

// Whether calls of an op may wait: it says so, or a function that it calls
// does. Functions are looked at once.
class WaitFinder {
 public:
  explicit WaitFinder(const FunctionLibrary* library) : library_(library) {}
  bool MayWait(const ResolvedOp& op);

 private:
  bool MayWait(const FuncRef& f);

  const FunctionLibrary* library_;
  HashMap<const Function*, bool> known_;
};

// The order of a graph's waiting calls, by its edges of data and of control,
// while the graph is written as a program. A function's body has the order in
// which it was recorded: what it does, it does one by one.
class WaitTracker {
 public:
  explicit WaitTracker(const FunctionLibrary* library) : finder_(library) {}

  // The nodes of one graph or body.
  struct Body {
    bool serial = false;  // a function's
    WaitSet entry;        // what all its nodes follow
    WaitSet effects;      // what the next effect follows, if serial
    HashMap<const Node*, WaitSet> behind;  // what follows a node
  };

  // Moves what waiting nodes need, and these, before all others, so that they
  // begin early. False where none waits, or too many do.
  bool Begin(std::vector<Node*>* nodes, absl::Span<const Edge> feeds);
  // What a node follows.
  WaitSet BehindOf(const Body& body, const Node& n) const;
  // The node was written, as a waiting call (its number) or not (-1).
  void Wrote(Body* body, const Node& n, WaitSet behind, int32_t waiter) const;
  // The node's call was written out as `inner`, which began with `behind`.
  void WroteBody(Body* body, const Node& n, const Body& inner) const;
  bool MayWait(const ResolvedOp& op) { return finder_.MayWait(op); }
  // The node is a waiting call behind *behind; its number. Calls of one op on
  // one resource follow each other, as they would take what they wait for in
  // the order of threads else.
  int32_t Add(const Node& n, WaitSet* behind);
  const WaitOrder& order() const { return order_; }

 private:
  // An op, and what it waits for: a resource or a name.
  using Awaited = std::tuple<const OpDef*, Edge, std::string>;
  static std::optional<Awaited> AwaitedBy(const Node& n);
  void JoinNode(const Body& body, const Node* n, WaitSet* set) const;

  WaitFinder finder_;
  WaitOrder order_;
  HashSet<Edge> fed_;
  HashMap<Awaited, int32_t> last_;  // waiting call
};

}  // namespace headrace
