// Optimizers and learning rates that change: tf.keras.optimizers. Checkpoints
// know an optimizer as Python's know it: its numbers (iter, learning_rate,
// beta_1, ...) and, of each variable, slots
// ("model/kernel/.OPTIMIZER_SLOT/optimizer/m").
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/gradient.h"
#include "headrace/variable.h"

namespace headrace::tf::internal {
class Workers;
}

namespace headrace::tf {

// A number, or a function of the step (an int64 scalar, from 0) that gives a
// float scalar. The function is traced with the step of training: it is to
// compute with ops and must not read the clock or the like. Not negative where
// it is a number (kInvalidArgument, by the optimizer).
class HR_API LearningRate {
 public:
  using Schedule = std::function<Tensor(const Tensor& step)>;
  LearningRate(double rate) : rate_(rate) {}                           // NOLINT
  LearningRate(Schedule schedule) : schedule_(std::move(schedule)) {}  // NOLINT

  double rate() const { return rate_; }
  const Schedule& schedule() const { return schedule_; }  // null: a number
  // float32, at that step; the step does not matter for a number.
  Tensor operator()(const Tensor& step) const;

 private:
  double rate_ = 0;
  Schedule schedule_;
};

// Rates in float32. decay_steps and its like are kInvalidArgument unless above
// 0.
namespace schedules {
// rate * decay_rate ^ (step / decay_steps), with whole powers for a staircase.
HR_API LearningRate ExponentialDecay(double rate, double decay_steps,
                                     double decay_rate, bool staircase = false);
// values[i] up to and with boundaries[i] (which rise), the last one behind.
// Throws kInvalidArgument unless there is one value more than boundaries.
HR_API LearningRate PiecewiseConstantDecay(std::vector<int64_t> boundaries,
                                           std::vector<float> values);
// Half a cosine from `rate` to alpha * rate in decay_steps, and then constant
// (Loshchilov and Hutter, 2017). With a warmup_target the rate first rises to
// it in a line, in warmup_steps, and falls from there.
HR_API LearningRate CosineDecay(double rate, double decay_steps,
                                double alpha = 0,
                                std::optional<double> warmup_target = {},
                                double warmup_steps = 0);
// rate / (1 + decay_rate * step / decay_steps), with whole quotients for a
// staircase.
HR_API LearningRate InverseTimeDecay(double rate, double decay_steps,
                                     double decay_rate, bool staircase = false);
// Half cosines again and again, each t_mul times as long as the one before and
// from m_mul times its rate, down to alpha * rate (Loshchilov and Hutter,
// 2017).
HR_API LearningRate CosineDecayRestarts(double rate, double first_decay_steps,
                                        double t_mul = 2, double m_mul = 1,
                                        double alpha = 0);
// From `rate` to `end_rate` in decay_steps by a power of what is left, and then
// constant; with `cycle` behind decay_steps on, in twice, three times, ... as
// many steps.
HR_API LearningRate PolynomialDecay(double rate, double decay_steps,
                                    double end_rate = 0.0001, double power = 1,
                                    bool cycle = false);

}  // namespace schedules

// How checkpoints keep an optimizer: as the guide shows it, with slots, which
// tf.keras.optimizers.legacy of TensorFlow reads, or in lists, which
// TensorFlow's newer optimizers read. Whatever is written, both are read.
enum class OptimizerLayout { kSlots, kLists };

// What all optimizers take. Of limits one is used: clipvalue before clipnorm or
// global_clipnorm, of which not both may be given (kInvalidArgument). Gradients
// are limited before the update; of slices the values are, row by row as they
// came, before rows of one index are added.
struct OptimizerOptions {
  std::optional<double> weight_decay;  // rate * weight_decay * v is taken off v
  std::optional<double> clipnorm;      // of each gradient
  std::optional<double> clipvalue;
  std::optional<double> global_clipnorm;  // of all gradients together
  OptimizerLayout layout = OptimizerLayout::kSlots;
};

// Base: applies one gradient a variable, in order. A class of one's own says
// its slots and what one variable's update is. Not thread-safe; variables may
// be read by others meanwhile, who then see each before or after its own
// update.
class HR_API Optimizer : public Module {
 public:
  Optimizer(Optimizer&&) = default;

  // Updates the variables, applies their constraints and counts the step. Null
  // gradients are skipped: such variables neither move nor decay. Throws
  // kInvalidArgument when all gradients are null, when their number is another,
  // and for shapes that are not the variables'. Slots are made at a variable's
  // first step. Of slices SGD without momentum and Adagrad change those rows
  // alone; the others' rules move every row in each step, as Keras' do. In a
  // traced function the updates become ops of its graph. An optimizer that was
  // made in a strategy's scope (cluster.h) first sums the gradients over the
  // workers.
  void Apply(const Gradients& gradients,
             const std::vector<Variable>& variables);
  // Makes the slots of these variables now, where they are missing: for a
  // checkpoint that is restored before the first step, with all values at hand.
  void Build(const std::vector<Variable>& variables);

