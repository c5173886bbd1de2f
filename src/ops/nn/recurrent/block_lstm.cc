#include "ops/nn/recurrent/block_lstm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "ops/math/loops/loops.h"
#include "ops/math/products/panel_gemm.h"
#include "ops/nn/recurrent/gate_loops.h"

namespace headrace {
namespace {

// Estimates: a cell's gates, forward and back.
constexpr double kGatesNs = 2.5, kGatesBackNs = 1.5;
// Rows of one task of a step: with more, tasks are cut by rows as well.
constexpr int64_t kRowsOfTask = 64;
// With fewer steps the weights for h are not packed: each step is a product of
// its own.
constexpr int64_t kLeastPackedSteps = 4;
// Bytes of sums that are made of the inputs of several steps at a time: they
// are to be in the cache when their step reads them.
constexpr int64_t kInputSumBytes = 4 << 20;

// The size that several inputs must agree on.
class Agreed {
 public:
  // False when another is known already.
  bool Add(int64_t size) {
    // -1 is an unknown size, which agrees with all.
    if (size >= 0 && size_ >= 0 && size != size_) return false;
    size_ = std::max(size, size_);
    return true;
  }
  int64_t size() const { return size_; }

 private:
  int64_t size_ = -1;
};

// A step's tasks: blocks of its cells, as wide as panels of weights, by blocks
// of its images. So no task waits for another between its products and its
// gates. What they compute does not depend on how many there are.
class StepTasks {
 public:
  // `one_by_one`: images are summed up in order.
  StepTasks(const LstmLayout& l, bool one_by_one)
      : cells_(l.cells),
        batch_(l.batch),
        width_(PanelWidth()),
        blocks_((l.cells + width_ - 1) / width_),
        row_blocks_(one_by_one ? 1
                               : (l.batch + kRowsOfTask - 1) / kRowsOfTask) {}
  struct Task {
    int64_t block, first, cells;  // of cells
    int64_t row, end;             // images
  };
  template <typename F>
  void Run(double ns, F f) const {
    const int64_t tasks = blocks_ * row_blocks_;
    ParallelFor(tasks, ns / static_cast<double>(tasks),
                [&](int64_t begin, int64_t end) {
                  for (int64_t t = begin; t < end; ++t) f(Of(t));
                });
  }

 private:
  Task Of(int64_t t) const {
    const int64_t block = t / row_blocks_, r = t % row_blocks_;
    const int64_t first = block * width_;
    return {block, first, std::min(width_, cells_ - first),
            r * batch_ / row_blocks_, (r + 1) * batch_ / row_blocks_};
  }

  const int64_t cells_, batch_, width_, blocks_, row_blocks_;
};

// The steps of a sequence.
class Forward {
 public:
  Forward(const KernelContext& c, const LstmLayout& l, const LstmInputs& in,
          const LstmResults& out)
      : c_(c),
        l_(l),
        in_(in),
        out_(out),
        dims_(GemmDims::Dense(l.batch, l.cells, l.cells, false, false)),
        tasks_(l, /*one_by_one=*/false) {
    // The part of the weights for h, a gate's columns.
    dims_.b_row = dims_.c_row = l.gates();
  }

  Status Run(int64_t steps) {
    const int64_t bytes =
        l_.batch * l_.gates() * static_cast<int64_t>(sizeof(float));
    packed_ = steps >= kLeastPackedSteps;
    const int64_t chunk =
        packed_ ? std::clamp<int64_t>(kInputSumBytes / bytes, 1, steps) : 1;
    HR_RETURN_IF_ERROR(MakeRoom(chunk));
    for (int64_t t = 0; t < steps; ++t) {
      if (!packed_) {
        HR_RETURN_IF_ERROR(SumRows(t));
      } else if (t % chunk == 0) {
        HR_RETURN_IF_ERROR(SumInputs(t, std::min(chunk, steps - t)));
      }
      Step(t, sums_.data<float>() + t % chunk * l_.batch * l_.gates());
      // A long sequence is one kernel; between two steps it may be stopped.
      HR_RETURN_IF_ERROR(c_.CheckCancelled());
    }
    return OkStatus();
  }

