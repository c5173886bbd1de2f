// One handle for "a tensor": a concrete one, or an output of a graph's node.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

namespace headrace {

class Graph;  // graph/graph.h; opaque here
class Node;

// Counted and immutable but for a symbolic value's shape, which may become
// better known. Two handles name the same value when their ids are equal.
// Null when default-constructed: an invalid dtype, an unknown shape, no node.
// An emit that fails gives null values, which the code behind it may still ask.
class Value {
 public:
  Value() = default;
  explicit Value(Tensor t) : rep_(new Rep{{1}, NewId(), std::move(t)}) {}
  // Output `index` of `node`, which `graph` keeps alive; all handles of one
  // output are made with one id.
  Value(std::shared_ptr<Graph> graph, Node* node, int index, uint64_t id,
        DType dtype, Shape shape, std::shared_ptr<const HandleData> handle)
      : rep_(new Rep{{1},
                     id,
                     Tensor(dtype, std::move(shape)),
                     std::move(graph),
                     node,
                     index,
                     std::move(handle)}) {}
  // `count` consecutive ids that no other value has.
  static uint64_t NewIds(int count);
  Value(const Value& o) : rep_(o.rep_) {
    if (rep_) rep_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Value(Value&& o) noexcept : rep_(std::exchange(o.rep_, nullptr)) {}
  Value& operator=(Value o) noexcept {
    std::swap(rep_, o.rep_);
    return *this;
  }
  ~Value() {
    if (rep_ && rep_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete rep_;
    }
  }

  explicit operator bool() const { return rep_ != nullptr; }
  uint64_t id() const { return rep_ ? rep_->id : 0; }
  bool is_symbolic() const { return rep().node != nullptr; }
  // False for a description: a dtype and shape without elements, which a tape
  // keeps in place of values that a gradient does not read.
  bool has_value() const {
    return rep().node != nullptr || rep().tensor.has_buffer();
  }
  DType dtype() const { return rep().tensor.dtype(); }
  const Shape& shape() const { return rep().tensor.shape(); }
  int rank() const { return shape().rank(); }
  // The concrete tensor; for symbolic values one without a buffer.
  const Tensor& tensor() const { return rep().tensor; }
  const std::shared_ptr<Graph>& graph() const { return rep().graph; }
  Node* node() const { return rep().node; }
  int index() const { return rep().index; }
  // What is behind a resource or variant; null when not known.
  const HandleData* handle_data() const;
  std::shared_ptr<const HandleData> shared_handle_data() const;
  // Symbolic values only.
  void set_shape(Shape s) const {
    rep_->tensor = Tensor(rep_->tensor.dtype(), std::move(s));
  }
  // True when this handle is the only one: its buffer may be reused.
  bool unique() const {
    return rep_->refs.load(std::memory_order_acquire) == 1;
  }

 private:
  struct Rep {
    std::atomic<int32_t> refs;
    uint64_t id;
    Tensor tensor;
    std::shared_ptr<Graph> graph;
    Node* node = nullptr;
    int index = 0;
    std::shared_ptr<const HandleData> handle;
  };
  static const Rep kNull;
  static uint64_t NewId() { return NewIds(1); }
  const Rep& rep() const { return rep_ ? *rep_ : kNull; }
  Rep* rep_ = nullptr;
};
using ValueList = absl::InlinedVector<Value, 4>;

}  // namespace headrace
