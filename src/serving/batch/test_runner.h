// For tests of batches: runners that do as they are told, and requests to wait
// for.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "gtest/gtest.h"
#include "serving/model/runner.h"

namespace headrace::serving {

// A result that comes later.
class Answer {
 public:
  RunDone done() {
    auto state = state_;
    return [state](StatusOr<Tensors> result) {
      MutexLock lock(state->mutex);
      ++state->calls;
      state->result = std::move(result);
      state->changed.NotifyAll();
    };
  }
  // Waits; gives up after a minute.
  StatusOr<Tensors> Wait() {
    MutexLock lock(state_->mutex);
    for (int i = 0; i < 600 && !state_->result; ++i) {
      state_->changed.WaitFor(state_->mutex, std::chrono::milliseconds(100));
    }
    if (!state_->result) return Internal("no answer came");
    return *state_->result;
  }
  Status WaitStatus() { return Wait().status(); }
  bool there() const {
    MutexLock lock(state_->mutex);
    return state_->result.has_value();
  }
  int calls() const {
    MutexLock lock(state_->mutex);
    return state_->calls;
  }

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    std::optional<StatusOr<Tensors>> result ABSL_GUARDED_BY(mutex);
    int calls ABSL_GUARDED_BY(mutex) = 0;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Gives twice its first input, or what it is told to. Records what it got.
class FakeRunner : public Runner {
 public:
  void Run(CallPtr call, Tensors inputs, RunDone done) override {
    Status error;
    {
      MutexLock lock(mutex_);
      batches_.push_back(inputs);
      calls_.push_back(call);
      changed_.NotifyAll();
      while (held_ && call->stop().status().ok()) {
        changed_.WaitFor(mutex_, std::chrono::milliseconds(2));
      }
      error = error_;
    }
    if (error.ok()) error = call->stop().status();
    if (!error.ok()) return done(error);
    if (outputs_) return done(outputs_(inputs));
    Tensor twice = *inputs[0].Clone();
    if (twice.dtype() == DType::kFloat) {
      for (float& x : twice.span<float>()) x *= 2;
    }
    done(Tensors{std::move(twice)});
  }

  // While held, runs wait.
  void Hold() { SetHeld(true); }
  void Release() { SetHeld(false); }
  void Fail(Status s) {
    MutexLock lock(mutex_);
    error_ = std::move(s);
  }
  // Before the first run.
  void Give(std::function<StatusOr<Tensors>(const Tensors&)> outputs) {
    outputs_ = std::move(outputs);
  }
  // What came so far.
  std::vector<Tensors> batches() {
    MutexLock lock(mutex_);
    return batches_;
  }
  std::vector<CallPtr> calls() {
    MutexLock lock(mutex_);
    return calls_;
  }
  void WaitForBatches(size_t count) {
    MutexLock lock(mutex_);
    for (int i = 0; i < 600 && batches_.size() < count; ++i) {
      changed_.WaitFor(mutex_, std::chrono::milliseconds(100));
    }
    EXPECT_GE(batches_.size(), count);
  }

 private:
  void SetHeld(bool held) {
    MutexLock lock(mutex_);
    held_ = held;
    changed_.NotifyAll();
  }
  std::function<StatusOr<Tensors>(const Tensors&)> outputs_;
  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  Status error_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensors> batches_ ABSL_GUARDED_BY(mutex_);
  std::vector<CallPtr> calls_ ABSL_GUARDED_BY(mutex_);
};

// Rows of `width` floats: row r of `value` + r everywhere.
inline Tensor FloatRows(int64_t rows, int64_t width, float value) {
  Tensor t = *Tensor::Allocate(DType::kFloat, Shape{rows, width});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < width; ++i) {
      t.data<float>()[r * width + i] = value + static_cast<float>(r);
    }
  }
  return t;
}

inline std::vector<float> FloatsOf(const Tensor& t) {
  const auto s = t.span<float>();
  return {s.begin(), s.end()};
}

}  // namespace headrace::serving