  // Weight decay leaves these alone (biases, often). Functions traced before do
  // not notice.
  void ExcludeFromWeightDecay(const std::vector<Variable>& variables);

  // Steps taken: an int64 scalar.
  const Variable& iterations() const { return iterations_; }
  // The rate's variable, to be assigned to; kFailedPrecondition with a
  // schedule.
  const Variable& learning_rate() const;
  // The slot of that name, null where there is none (yet).
  Variable slot(const Variable& variable, const std::string& name) const;

 protected:
  // What the updates of one step share, in the dtype of its variables.
  using Coefficients = std::map<std::string, Tensor>;

  // `numbers` are kept as variables of these names, beside the rate and what
  // Keras calls decay.
  Optimizer(std::string name, LearningRate rate,
            std::map<std::string, double> numbers, OptimizerOptions options);

  // Names of the slots, group by group: those of a group are made for one
  // variable after another. The order is the one in which lists keep them
  // (OptimizerLayout).
  virtual std::vector<std::vector<std::string>> SlotGroups() const = 0;
  // What each element of a new slot is.
  virtual double InitialSlot(const std::string& name) const { return 0; }
  // What the updates of one step share, for variables of that dtype; by default
  // "lr" alone. Called once a step and dtype.
  virtual Coefficients Prepare(DType dtype) const;
  // Changes the variable and its slots by a dense gradient of its dtype and
  // shape. Called once a step and variable; weight decay is done, constraints
  // follow.
  virtual void Update(const Tensor& gradient, const Variable& variable,
                      const Coefficients& known) = 0;
  // Further variables, made with the first slots, whose first variable has that
  // dtype; and what happens behind the updates of all variables, of which
  // `known` is what those of one dtype shared.
  virtual void MakeVariables(DType dtype) {}
  virtual void Finish(const Coefficients& known) {}
  // The same of slices; by default of the whole tensor.
  virtual void UpdateSlices(const Gradient& slices, const Variable& variable,
                            const Coefficients& known);

  // The rate of this step: of the schedule, or what the variable holds.
  Tensor Rate(DType dtype) const;
  bool writes_lists() const {
    return options_.layout == OptimizerLayout::kLists;
  }
  // A number of the constructor.
  Tensor Number(const std::string& name, DType dtype) const;

 private:
  friend struct internal::Access;
  using Key = const void*;  // what names a variable's state
  Gradients Limited(Gradients gradients) const;
  bool Decays(const Variable& variable) const;
  void WriteLists();
  void AddSlot(const Variable& variable, const std::string& name);
  bool IsBuilt(const std::vector<Variable>& variables) const;

  std::string name_;
  LearningRate rate_;
  OptimizerOptions options_;
  Variable iterations_;
  Variable current_rate_;  // of a schedule, for lists; else null
  std::map<std::string, Variable> numbers_;
  std::shared_ptr<Module> all_;  // iterations, then slots, as they were made
  int64_t tracked_ = 0;
  struct Slots {
    Variable variable;  // kept, so that its key is nobody else's
    std::map<std::string, Variable> by_name;
  };
  std::map<Key, Slots> slots_;
  std::vector<Variable> without_decay_;
  // Whose gradients are summed; null: this process' alone.
  std::shared_ptr<internal::Workers> workers_;
  bool told_ = false;  // whether its own numbers are the first worker's
};

// v -= rate * g; with momentum: a = momentum * a - rate * g, v += a (or, with
// nesterov, v += momentum * a - rate * g; Sutskever et al., 2013). Throws
// kInvalidArgument for a momentum outside of [0, 1]. Slot: momentum.
class HR_API SGD : public Optimizer {
 public:
  explicit SGD(LearningRate learning_rate = 0.01, double momentum = 0,
               bool nesterov = false, OptimizerOptions options = {});

 protected:
  std::vector<std::vector<std::string>> SlotGroups() const override;
  Coefficients Prepare(DType dtype) const override;
  void Update(const Tensor& gradient, const Variable& variable,
              const Coefficients& known) override;
  void UpdateSlices(const Gradient& slices, const Variable& variable,
                    const Coefficients& known) override;

 private:
  double momentum_;
  bool nesterov_;
};

// Adam (Kingma and Ba, 2015), in the form with epsilon outside the bias
// correction, which Keras has; AMSGrad (Reddi et al., 2018) on demand. Slots:
// m, v (vhat).
class HR_API Adam : public Optimizer {
 public:
  explicit Adam(LearningRate learning_rate = 0.001, double beta_1 = 0.9,
                double beta_2 = 0.999, double epsilon = 1e-7,
                bool amsgrad = false, OptimizerOptions options = {});

 protected:
  Adam(std::string name, LearningRate learning_rate, double beta_1,
       double beta_2, double epsilon, bool amsgrad, OptimizerOptions options);
  std::vector<std::vector<std::string>> SlotGroups() const override;
  Coefficients Prepare(DType dtype) const override;
  void Update(const Tensor& gradient, const Variable& variable,
              const Coefficients& known) override;

