// The turns of a loop in one workspace of one plan: what a turn makes is handed
// to the next within the workspace's slots.
#pragma once

#include <memory>
#include <vector>

#include "runtime/executable.h"

namespace headrace {

// An executable whose first fetches are what its feeds are in the next turn.
// Immutable; thread-safe.
class TurnPlan {
 public:
  // `turn`: fetch i is the next feed i, of its dtype; more fetches may follow.
  static StatusOr<std::unique_ptr<TurnPlan>> Make(Program turn);
  int num_variables() const { return executable_->num_feeds(); }
  const Executable& executable() const { return *executable_; }

 private:
  friend class Turns;
  // A result that becomes a feed.
  struct Next {
    ValueId from, to;
    bool swap = false;   // the feed's old memory takes the next result
    bool check = false;  // the shape may not fit the feed's
    int index = 0;       // of the feed
  };
  TurnPlan() = default;
  void PlanNext();
  // The feed's memory is to stay until the turn's end.
  void KeepFeed(ValueId feed);

  std::unique_ptr<Executable> executable_;
  std::vector<Next> direct_;  // moved, in any order
  std::vector<Next> copied_;  // all read before any is written
};

// One run of a loop, by one thread.
class Turns {
 public:
  // `plan` and `services` must outlive it.
  static StatusOr<std::unique_ptr<Turns>> Begin(const TurnPlan& plan,
                                                const RunServices& services);
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // What the variables are at first, moved from.
  Status Set(absl::Span<Tensor> state) {
    return plan_.executable_->SetFeeds(*workspace_, state);
  }
  // Runs a turn. Its fetches can be read until Advance.
  Status Run();
  const Tensor& fetch(int i) const;
  // Makes the results the next turn's variables, which are to fit it if there
  // is one (`more`).
  Status Advance(bool more);
  // The variables, moved out.
  void Take(std::vector<Tensor>* state);

 private:
  Turns(const TurnPlan& plan, std::unique_ptr<Executable::Workspace> workspace);
  Status Check(const TurnPlan::Next& next) const;

  const TurnPlan& plan_;
  std::unique_ptr<Executable::Workspace> workspace_;
  std::vector<Tensor> passing_;  // one a copied_
};

}  // namespace headrace
