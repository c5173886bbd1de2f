// Ops on public tensors, for what the front end composes of several.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cc/access.h"
#include "op/emitter.h"

namespace headrace::tf::internal {

// What is emitted while it lives runs at once and is recorded by nobody, also
// inside a function that is being traced: weights are made there.
class Outside {
 public:
  Outside() : scope_(DefaultEmitter()) {}

 private:
  StopRecording quiet_;
  EmitterScope scope_;
};

[[noreturn]] void Throw(ErrorCode code, const std::string& text);

// The first output of an op, or all; throws.
Tensor Op(const char* op, const std::vector<Tensor>& inputs,
          const AttrMap& attrs = {});
std::vector<Tensor> OpAll(const char* op, const std::vector<Tensor>& inputs,
                          const AttrMap& attrs = {});

// Constants, also of a function being traced: a tensor with elements, a number
// of that dtype, int32 vectors.
Tensor Constant(headrace::Tensor t);
Tensor Number(DType dtype, double v);
Tensor Ints(const std::vector<int64_t>& values);
// Filled with a number.
Tensor Full(DType dtype, const TensorShape& shape, double v);

// Itself where the dtype is right already.
Tensor Cast(const Tensor& x, DType dtype);
Tensor Reshape(const Tensor& x, const std::vector<int64_t>& shape);
Tensor Transpose(const Tensor& x, const std::vector<int64_t>& order);
// int32: a constant where the shape is fully known.
Tensor ShapeOf(const Tensor& x);
// An int32 scalar.
Tensor Int(int64_t v);
// Sum, Mean, Max, ... over some axes; all when there are none.
Tensor Reduce(const char* op, const Tensor& x, std::vector<int64_t> axes,
              bool keep_dims = false);
Tensor SumAll(const Tensor& x);
Tensor MeanAll(const Tensor& x);
// num / den, and 0 where den is 0.
Tensor DivideNoNan(const Tensor& num, const Tensor& den);
Tensor ClipByValue(const Tensor& x, double low, double high);
// Scaled down where the L2 norm, of it or of all together, is above `limit`.
Tensor ClipByNorm(const Tensor& x, double limit);
std::vector<Tensor> ClipByGlobalNorm(const std::vector<Tensor>& list,
                                     double limit);
// x @ kernel over the last axis of x, of any rank >= 2.
Tensor TimesKernel(const Tensor& x, const Tensor& kernel);
// Parts of equal size along an axis.
std::vector<Tensor> Split(const Tensor& x, int64_t count, int64_t axis);
// x without its last axis, of size 1.
Tensor SqueezeLast(const Tensor& x);

// Rows of a table, of a variable without reading all of it.
Tensor GatherRows(const Variable& table, const Tensor& rows);
// x with a share `rate` of zeros, chosen for each place of `shape` (which
// broadcasts to x's), and the rest scaled up.
Tensor Dropped(const Tensor& x, double rate, const Tensor& shape,
               std::optional<int64_t> seed);

// Replaces the states by those after `row`; the first is the output.
using ScanStep =
    std::function<void(const Tensor& row, std::vector<Tensor>* states)>;
struct ScanResult {
  Tensor last, every;  // `every` is null unless asked for: [rows, ...]
  std::vector<Tensor> states;
};
// Runs `step` along the first axis of `rows`. Where `mask` ([rows, batch], may
// be null) is false, states and outputs stay what they were. Unrolled where
// the number of rows is known and not large, else a loop of the graph.
ScanResult ScanOver(const Tensor& rows, const Tensor& mask,
                    std::vector<Tensor> states, bool keep_all,
                    const ScanStep& step);

bool IsFloating(DType dtype);

}  // namespace headrace::tf::internal
