// Tensors read straight from checked JSON text.
#pragma once

#include <vector>

#include "absl/container/inlined_vector.h"
#include "serving/json/json_text.h"
#include "tensor/tensor.h"

namespace headrace::serving {

// Gathers values of one shape, the rows of a tensor. The shape is that of the
// first row, which is that of the first elements of its lists; what differs is
// an error.
class TensorRows {
 public:
  // `rows`: how many are going to be added, or kOneValue: one, which is the
  // tensor itself.
  static constexpr int64_t kOneValue = -1;
  explicit TensorRows(DType dtype, int64_t rows = kOneValue)
      : dtype_(dtype), rows_(rows) {}

  // The value that `at` stands at; goes past it. InvalidArgument for other
  // types and shapes than expected, Unimplemented for types that JSON has no
  // values of. After an error neither is of use.
  Status Add(JsonReader& at);
  // Once all have been added.
  Tensor Finish() { return std::move(tensor_); }

 private:
  Status Start(const JsonReader& first);
  template <typename T>
  Status Fill(JsonReader& at);
  Status CheckList(JsonReader& at);
  Status WrongSize(JsonReader& at);

  const DType dtype_;
  const int64_t rows_;
  bool started_ = false;
  std::vector<int64_t> row_;  // the shape of one
  Tensor tensor_;
  // More elements than the text can hold: there is nowhere to put them, as some
  // list is going to be of a wrong size.
  bool impossible_ = false;
  int64_t filled_ = 0;
  std::vector<int64_t> counts_;  // of elements, in the lists around the reader
};

// The tensor that the value is that `at` stands at.
StatusOr<Tensor> ReadTensor(JsonReader at, DType dtype);

}  // namespace headrace::serving