 private:
  Status MakeRoom(int64_t chunk) {
    HR_ASSIGN_OR_RETURN(
        sums_,
        c_.Temporary(DType::kFloat, Shape{chunk * l_.batch, l_.gates()}));
    if (!packed_) {
      HR_ASSIGN_OR_RETURN(
          rows_, c_.Temporary(DType::kFloat, Shape{l_.batch, l_.rows()}));
      return OkStatus();
    }
    const float* of_h = in_.w + l_.inputs * l_.gates();
    for (int64_t g = 0; g < 4; ++g) {
      HR_ASSIGN_OR_RETURN(panels_[g], PackPanels(dims_, of_h + g * l_.cells));
    }
    return OkStatus();
  }

  // The state before step t. Results keep every step's state, so it is read
  // where it lies.
  const float* Before(const float* made, const float* first, int64_t t) const {
    return t > 0 ? made + (t - 1) * l_.state() : first;
  }

  // [x, h] * w of step t: x * w_x + h * w_h in one product.
  Status SumRows(int64_t t) {
    const float* x = in_.x + t * l_.batch * l_.inputs;
    const float* h = Before(out_.h, in_.h_prev, t);
    float* to = rows_.data<float>();
    for (int64_t n = 0; n < l_.batch; ++n) {
      to = std::copy_n(x + n * l_.inputs, l_.inputs, to);
      to = std::copy_n(h + n * l_.cells, l_.cells, to);
    }
    return Gemm(DType::kFloat,
                GemmDims::Dense(l_.batch, l_.gates(), l_.rows(), false, false),
                rows_.raw(), in_.w, sums_.raw());
  }

  // x * w of `count` steps at once, as that waits for nothing.
  Status SumInputs(int64_t first, int64_t count) {
    return Gemm(
        DType::kFloat,
        GemmDims::Dense(count * l_.batch, l_.gates(), l_.inputs, false, false),
        in_.x + first * l_.batch * l_.inputs, in_.w, sums_.raw());
  }

  void Step(int64_t t, float* sums) const {
    const int64_t at = t * l_.state();
    const float* cs_prev = Before(out_.cs, in_.cs_prev, t);
    const float* h_prev = Before(out_.h, in_.h_prev, t);
    const double flops = packed_ ? 2.0 * l_.state() * l_.gates() : 0;
    tasks_.Run(flops * kPanelNsPerFlop + kGatesNs * l_.state(),
               [&](const StepTasks::Task& k) {
                 for (int64_t g = 0; packed_ && g < 4; ++g) {
                   PanelRows(dims_, h_prev,
                             panels_[g].data<float>() + k.first * l_.cells,
                             sums + g * l_.cells + k.first, k.row, k.end,
                             static_cast<int>(k.cells), /*add=*/true);
                 }
                 for (int64_t n = k.row; n < k.end; ++n) {
                   Row(sums + n * l_.gates(), cs_prev + n * l_.cells,
                       at + n * l_.cells, k.first, k.cells);
                 }
               });
  }

  // `at`: where the image's cells are in the results.
  void Row(const float* sums, const float* before, int64_t at, int64_t first,
           int64_t cells) const {
    auto gate = [&](int64_t place) {
      const int64_t column = place * l_.cells + first;
      return LstmRow::Gate{sums + column, in_.b + column};
    };
    auto peep = [&](const float* weights) {
      return l_.peephole ? weights + first : nullptr;
    };
    auto to = [&](float* out) { return out + at + first; };
    const LstmRow row = {
        gate(l_.in), gate(l_.fresh), gate(l_.forget), gate(l_.out),
        l_.forget_bias,
        // Zero or less means that nothing is clipped.
        l_.clip > 0 ? l_.clip : std::numeric_limits<float>::infinity(),
        before + first, peep(in_.wci), peep(in_.wcf), peep(in_.wco), to(out_.i),
        to(out_.cs), to(out_.f), to(out_.o), to(out_.ci), to(out_.co),
        to(out_.h)};
    LoopsOfGates().lstm(row, cells);
  }

