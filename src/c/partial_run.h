// One run of a session's graph in several steps.
#pragma once

#include <vector>

#include "base/hash_map.h"
#include "c/session.h"

namespace headrace::capi {

// What a run has been given and has computed so far. A step computes what it
// needs behind the values known: those fed, those fetched, and what operations
// with state made. Others may be computed again, with the same values. Targets
// run once, in the first step that can. Used by one thread at a time: the
// session's partial_mutex is held.
class PartialRun {
 public:
  explicit PartialRun(Request plan) : plan_(std::move(plan)) {}

  // InvalidArgument for feeds and fetches that were not planned or came before,
  // and for fetches that want what has not been fed.
  Status Step(TF_Session* session, const Request& step,
              std::vector<Tensor> feeds, std::vector<Tensor>* fetched);
  // Whether all that was planned has been fed, fetched and run.
  bool finished() const;

 private:
  struct Needed {
    std::vector<Node*> nodes;       // that must run
    const Node* missing = nullptr;  // a placeholder without a value
  };
  Needed NeededFor(std::vector<Node*> open) const;
  Status Check(StringView what, const Edge& e, const std::vector<Edge>& planned,
               StringView done) const;
  Status CheckNotAgain(const Needed& needed) const;

  const Request plan_;
  HashMap<Edge, Tensor> known_;
  HashSet<Edge> fetched_;
  HashSet<const Node*> done_;  // nodes with state
  HashSet<Node*> ran_;         // of the targets
};

}  // namespace headrace::capi
