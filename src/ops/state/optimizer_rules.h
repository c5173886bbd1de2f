// Update rules of optimizers, one element at a time: the one place where they
// are written. A rule reads and writes its `kSlots` tensors x[0] (the
// variable), x[1], ... at one element, given the gradient g there.
//
//   Prepare(scalars)   once a call: the op's scalar inputs in their order,
//                      then its attributes as 0 or 1
//   Step(x, g)         one element
//
// T is float or double (a compute type). For *_loops.cc files: everything is
// in the level's namespace and forced inline.
#pragma once

namespace headrace::HR_LEVEL {

// Forced inline: see HR_VECTOR (base/numbers/vector_math.h).
#define HR_RULE [[gnu::always_inline]] inline

template <typename T>
HR_RULE T SquareRoot(T x) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_sqrtf(x);
  } else {
    return __builtin_sqrt(x);
  }
}
template <typename T>
HR_RULE T Power(T x, T y) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_powf(x, y);
  } else {
    return __builtin_pow(x, y);
  }
}
template <typename T>
HR_RULE T Exponential(T x) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_expf(x);
  } else {
    return __builtin_exp(x);
  }
}
template <typename T>
HR_RULE T Magnitude(T x) {
  return x < 0 ? -x : x;
}
template <typename T>
HR_RULE T Sign(T x) {
  // A NaN and a zero are their own signs.
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;
}
template <typename T>
HR_RULE T Greater(T a, T b) {
  return a < b ? b : a;
}

template <typename T>
struct GradientDescent {
  static constexpr int kSlots = 1;
  T alpha;
  HR_RULE void Prepare(const T* s) { alpha = s[0]; }
  HR_RULE void Step(T* x, T g) const { x[0] -= alpha * g; }
};

template <typename T>
struct Momentum {  // x[1]: accumulator
  static constexpr int kSlots = 2;
  T lr, momentum;
  bool nesterov;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    momentum = s[1];
    nesterov = s[2] != 0;
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] = x[1] * momentum + g;
    // Nesterov's step looks ahead: the accumulator as it will be after the next
    // decay.
    x[0] -= nesterov ? g * lr + x[1] * momentum * lr : x[1] * lr;
  }
};

template <typename T>
struct KerasMomentum {  // the accumulator holds steps, not gradients
  static constexpr int kSlots = 2;
  T lr, momentum;
  bool nesterov;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    momentum = s[1];
    nesterov = s[2] != 0;
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] = x[1] * momentum - g * lr;
    x[0] += nesterov ? x[1] * momentum - g * lr : x[1];
  }
};

template <typename T>
struct Adam {  // x[1]: m, x[2]: v
  static constexpr int kSlots = 3;
  T step, beta1, one_less_beta1, one_less_beta2, epsilon;
  bool nesterov;
  // beta1_power, beta2_power, lr, beta1, beta2, epsilon, use_nesterov
  HR_RULE void Prepare(const T* s) {
    // Kingma and Ba's bias correction, folded into the rate: lr * sqrt(1 -
    // beta2^t) / (1 - beta1^t).
    step = s[2] * SquareRoot(T(1) - s[1]) / (T(1) - s[0]);
    beta1 = s[3];
    one_less_beta1 = T(1) - s[3];
    one_less_beta2 = T(1) - s[4];
    epsilon = s[5];
    nesterov = s[6] != 0;
  }
  HR_RULE void Step(T* x, T g) const {
    // The same as beta m + (1 - beta) g, in the order of upstream's kernel.
    x[1] += (g - x[1]) * one_less_beta1;
    x[2] += (g * g - x[2]) * one_less_beta2;
    const T ahead = nesterov ? x[1] * beta1 + one_less_beta1 * g : x[1];
    // Epsilon is outside of the root (the paper's "epsilon hat"), as upstream
    // has it.
    x[0] -= ahead * step / (SquareRoot(x[2]) + epsilon);
  }
};

template <typename T>
struct AdamAmsgrad {  // x[1]: m, x[2]: v, x[3]: the greatest v so far
  static constexpr int kSlots = 4;
  T step, one_less_beta1, one_less_beta2, epsilon;
  HR_RULE void Prepare(const T* s) {
    step = s[2] * SquareRoot(T(1) - s[1]) / (T(1) - s[0]);
    one_less_beta1 = T(1) - s[3];
    one_less_beta2 = T(1) - s[4];
    epsilon = s[5];
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] += (g - x[1]) * one_less_beta1;
    x[2] += (g * g - x[2]) * one_less_beta2;
    // Reddi et al. (2018): the step never grows again, which the convergence
    // proof needs.
    x[3] = Greater(x[3], x[2]);
    x[0] -= x[1] * step / (SquareRoot(x[3]) + epsilon);
  }
};