  const KernelContext& c_;
  const LstmLayout l_;
  const LstmInputs in_;
  const LstmResults out_;
  GemmDims dims_;  // h_prev times a gate's weights
  const StepTasks tasks_;
  bool packed_ = false;
  Tensor panels_[4];  // of the gates, in the order of the weights' columns
  Tensor sums_;       // [some steps * batch, gates]
  Tensor rows_;       // [x, h] of a step, where nothing is packed
};

// What goes back through the cells of one image.
struct BackRow {
  const float *before, *cs_grad, *h_grad;  // of the image
  int64_t at;                              // of the image, in the results
  float *gates, *before_grad;
};
void RunBackRow(const LstmLayout& l, const LstmBackInputs& in,
                const LstmGradients& out, const BackRow& r, int64_t first,
                int64_t cells) {
  auto made = [&](const float* from) { return from + r.at + first; };
  auto peep = [&](auto* weights) {
    return l.peephole ? weights + first : nullptr;
  };
  auto gate = [&](int64_t place) { return r.gates + place * l.cells + first; };
  const LstmBackRow row = {r.before + first,
                           made(in.i),
                           made(in.cs),
                           made(in.f),
                           made(in.o),
                           made(in.ci),
                           made(in.co),
                           r.cs_grad + first,
                           r.h_grad + first,
                           peep(in.in.wci),
                           peep(in.in.wcf),
                           peep(in.in.wco),
                           r.before_grad + first,
                           peep(out.wci),
                           peep(out.wcf),
                           peep(out.wco),
                           gate(l.in),
                           gate(l.fresh),
                           gate(l.forget),
                           gate(l.out)};
  LoopsOfGates().lstm_back(row, cells);
}

void AddTo(float* to, const float* more, int64_t n) {
  static const BinaryLoop add = FindBinaryLoop("AddV2", 1)->binary;
  add(to, more, to, n, 0);
}

// The way back through a sequence.
class Backward {
 public:
  Backward(const KernelContext& c, const LstmLayout& l,
           const LstmBackInputs& in, const LstmGradients& out)
      : c_(c),
        l_(l),
        in_(in),
        out_(out),
        dims_(GemmDims::Dense(l.batch, l.cells, l.gates(), false, true)),
        tasks_(l, /*one_by_one=*/l.peephole) {}

  Status Run(int64_t steps) {
    HR_RETURN_IF_ERROR(MakeRoom(steps));
    // From the last step to the first: a step's gradient needs that of its
    // successor.
    for (int64_t t = steps - 1; t >= 0; --t) {
      Step(t, t + 1 == steps);
      HR_RETURN_IF_ERROR(c_.CheckCancelled());
    }
    PanelGemm(dims_, gates_.data<float>(), panels_, out_.h_prev, nullptr);
    return Weights(steps);
  }

 private:
  Status MakeRoom(int64_t steps) {
    const int64_t rows = steps * l_.batch;
    HR_ASSIGN_OR_RETURN(gates_,
                        c_.Temporary(DType::kFloat, Shape{rows, l_.gates()}));
    HR_ASSIGN_OR_RETURN(h_grad_,
                        c_.Temporary(DType::kFloat, Shape{l_.state()}));
    HR_ASSIGN_OR_RETURN(panels_,
                        PackPanels(dims_, in_.in.w + l_.inputs * l_.gates()));
    // Gradients at the state before the last step come back from nowhere.
    std::fill_n(out_.cs_prev, l_.state(), 0.0f);
    std::fill_n(h_grad_.data<float>(), l_.state(), 0.0f);
    for (float* peep : {out_.wci, out_.wcf, out_.wco}) {
      std::fill_n(peep, l_.cells, 0.0f);
    }
    return OkStatus();
  }