 private:
  double epsilon_;
  bool amsgrad_;
};

// Adam with weights that decay by themselves (Loshchilov and Hutter, 2019):
// each step takes rate * weight_decay * v off. The weight_decay here stands
// above the one of `options`.
class HR_API AdamW : public Adam {
 public:
  explicit AdamW(LearningRate learning_rate = 0.001,
                 double weight_decay = 0.004, double beta_1 = 0.9,
                 double beta_2 = 0.999, double epsilon = 1e-7,
                 bool amsgrad = false, OptimizerOptions options = {});
};

// Gradients over the root of their squares' running mean (Tieleman and Hinton,
// 2012); centred: over the root of their running variance. Slots: rms, and
// momentum, and mg of the centred form.
class HR_API RMSprop : public Optimizer {
 public:
  explicit RMSprop(LearningRate learning_rate = 0.001, double rho = 0.9,
                   double momentum = 0, double epsilon = 1e-7,
                   bool centered = false, OptimizerOptions options = {});

 protected:
  std::vector<std::vector<std::string>> SlotGroups() const override;
  Coefficients Prepare(DType dtype) const override;
  void Update(const Tensor& gradient, const Variable& variable,
              const Coefficients& known) override;

 private:
  bool has_momentum_;
  double epsilon_;
  bool centered_;
};

// Rates fall with the squares seen so far (Duchi et al., 2011). Slot:
// accumulator.
class HR_API Adagrad : public Optimizer {
 public:
  explicit Adagrad(LearningRate learning_rate = 0.001,
                   double initial_accumulator_value = 0.1,
                   double epsilon = 1e-7, OptimizerOptions options = {});

 protected:
  std::vector<std::vector<std::string>> SlotGroups() const override;
  double InitialSlot(const std::string& name) const override;
  Coefficients Prepare(DType dtype) const override;
  void Update(const Tensor& gradient, const Variable& variable,
              const Coefficients& known) override;
  void UpdateSlices(const Gradient& slices, const Variable& variable,
                    const Coefficients& known) override;

 private:
  double initial_, epsilon_;
};

// Adam with Nesterov's momentum (Dozat, 2016), by a schedule of its own: beta_1
// * (1 - 0.96^step / 2). Slots: m, v; the product of the momenta so far is
// _u_product.
class HR_API Nadam : public Optimizer {
 public:
  explicit Nadam(LearningRate learning_rate = 0.001, double beta_1 = 0.9,
                 double beta_2 = 0.999, double epsilon = 1e-7,
                 OptimizerOptions options = {});

 protected:
  std::vector<std::vector<std::string>> SlotGroups() const override;
  Coefficients Prepare(DType dtype) const override;
  void Update(const Tensor& gradient, const Variable& variable,
              const Coefficients& known) override;
  void MakeVariables(DType dtype) override;
  void Finish(const Coefficients& known) override;

 private:
  double epsilon_;
  Variable product_;
};

struct FtrlOptions {
  double learning_rate_power = -0.5;  // at most 0
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
};
// Follow the regularized leader (McMahan et al., 2013). A step changes rows
// that no slice names as well: they follow the regularization. Slots:
// accumulator, linear.
class HR_API Ftrl : public Optimizer {
 public:
  // Throws kInvalidArgument for a negative initial_accumulator_value.
  explicit Ftrl(LearningRate learning_rate = 0.001, FtrlOptions ftrl = {},
                OptimizerOptions options = {});

 protected:
  std::vector<std::vector<std::string>> SlotGroups() const override;
  double InitialSlot(const std::string& name) const override;
  Coefficients Prepare(DType dtype) const override;
  void Update(const Tensor& gradient, const Variable& variable,
              const Coefficients& known) override;

 private:
  FtrlOptions ftrl_;
};

// Rates by a window of squares (Zeiler, 2012). Slots: accum_grad, accum_var.
class HR_API Adadelta : public Optimizer {
 public:
  explicit Adadelta(LearningRate learning_rate = 0.001, double rho = 0.95,
                    double epsilon = 1e-7, OptimizerOptions options = {});

 protected:
  std::vector<std::vector<std::string>> SlotGroups() const override;
  Coefficients Prepare(DType dtype) const override;
  void Update(const Tensor& gradient, const Variable& variable,
              const Coefficients& known) override;

 private:
  double epsilon_;
};

// Adam by the infinity norm (Kingma and Ba, 2015). Slots: m, v.
class HR_API Adamax : public Optimizer {
 public:
  explicit Adamax(LearningRate learning_rate = 0.001, double beta_1 = 0.9,
                  double beta_2 = 0.999, double epsilon = 1e-7,
                  OptimizerOptions options = {});

 protected:
  std::vector<std::vector<std::string>> SlotGroups() const override;
  Coefficients Prepare(DType dtype) const override;
  void Update(const Tensor& gradient, const Variable& variable,
              const Coefficients& known) override;

 private:
  double epsilon_;
};

}  // namespace headrace::tf