template <typename T>
struct AdaMax {  // x[1]: m, x[2]: v
  static constexpr int kSlots = 3;
  T step, one_less_beta1, beta2, epsilon;
  // beta1_power, lr, beta1, beta2, epsilon
  HR_RULE void Prepare(const T* s) {
    // The infinity norm has no bias, so only the mean is corrected.
    step = s[1] / (T(1) - s[0]);
    one_less_beta1 = T(1) - s[2];
    beta2 = s[3];
    epsilon = s[4];
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] += (g - x[1]) * one_less_beta1;
    x[2] = Greater(beta2 * x[2], Magnitude(g));
    x[0] -= step * (x[1] / (x[2] + epsilon));
  }
};

template <typename T>
struct Adagrad {  // x[1]: sum of squares
  static constexpr int kSlots = 2;
  T lr;
  bool update_slots;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    update_slots = s[1] != 0;
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] = update_slots ? x[1] + g * g : x[1];
    // No epsilon: the accumulator begins above 0 (initial_accumulator_value).
    x[0] -= g * lr / SquareRoot(x[1]);
  }
};

template <typename T>
struct AdagradV2 {
  static constexpr int kSlots = 2;
  T lr, epsilon;
  bool update_slots;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    epsilon = s[1];
    update_slots = s[2] != 0;
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] = update_slots ? x[1] + g * g : x[1];
    x[0] -= g * lr / (SquareRoot(x[1]) + epsilon);
  }
};

template <typename T>
struct Adadelta {  // x[1]: mean of squares, x[2]: mean of squared updates
  static constexpr int kSlots = 3;
  T lr, rho, one_less_rho, epsilon;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    rho = s[1];
    one_less_rho = T(1) - s[1];
    epsilon = s[2];
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] = x[1] * rho + g * g * one_less_rho;
    // The ratio of two means gives the step the unit of the variable (Zeiler,
    // 2012).
    const T update =
        SquareRoot(x[2] + epsilon) / SquareRoot(x[1] + epsilon) * g;
    x[2] = x[2] * rho + update * update * one_less_rho;
    x[0] -= update * lr;
  }
};

template <typename T>
struct RmsProp {  // x[1]: mean of squares, x[2]: momentum
  static constexpr int kSlots = 3;
  T lr, one_less_rho, momentum, epsilon;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    one_less_rho = T(1) - s[1];
    momentum = s[2];
    epsilon = s[3];
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] += (g * g - x[1]) * one_less_rho;
    // Epsilon is inside of the root here, unlike in Adam: upstream's kernel.
    x[2] = x[2] * momentum + g * lr / SquareRoot(x[1] + epsilon);
    x[0] -= x[2];
  }
};

template <typename T>
struct CenteredRmsProp {  // x[1]: mean, x[2]: mean of squares, x[3]: momentum
  static constexpr int kSlots = 4;
  T lr, one_less_rho, momentum, epsilon;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    one_less_rho = T(1) - s[1];
    momentum = s[2];
    epsilon = s[3];
  }
  HR_RULE void Step(T* x, T g) const {
    x[2] += (g * g - x[2]) * one_less_rho;
    x[1] += (g - x[1]) * one_less_rho;
    // Mean of squares less square of the mean: the variance.
    x[3] = x[3] * momentum + g * lr / SquareRoot(x[2] - x[1] * x[1] + epsilon);
    x[0] -= x[3];
  }
};

template <typename T>
struct AddSign {  // x[1]: m
  static constexpr int kSlots = 2;
  T lr, alpha, sign_decay, beta;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    alpha = s[1];
    sign_decay = s[2];
    beta = s[3];
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] = x[1] * beta + g * (T(1) - beta);
    // Steps grow where the gradient and its mean agree in sign.
    x[0] -= lr * (alpha + sign_decay * (Sign(g) * Sign(x[1]))) * g;
  }
};

template <typename T>
struct PowerSign {  // x[1]: m
  static constexpr int kSlots = 2;
  T lr, logbase, sign_decay, beta;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    logbase = s[1];
    sign_decay = s[2];
    beta = s[3];
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] = x[1] * beta + g * (T(1) - beta);
    const T agree = Sign(g) * Sign(x[1]);
    x[0] -= lr * Exponential(logbase * sign_decay * agree) * g;
  }
};

// The point that a proximal step from `to` with l1 and l2 penalties reaches.
template <typename T>
HR_RULE T Shrink(T to, T rate, T l1, T l2) {
  // Soft thresholding; where there is no l1 it is left out, as in upstream's
  // kernel.
  const T kept =
      l1 > 0 ? Sign(to) * Greater(Magnitude(to) - rate * l1, T(0)) : to;
  return kept / (T(1) + l2 * rate);
}

