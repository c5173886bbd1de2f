#include "base/nested.h"

#include <new>
#include <vector>

namespace headrace {
namespace {

constexpr int kDeepest = 100;  // of calls that destroy inside each other

struct Pending {
  void* object;
  void (*destroy)(void*);
};

// Of this thread. Without destructors: other thread-local objects may end
// later.
constinit thread_local int depth = 0;
constinit thread_local std::vector<Pending>* pending = nullptr;

}  // namespace

void DestroyNested(void* object, void (*destroy)(void*)) {
  if (depth >= kDeepest) {
    try {
      if (pending == nullptr) pending = new std::vector<Pending>;
      pending->push_back({object, destroy});
      return;
    } catch (const std::bad_alloc&) {
      // One level more.
    }
  }
  ++depth;
  destroy(object);
  if (depth == 1 && pending != nullptr) {
    while (!pending->empty()) {
      const Pending next = pending->back();
      pending->pop_back();
      next.destroy(next.object);
    }
    delete std::exchange(pending, nullptr);
  }
  --depth;
}

}  // namespace headrace
