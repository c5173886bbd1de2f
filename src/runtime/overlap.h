// Which calls of a program go on while others wait.
#pragma once

#include <vector>

#include "runtime/program.h"
#include "runtime/side_by_side.h"

namespace headrace {

// Calls [begin, end) of a program, in blocks: all that follow the same waiting
// calls. A block's calls that do not wait run in order, on the run's thread;
// those that wait run on threads of their own.
struct Overlap {
  struct Block {
    std::vector<int> calls;  // in order
    int needs = 0;           // waiting calls that must have ended
  };
  struct Waiter {
    int call = 0;
    bool busy = false;         // takes a processor
    bool tried = false;        // before it gets a thread
    std::vector<int> unlocks;  // blocks that need it
  };
  int begin = 0, end = 0;
  // A block needs no block behind it.
  std::vector<Block> blocks;
  std::vector<Waiter> waiters;

  bool any() const { return !waiters.empty(); }
  // For the memory plan: each block and each waiting call is a strand.
  SideGroup AsGroup() const;
};

// Empty unless something could go on while a call waits: calls with effects,
// others that wait, or work that is worth a thread; or, where `always`, unless
// nothing waits. Else puts the program's calls into the order of the blocks.
// Kernels must be bound.
Overlap FindOverlap(Program& p, bool always = false);

// Whether a run ends before it would be worth another thread, and never waits:
// calls take known shapes of plain types, and nothing but variables and ends of
// edges has state. Kernels must be bound.
bool EndsSoon(const Program& p);
// The same but for waits, none of which needs a thread (kMayBeTried): whether
// what runs between them is short and reaches nothing outside of the engine. Of
// state, whose size may be unknown, that is hoped (Executable::may_pause).
bool MayPause(const Program& p);

}  // namespace headrace