template <typename T>
struct ProximalGradientDescent {
  static constexpr int kSlots = 1;
  T alpha, l1, l2;
  HR_RULE void Prepare(const T* s) {
    alpha = s[0];
    l1 = s[1];
    l2 = s[2];
  }
  HR_RULE void Step(T* x, T g) const {
    x[0] = Shrink(x[0] - g * alpha, alpha, l1, l2);
  }
};

template <typename T>
struct ProximalAdagrad {  // x[1]: sum of squares
  static constexpr int kSlots = 2;
  T lr, l1, l2;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    l1 = s[1];
    l2 = s[2];
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] += g * g;
    const T rate = lr / SquareRoot(x[1]);
    x[0] = Shrink(x[0] - g * rate, rate, l1, l2);
  }
};

template <typename T>
struct AdagradDa {  // x[1]: sum of gradients, x[2]: sum of squares
  static constexpr int kSlots = 3;
  T lr, l1, l2, steps;
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    l1 = s[1];
    l2 = s[2];
    steps = s[3];
  }
  HR_RULE void Step(T* x, T g) const {
    x[1] += g;
    x[2] += g * g;
    // The penalty grows with the number of steps, as the sum of the gradients
    // does.
    const T kept =
        l1 > 0 ? Sign(x[1]) * Greater(Magnitude(x[1]) - l1 * steps, T(0))
               : x[1];
    // Dual averaging: the variable follows from the sums alone, its old value
    // has no part.
    x[0] = -lr * kept / (l2 * steps * lr + SquareRoot(x[2]));
  }
};

template <typename T>
struct Ftrl {  // x[1]: sum of squares, x[2]: linear
  static constexpr int kSlots = 3;
  T lr, l1, l2, shrinkage, lr_power;
  bool linear_by_lr;
  // lr, l1, l2, l2_shrinkage, lr_power, multiply_linear_by_lr
  HR_RULE void Prepare(const T* s) {
    lr = s[0];
    l1 = s[1];
    l2 = s[2];
    shrinkage = s[3];
    lr_power = s[4];
    linear_by_lr = s[5] != 0;
  }
  HR_RULE T Root(T x) const {
    // The usual power, as a square root: faster, and exact.
    return lr_power == T(-0.5) ? SquareRoot(x) : Power(x, -lr_power);
  }
  HR_RULE void Step(T* x, T g) const {
    // The shrinkage enters `linear` but not the sum of squares.
    const T shrunk = g + T(2) * shrinkage * x[0];
    const T sum = x[1] + g * g;
    const T root = Root(sum);
    // McMahan et al. (2013): sigma * w, with sigma the growth of the inverse
    // rate.
    const T change = (root - Root(x[1])) * x[0];
    // The two forms differ by a factor of lr in `linear`.
    x[2] += linear_by_lr ? shrunk * lr - change : shrunk - change / lr;
    const T threshold = linear_by_lr ? l1 * lr : l1;
    const T curve =
        linear_by_lr ? root + T(2) * l2 * lr : root / lr + T(2) * l2;
    x[0] = Magnitude(x[2]) > threshold ? (threshold * Sign(x[2]) - x[2]) / curve
                                       : T(0);
    // Last, as the step needs the old sum.
    x[1] = sum;
  }
};

// What f returns for the rule, given as one that is not prepared.
template <typename T, typename F>
HR_RULE decltype(auto) WithRule(UpdateRule rule, F f) {
  switch (rule) {
    case UpdateRule::kGradientDescent:
      return f(GradientDescent<T>());
    case UpdateRule::kMomentum:
      return f(Momentum<T>());
    case UpdateRule::kKerasMomentum:
      return f(KerasMomentum<T>());
    case UpdateRule::kAdam:
      return f(Adam<T>());
    case UpdateRule::kAdamAmsgrad:
      return f(AdamAmsgrad<T>());
    case UpdateRule::kAdaMax:
      return f(AdaMax<T>());
    case UpdateRule::kAdagrad:
      return f(Adagrad<T>());
    case UpdateRule::kAdagradV2:
      return f(AdagradV2<T>());
    case UpdateRule::kAdadelta:
      return f(Adadelta<T>());
    case UpdateRule::kRmsProp:
      return f(RmsProp<T>());
    case UpdateRule::kCenteredRmsProp:
      return f(CenteredRmsProp<T>());
    case UpdateRule::kAddSign:
      return f(AddSign<T>());
    case UpdateRule::kPowerSign:
      return f(PowerSign<T>());
    case UpdateRule::kProximalGradientDescent:
      return f(ProximalGradientDescent<T>());
    case UpdateRule::kProximalAdagrad:
      return f(ProximalAdagrad<T>());
    case UpdateRule::kAdagradDa:
      return f(AdagradDa<T>());
    case UpdateRule::kFtrl:
      return f(Ftrl<T>());
  }
  __builtin_unreachable();
}

}  // namespace headrace::HR_LEVEL