  // Step t: first the product that takes the gradients at the gates of t + 1
  // back to its h, the cells of a task alone.
  void Step(int64_t t, bool last) const {
    const int64_t at = t * l_.state();
    float* gates = gates_.data<float>() + t * l_.batch * l_.gates();
    const float* behind = gates + l_.batch * l_.gates();
    float* h_grad = h_grad_.data<float>();
    const float* before = t > 0 ? in_.cs + at - l_.state() : in_.in.cs_prev;
    const double flops = last ? 0 : 2.0 * l_.state() * l_.gates();
    tasks_.Run(flops * kPanelNsPerFlop + kGatesBackNs * l_.state(),
               [&](const StepTasks::Task& k) {
                 if (!last) {
                   PanelRows(dims_, behind,
                             panels_.data<float>() + k.first * l_.gates(),
                             h_grad + k.first, k.row, k.end,
                             static_cast<int>(k.cells), /*add=*/false);
                 }
                 for (int64_t n = k.row; n < k.end; ++n) {
                   const int64_t row = n * l_.cells, cell = row + k.first;
                   // Gradients from outside join those that came back from step
                   // t + 1. The state's go on in the place of the initial
                   // one's.
                   AddTo(h_grad + cell, in_.h_grad + at + cell, k.cells);
                   AddTo(out_.cs_prev + cell, in_.cs_grad + at + cell, k.cells);
                   RunBackRow(
                       l_, in_, out_,
                       {before + row, out_.cs_prev + row, h_grad + row,
                        at + row, gates + n * l_.gates(), out_.cs_prev + row},
                       k.first, k.cells);
                 }
               });
  }

  // Of all steps at once.
  Status Weights(int64_t steps) const {
    const int64_t rows = steps * l_.batch;
    const float* gates = gates_.data<float>();
    HR_RETURN_IF_ERROR(
        Gemm(DType::kFloat,
             GemmDims::Dense(rows, l_.inputs, l_.gates(), false, true), gates,
             in_.in.w, out_.x));
    SumGates(rows);
    HR_RETURN_IF_ERROR(
        Gemm(DType::kFloat,
             GemmDims::Dense(l_.inputs, l_.gates(), rows, true, false),
             in_.in.x, gates, out_.w));
    HR_ASSIGN_OR_RETURN(Tensor h,
                        c_.Temporary(DType::kFloat, Shape{rows, l_.cells}));
    float* to = std::copy_n(in_.in.h_prev, l_.state(), h.data<float>());
    std::copy_n(in_.h, (steps - 1) * l_.state(), to);
    return Gemm(DType::kFloat,
                GemmDims::Dense(l_.cells, l_.gates(), rows, true, false),
                h.raw(), gates, out_.w + l_.inputs * l_.gates());
  }

  void SumGates(int64_t rows) const {
    constexpr int64_t kColumns = 64;  // of a task
    const int64_t n = l_.gates();
    ParallelFor((n + kColumns - 1) / kColumns, 0.3 * kColumns * rows,
                [&](int64_t begin, int64_t end) {
                  const int64_t first = begin * kColumns;
                  const int64_t count = std::min(end * kColumns, n) - first;
                  std::fill_n(out_.b + first, count, 0.0f);
                  for (int64_t r = 0; r < rows; ++r) {
                    AddTo(out_.b + first, gates_.data<float>() + r * n + first,
                          count);
                  }
                });
  }

