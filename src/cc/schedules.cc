// Learning rates as functions of the step, as tf.keras.optimizers.schedules.
#include <cmath>
#include <numbers>

#include "cc/compose.h"
#include "headrace/fit/optimizer.h"

namespace headrace::tf::schedules {

using internal::Number;
using internal::Op;
using internal::Throw;

namespace {

constexpr DType kFloat = DType::kFloat32;

Tensor F(double v) { return Number(kFloat, v); }
Tensor AsFloat(const Tensor& step) { return internal::Cast(step, kFloat); }

void CheckSteps(double steps, const char* name) {
  if (steps > 0) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat(name, " must be above 0, but is ", steps));
}

}  // namespace

LearningRate ExponentialDecay(double rate, double decay_steps,
                              double decay_rate, bool staircase) {
  CheckSteps(decay_steps, "decay_steps");
  return LearningRate([=](const Tensor& step) {
    Tensor p = AsFloat(step) / F(decay_steps);
    if (staircase) p = Op("Floor", {p});
    return F(rate) * Op("Pow", {F(decay_rate), p});
  });
}

LearningRate PiecewiseConstantDecay(std::vector<int64_t> boundaries,
                                    std::vector<float> values) {
  if (boundaries.size() + 1 != values.size()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("The length of boundaries should be 1 less than the "
                       "length of values. Received: ",
                       boundaries.size(), " boundaries and ", values.size(),
                       " values."));
  }
  return LearningRate([=](const Tensor& step) {
    const Tensor limits =
        internal::Constant(headrace::Tensor::Vector<int64_t>(boundaries));
    // In int64, as float32 tells steps above 2^24 no longer apart.
    const Tensor passed = internal::Cast(step, DType::kInt64) > limits;
    const Tensor place =
        internal::Reduce("Sum", internal::Cast(passed, DType::kInt32), {0});
    const Tensor table =
        internal::Constant(headrace::Tensor::Vector<float>(values));
    return Op("GatherV2", {table, place, internal::Int(0)});
  });
}

LearningRate CosineDecay(double rate, double decay_steps, double alpha,
                         std::optional<double> warmup_target,
                         double warmup_steps) {
  CheckSteps(decay_steps, "decay_steps");
  if (warmup_target) CheckSteps(warmup_steps, "warmup_steps");
  const auto decayed = [=](const Tensor& step, const Tensor& start) {
    const Tensor whole = F(decay_steps);
    const Tensor done = Op("Minimum", {step, whole}) / whole;
    // Loshchilov and Hutter's SGDR (2017).
    const Tensor wave = 0.5 * (1.0 + Op("Cos", {F(std::numbers::pi) * done}));
    return start * ((1 - alpha) * wave + alpha);
  };
  return LearningRate([=](const Tensor& given) {
    const Tensor step = AsFloat(given), start = F(rate);
    if (!warmup_target) return decayed(step, start);
    const Tensor target = F(*warmup_target), warm = F(warmup_steps);
    const Tensor rising = (target - start) * (step / warm) + start;
    // Counted from the end of the warm-up.
    const Tensor late = Op("Minimum", {step, warm + F(decay_steps)}) - warm;
    return Op("SelectV2", {step < warm, rising, decayed(late, target)});
  });
}

LearningRate InverseTimeDecay(double rate, double decay_steps,
                              double decay_rate, bool staircase) {
  CheckSteps(decay_steps, "decay_steps");
  return LearningRate([=](const Tensor& step) {
    Tensor p = AsFloat(step) / F(decay_steps);
    if (staircase) p = Op("Floor", {p});
    return F(rate) / (1.0 + F(decay_rate) * p);
  });
}

LearningRate CosineDecayRestarts(double rate, double first_decay_steps,
                                 double t_mul, double m_mul, double alpha) {
  CheckSteps(first_decay_steps, "first_decay_steps");
  CheckSteps(t_mul, "t_mul");
  return LearningRate([=](const Tensor& step) {
    Tensor done = AsFloat(step) / F(first_decay_steps), restarts;
    // The formula below would divide by log(1) = 0.
    if (t_mul == 1) {
      restarts = Op("Floor", {done});
      done = done - restarts;
    } else {
      const Tensor times = F(t_mul);
      // The sum of a geometric series solved for the number of periods: periods
      // grow by t_mul.
      restarts = Op("Floor", {Op("Log", {1.0 - done * (1.0 - times)}) /
                              Op("Log", {times})});
      const Tensor longer = Op("Pow", {times, restarts});
      done = (done - (1.0 - longer) / (1.0 - times)) / longer;
    }
    const Tensor wave = 0.5 * (1.0 + Op("Cos", {F(std::numbers::pi) * done}));
    const Tensor scaled = Op("Pow", {F(m_mul), restarts}) * wave;
    return F(rate) * ((1 - alpha) * scaled + alpha);
  });
}

LearningRate PolynomialDecay(double rate, double decay_steps, double end_rate,
                             double power, bool cycle) {
  CheckSteps(decay_steps, "decay_steps");
  return LearningRate([=](const Tensor& given) {
    Tensor whole = F(decay_steps), step = AsFloat(given);
    const Tensor end = F(end_rate);
    if (cycle) {
      // At step 0 the ceiling is 0 and the whole would be 0 steps long.
      const Tensor times = Op("SelectV2", {Op("Equal", {step, F(0)}), F(1),
                                           Op("Ceil", {step / whole})});
      whole = whole * times;
    } else {
      step = Op("Minimum", {step, whole});
    }
    const Tensor left = Op("Pow", {1.0 - step / whole, F(power)});
    return (F(rate) - end) * left + end;
  });
}

}  // namespace headrace::tf::schedules
