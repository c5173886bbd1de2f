#include "runtime/step_event.h"

#include <algorithm>

namespace headrace {

StepEvent::StepEvent(StringView name, StringView op)
    : name_(name), op_(op), begin_(timeline::Now()) {}

void StepEvent::AddInput(const Tensor& t) noexcept {
  try {
    if (t.has_buffer()) read_.push_back(t.raw());
  } catch (const std::bad_alloc&) {
    read_.clear();
  }
}

void StepEvent::AddOutput(const Tensor& t) noexcept {
  try {
    timeline::MadeTensor made{static_cast<int>(t.dtype()), {}, 0, 0, false};
    if (t.shape().known_rank()) {
      made.dims.assign(t.shape().dims().begin(), t.shape().dims().end());
    }
    if (t.has_buffer()) {
      made.bytes = static_cast<int64_t>(t.bytes());
      made.address = reinterpret_cast<uintptr_t>(t.raw());
      made.taken =
          std::find(read_.begin(), read_.end(), t.raw()) == read_.end();
    }
    made_.push_back(std::move(made));
  } catch (const std::bad_alloc&) {
    made_.clear();
  }
}

void StepEvent::Record() noexcept {
  timeline::RecordSpan(timeline::Event::Kind::kStep, name_, op_, begin_,
                       std::move(made_));
}

}  // namespace headrace