  const KernelContext& c_;
  const LstmLayout l_;
  const LstmBackInputs in_;
  const LstmGradients out_;
  const GemmDims
      dims_;  // gradients at the gates times h's weights turned round
  const StepTasks tasks_;
  Tensor panels_;
  Tensor gates_;   // gradients at the gates, of all steps
  Tensor h_grad_;  // at h of the step at hand
};

}  // namespace

const GateLoops& LoopsOfGates() {
  static const GateLoops* const loops =
      AtActiveLevel([](auto level) { return GateLoopsOf<level>(); });
  return *loops;
}

Status RunLstm(const KernelContext& c, const LstmLayout& l, int64_t steps,
               const LstmInputs& in, const LstmResults& out) {
  if (l.state() == 0 || steps == 0) return OkStatus();
  return Forward(c, l, in, out).Run(steps);
}

Status RunLstmBack(const KernelContext& c, const LstmLayout& l, int64_t steps,
                   const LstmBackInputs& in, const LstmGradients& out) {
  if (l.state() == 0 || steps == 0) return OkStatus();
  return Backward(c, l, in, out).Run(steps);
}

void RunLstmCellBack(const LstmLayout& l, const LstmBackInputs& in,
                     const LstmGradients& out, float* gates) {
  for (float* peep : {out.wci, out.wcf, out.wco}) {
    std::fill_n(peep, l.cells, 0.0f);
  }
  for (int64_t n = 0; n < l.batch; ++n) {
    const int64_t at = n * l.cells;
    RunBackRow(l, in, out,
               {in.in.cs_prev + at, in.cs_grad + at, in.h_grad + at, at,
                gates + n * l.gates(), out.cs_prev + at},
               0, l.cells);
  }
}

StatusOr<InFloat> InFloat::Of(const KernelContext& c, int first) {
  InFloat made;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Tensor& t = c.input(i);
    if (i < first || t.dtype() == DType::kFloat) {
      made.in_.push_back(i < first ? nullptr : t.data<float>());
      continue;
    }
    HR_ASSIGN_OR_RETURN(Tensor wide, c.Temporary(DType::kFloat, t.shape()));
    std::copy_n(t.data<half>(), t.num_elements(), wide.data<float>());
    made.in_.push_back(wide.data<float>());
    made.wide_.push_back(std::move(wide));
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    const Tensor& t = c.output(i);
    if (t.dtype() == DType::kFloat) {
      made.out_.push_back(t.data<float>());
      continue;
    }
    HR_ASSIGN_OR_RETURN(Tensor wide, c.Temporary(DType::kFloat, t.shape()));
    made.out_.push_back(wide.data<float>());
    made.wide_.push_back(std::move(wide));
  }
  return made;
}

void InFloat::Finish(const KernelContext& c) const {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const Tensor& t = c.output(i);
    if (t.dtype() == DType::kFloat) continue;
    std::transform(out_[i], out_[i] + t.num_elements(), t.data<half>(),
                   [](float v) { return half(v); });
  }
}

LstmInputs LstmInputsOf(const InFloat& t, int first) {
  return {t.in(first),     t.in(first + 1), t.in(first + 2), t.in(first + 3),
          t.in(first + 4), t.in(first + 5), t.in(first + 6), t.in(first + 7)};
}

Status CheckLstmInputs(ShapeContext& c, int first, int64_t* batch,
                       int64_t* cells) {
  Agreed images, inputs, states, rows, gates;
  bool agree = true;
  auto dim = [&](int input, int from_end) {
    const Shape& s = c.input(first + input);
    return s.known_rank() ? s[s.rank() - from_end] : Shape::kUnknown;
  };
  for (int i : {1, 2, 3}) HR_RETURN_IF_ERROR(CheckRank(c.input(first + i), 2));
  for (int i : {4, 5, 6, 7}) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(first + i), 1));
  }
  inputs.Add(dim(0, 1));
  for (int i : {0, 1, 2}) agree &= images.Add(dim(i, 2));
  for (int i : {1, 2, 4, 5, 6}) agree &= states.Add(dim(i, 1));
  for (int i : {3, 7}) agree &= gates.Add(dim(i, 1));
  rows.Add(dim(3, 2));
  // The four gates lie side by side in w and b.
  if (agree && states.size() >= 0) {
    int64_t four;
    agree &= MultiplyChecked(states.size(), 4, &four) && gates.Add(four);
    if (inputs.size() >= 0) agree &= rows.Add(inputs.size() + states.size());
  }
  *batch = images.size();
  *cells = states.size();
  if (agree) return OkStatus();
  return InvalidArgument("sizes do not agree: x ", c.input(first), ", cs_prev ",
                         c.input(first + 1), ", h_prev ", c.input(first + 2),
                         ", w ", c.input(first + 3), ", wci ",
                         c.input(first + 4), ", wcf ", c.input(first + 5),
                         ", wco ", c.input(first + 6), ", b ",
                         c.input(first + 7));
}

}  // namespace headrace
