// The end of things nested so deeply that recursion would leave the stack:
// values in values, datasets of datasets. (Walks along them ask
// CheckStackRoom.)
#pragma once

#include <memory>
#include <utility>

namespace headrace {

// Calls destroy(object). Inside many such calls it is put off until the
// outermost is done, so that ends of any depth need little stack.
void DestroyNested(void* object, void (*destroy)(void*));

// Deletes objects in that way.
struct NestedDelete {
  NestedDelete() = default;
  // So that std::make_unique makes what such pointers hold.
  template <typename T>
  NestedDelete(const std::default_delete<T>&) {}
  template <typename T>
  void operator()(T* p) const {
    using Plain = std::remove_const_t<T>;
    DestroyNested(const_cast<Plain*>(p),
                  [](void* o) { delete static_cast<Plain*>(o); });
  }
};

// std::make_shared<T>, for what ends in that way.
template <typename T, typename... Args>
std::shared_ptr<T> MakeNested(Args&&... args) {
  return std::shared_ptr<T>(new T(std::forward<Args>(args)...), NestedDelete());
}

}  // namespace headrace
