// Where in Python a graph's nodes were made.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash_map.h"
#include "bind/python/python.h"

namespace headrace::bind {

// Stacks of (code, instruction), sharing their outer parts. Cheap to add to:
// the part outside the graph's `with` block is recorded once. GIL held.
class CallStacks {
 public:
  ~CallStacks();
  // The graph, or a function in it, was entered (left): what runs now is the
  // outer part.
  void Enter();
  void Leave();
  // The stack of now is node `id`'s. Ids grow.
  void Record(int id);
  // [(code, instruction offset)], outermost first, of node `id`: new
  // reference, or null with an error set.
  PyObject* Get(int id) const;

 private:
  static constexpr int kNone = -1;
  static constexpr int kMostFrames = 64;
  struct Frame {
    PyObject* code;  // owned
    int instruction;
    int outer;
  };
  struct Key {
    PyObject* code;
    int instruction;
    int outer;
    bool operator==(const Key& o) const {
      return code == o.code && instruction == o.instruction && outer == o.outer;
    }
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.code, k.instruction, k.outer);
    }
  };
  struct Base {
    Ref frame;  // that entered the graph
    int outer;  // the stack around it
  };

  // The stack that ends in `frame`; stops at `until` (may be null), whose
  // surroundings are `outer`.
  int StackOf(PyObject* frame, PyObject* until, int outer);
  int Intern(PyObject* code, int instruction, int outer);

  std::vector<Frame> frames_;
  HashMap<Key, int> known_;
  std::vector<int> of_node_;
  std::vector<Base> bases_;
};

}  // namespace headrace::bind
