// A step of a plan as an event of timelines, with what it made.
#pragma once

#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/timeline.h"
#include "tensor/tensor.h"

namespace headrace {

// Made where a timeline is On, before the step runs. The texts must live as
// long.
class StepEvent {
 public:
  StepEvent(StringView name, StringView op);

  // Before the step runs, which may write over them or let go of them.
  void AddInput(const Tensor& t) noexcept;
  // Behind it, all outputs, then Record. What finds no memory is left out.
  void AddOutput(const Tensor& t) noexcept;
  void Record() noexcept;

 private:
  const StringView name_, op_;
  absl::InlinedVector<const void*, 8> read_;
  std::vector<timeline::MadeTensor> made_;
  int64_t begin_;
};

}  // namespace headrace
