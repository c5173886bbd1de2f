#include "bind/graph/call_stacks.h"

#include <utility>

#include "absl/container/inlined_vector.h"

namespace headrace::bind {
namespace {

// The caller of a frame, or null; a new reference.
Ref Back(PyObject* frame) {
#ifdef Py_LIMITED_API
  Ref back(PyObject_GetAttrString(frame, "f_back"));
  // Without a frame the stack ends here.
  if (!back) PyErr_Clear();
  return back.get() == Py_None ? Ref() : back;
#else
  return Ref(reinterpret_cast<PyObject*>(
      PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(frame))));
#endif
}

int Instruction(PyObject* frame) {
#ifdef Py_LIMITED_API
  Ref at(PyObject_GetAttrString(frame, "f_lasti"));
  long i = at ? PyLong_AsLong(at.get()) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  return static_cast<int>(i);
#else
  return PyFrame_GetLasti(reinterpret_cast<PyFrameObject*>(frame));
#endif
}

}  // namespace

CallStacks::~CallStacks() {
  for (const Frame& f : frames_) Py_DECREF(f.code);
}

int CallStacks::Intern(PyObject* code, int instruction, int outer) {
  // One entry for each place and way to it: loops that make thousands of nodes
  // add nothing.
  auto [it, added] = known_.emplace(Key{code, instruction, outer},
                                    static_cast<int>(frames_.size()));
  if (added) {
    // Held, as its address is the key.
    Py_INCREF(code);
    frames_.push_back({code, instruction, outer});
  }
  return it->second;
}

int CallStacks::StackOf(PyObject* frame, PyObject* until, int outer) {
  absl::InlinedVector<Ref, 8> walk;
  bool met = false;
  // Deep recursion is cut: the frames nearest to the node tell most.
  for (Ref f = Ref::Borrow(frame); f && walk.size() < kMostFrames && !met;) {
    met = f.get() == until;
    Ref back = met ? Ref() : Back(f.get());
    walk.push_back(std::exchange(f, std::move(back)));
  }
  // Where the walk met the graph's own frame the rest is known from Enter.
  int stack = met ? outer : kNone;
  // From the outside in, as each entry names the one around it.
  for (size_t n = walk.size(); n-- > 0;) {
    PyObject* f = walk[n].get();
    Ref code(reinterpret_cast<PyObject*>(
        PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(f))));
    stack = Intern(code.get(), Instruction(f), stack);
  }
  return stack;
}

void CallStacks::Enter() {
  // The running frame is the context manager's; its caller entered the graph.
  // Borrowed, and null where no Python runs.
  auto* now = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  Ref entered = now ? Back(now) : Ref();
  Ref outside = entered ? Back(entered.get()) : Ref();
  // What the last base knows is not walked again.
  PyObject* until = bases_.empty() ? nullptr : bases_.back().frame.get();
  int outer = outside ? StackOf(outside.get(), until,
                                until ? bases_.back().outer : kNone)
                      : kNone;
  bases_.push_back({std::move(entered), outer});
}

void CallStacks::Leave() {
  if (!bases_.empty()) bases_.pop_back();
}

void CallStacks::Record(int id) {
  auto* now = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  if (now == nullptr || id < 0) return;
  bool inside = !bases_.empty();
  int stack = StackOf(now, inside ? bases_.back().frame.get() : nullptr,
                      inside ? bases_.back().outer : kNone);
  // Nodes that come without an Emit of their own (captures, placeholders) share
  // the stack of the next that has one.
  of_node_.resize(id + 1, stack);
  of_node_[id] = stack;
}

PyObject* CallStacks::Get(int id) const {
  Ref list(PyList_New(0));
  if (!list || id < 0 || id >= static_cast<int>(of_node_.size())) {
    return list.release();
  }
  for (int i = of_node_[id]; i != kNone; i = frames_[i].outer) {
    Ref row(Py_BuildValue("(Oi)", frames_[i].code, frames_[i].instruction));
    if (!row || PyList_Insert(list.get(), 0, row.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace headrace::bind
