// Convolutions by oneDNN, split over our own threads: its OpenMP is set to one
// thread.
#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

#include "base/thread_pool.h"
#include "ops/math/products/one_omp_thread.h"
#include "ops/nn/conv/narrow.h"
#include "ops/nn/conv/onednn_primitives.h"
#include "ops/nn/conv/task_split.h"
#include "ops/nn/conv/winograd.h"

namespace headrace {
namespace {

using Primitives = std::vector<std::shared_ptr<const ConvPrimitive>>;

bool Same(const ConvGeometry& a, const ConvGeometry& b) {
  for (int i = 0; i < 3; ++i) {
    const Window &v = a.windows[i], &w = b.windows[i];
    if (v.in != w.in || v.out != w.out || v.size != w.size ||
        v.stride != w.stride || v.dilation != w.dilation ||
        v.before != w.before || v.after != w.after) {
      return false;
    }
  }
  return a.batch == b.batch && a.in_channels == b.in_channels &&
         a.out_channels == b.out_channels && a.groups == b.groups;
}

// Runs f(task index) for all on our threads; false when oneDNN failed.
bool RunTasks(const ConvTasks& tasks, absl::FunctionRef<void(int64_t)> f) {
  std::atomic<bool> failed{false};
  ParallelFor(tasks.count(), tasks.ns, [&](int64_t begin, int64_t end) {
    // For each range of tasks, on the thread that runs it.
    OneOmpThread one;
    for (int64_t i = begin; i < end && !failed; ++i) {
      try {
        f(i);
      } catch (const std::exception&) {
        // Exceptions end here: what failed is done by our own loops.
        failed = true;
      }
    }
  });
  return !failed;
}

// The primitives of all tasks; empty when one is missing.
Primitives PrimitivesOf(ConvPass pass, const ConvGeometry& g,
                        const ConvTasks& tasks, const FinishSteps& steps = {}) {
  // Making a primitive writes code, and calls OpenMP too.
  OneOmpThread one;
  Primitives found;
  for (const ConvTask& t : tasks.tasks) {
    found.push_back(ConvPrimitiveFor(pass, t.geometry, g.out_channels, steps));
    if (!found.back()) return {};
  }
  return found;
}

// The filter in the layout of each task: tasks that agree share one.
class PackedFilters {
 public:
  Status Pack(const ConvTasks& tasks, const Primitives& primitives,
              const float* filter) {
    OneOmpThread one;
    for (int64_t i = 0; i < tasks.count(); ++i) {
      const ConvPrimitive& p = *primitives[i];
      const int64_t channel = tasks.tasks[i].channel;
      const int64_t known = Find(tasks, primitives, i);
      if (!p.packs || known >= 0) {
        of_task_.push_back(p.packs ? of_task_[known] : nullptr);
        continue;
      }
      HR_ASSIGN_OR_RETURN(Tensor room, ConvRoom(p.filter));
      try {
        PackConv(p, ConvMemory(p.plain_filter, filter + channel),
                 ConvMemory(p.filter, room.raw()));
      } catch (const std::exception& e) {
        return Internal("oneDNN cannot pack a filter: ", e.what());
      }
      of_task_.push_back(room.raw());
      rooms_.push_back(std::move(room));
    }
    return OkStatus();
  }
  // Whether some tasks take the filter as it came.
  bool some_plain() const {
    return std::find(of_task_.begin(), of_task_.end(), nullptr) !=
           of_task_.end();
  }
  // `plain`: the filter as it came.
  const void* Of(int64_t i, const ConvTask& t, const float* plain) const {
    return of_task_[i] ? of_task_[i] : plain + t.channel;
  }

 private:
  // An earlier task with the same filter, or -1.
  static int64_t Find(const ConvTasks& tasks, const Primitives& primitives,
                      int64_t i) {
    for (int64_t k = i - 1; k >= 0; --k) {
      // Tasks are ordered by their channels: those before are of another part.
      if (tasks.tasks[k].channel != tasks.tasks[i].channel) break;
      if (primitives[k]->filter == primitives[i]->filter) return k;
    }
    return -1;
  }
  std::vector<Tensor> rooms_;
  std::vector<const void*> of_task_;
};

// The task's channels out of rows of `width` channels.
void Gather(const ConvTask& t, const float* y, int64_t width, float* to) {
  const int64_t channels = t.geometry.out_channels;
  const int64_t rows = t.geometry.batch * t.geometry.out_pixels();
  const float* from = y + t.y_at + t.channel;
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * width, channels, to + r * channels);
  }
}

// Copies a task's channels to their place in rows of `width` channels.
void Place(const ConvTask& t, const float* from, int64_t width, float* y) {
  const int64_t channels = t.geometry.out_channels;
  const int64_t rows = t.geometry.batch * t.geometry.out_pixels();
  float* to = y + t.y_at + t.channel;
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * channels, channels, to + r * width);
  }
}

class DnnlPreparedConv : public PreparedConv {
 public:
  DnnlPreparedConv(const ConvGeometry& g, const FinishSteps& steps)
      : geometry_(g), steps_(steps), tasks_(SplitConv(g, ForwardCuts(g))) {
    for (const FinishStep& s : steps) {
      adds_ = adds_ || s.kind == FinishStep::kPlusOutput;
    }
  }

  // False when there is no such convolution.
  StatusOr<bool> Prepare(const float* filter) {
    primitives_ = PrimitivesOf(ConvPass::kForward, geometry_, tasks_, steps_);
    if (primitives_.empty()) return false;
    HR_RETURN_IF_ERROR(packed_.Pack(tasks_, primitives_, filter));
    return true;
  }

  bool reads_filter() const override { return packed_.some_plain(); }

  bool Run(const ConvGeometry& g, const float* x, const float* filter, float* y,
           const ConvPixelsDone* done) const override {
    // A prepared filter belongs to sizes; others get a primitive of their own.
    if (!Same(g, geometry_)) return false;
    if (tasks_.channel_parts() > 1) return RunParts(x, filter, y, done);
    return RunTasks(tasks_, [&](int64_t i) {
      const ConvTask& t = tasks_.tasks[i];
      Tensor room;
      // Nobody wants the pixels kept: they are handed on from memory of the
      // task.
      float* made = y ? y + t.y_at : RoomFor(i, &room);
      Execute(i, x, filter, made, {});
      if (!done) return;
      const int64_t first = t.y_at / g.out_channels;
      (*done)(first, first + t.geometry.batch * t.geometry.out_pixels(), made);
    });
  }

  StatusOr<bool> RunFinished(
      const ConvGeometry& g, const float* x, const float* filter, float* y,
      absl::Span<const float* const> rows) const override {
    if (!Same(g, geometry_)) return false;
    const bool parts = tasks_.channel_parts() > 1;
    const bool made = RunTasks(tasks_, [&](int64_t i) {
      const ConvTask& t = tasks_.tasks[i];
      if (!parts) return Execute(i, x, filter, y + t.y_at, rows);
      Tensor room;
      float* part = RoomFor(i, &room);
      if (adds_) Gather(t, y, g.out_channels, part);
      Execute(i, x, filter, part, rows);
      Place(t, part, g.out_channels, y);
    });
    if (!made) return ResourceExhausted("out of memory in a convolution");
    return true;
  }

 private:
  // Pixels are complete only when all parts of the channels are.
  bool RunParts(const float* x, const float* filter, float* y,
                const ConvPixelsDone* done) const {
    const int64_t pixels = geometry_.batch * geometry_.out_pixels();
    const int64_t channels = geometry_.out_channels;
    Tensor whole;
    if (y == nullptr) {
      auto r = Tensor::Allocate(DType::kFloat, Shape{pixels, channels});
      if (!r.ok()) return false;
      whole = *std::move(r);
      y = whole.data<float>();
    }
    const bool made = RunTasks(tasks_, [&](int64_t i) {
      Tensor room;
      // A part's pixels are narrower than the output's: made apart, then
      // placed.
      float* part = RoomFor(i, &room);
      Execute(i, x, filter, part, {});
      Place(tasks_.tasks[i], part, channels, y);
    });
    if (made && done) {
      ParallelFor(pixels, channels * 0.3, [&](int64_t begin, int64_t end) {
        (*done)(begin, end, y + begin * channels);
      });
    }
    return made;
  }

  // Memory for what task i makes, in *room.
  float* RoomFor(int64_t i, Tensor* room) const {
    auto r = ConvRoom(primitives_[i]->y);
    // Tasks have no status; RunTasks catches it.
    if (!r.ok()) throw std::bad_alloc();
    *room = *std::move(r);
    return static_cast<float*>(room->raw());
  }

  void Execute(int64_t i, const float* x, const float* filter, float* made,
               absl::Span<const float* const> rows) const {
    const ConvTask& t = tasks_.tasks[i];
    const ConvPrimitive& p = *primitives_[i];
    std::unordered_map<int, dnnl::memory> args = {
        {DNNL_ARG_SRC, ConvMemory(p.x, x + t.x_at)},
        {DNNL_ARG_WEIGHTS, ConvMemory(p.filter, packed_.Of(i, t, filter))},
        {DNNL_ARG_DST, ConvMemory(p.y, made)}};
    const bool bias = StepsBias(steps_);
    for (size_t s = 0; s < rows.size(); ++s) {
      if (rows[s] == nullptr) continue;
      const int at = static_cast<int>(s) - bias;
      if (at < 0) {
        args.emplace(DNNL_ARG_BIAS, ConvMemory(p.bias, rows[s] + t.channel));
      } else {
        args.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1,
                     ConvMemory(p.row, rows[s] + t.channel));
      }
    }
    ExecuteConv(p, std::move(args));
  }

  const ConvGeometry geometry_;
  const FinishSteps steps_;
  bool adds_ = false;
  const ConvTasks tasks_;
  Primitives primitives_;
  PackedFilters packed_;
};

}  // namespace

StatusOr<std::shared_ptr<const PreparedConv>> PreparedConv::Make(
    const ConvGeometry& g, const float* filter, const FinishSteps& steps) {
  if (WinogradTakes(g)) return PrepareWinograd(g, filter, steps);
  if (NarrowTakes(g)) return PrepareNarrow(g, filter, steps);
  auto made = std::make_shared<DnnlPreparedConv>(g, steps);
  HR_ASSIGN_OR_RETURN(bool ok, made->Prepare(filter));
  if (!ok) return std::shared_ptr<const PreparedConv>();
  return std::shared_ptr<const PreparedConv>(std::move(made));
}

StatusOr<bool> DnnlConvForward(const ConvGeometry& g, const float* x,
                               const float* filter, float* y,
                               const ConvPixelsDone* done) {
  HR_ASSIGN_OR_RETURN(auto conv, PreparedConv::Make(g, filter));
  return conv != nullptr && conv->Run(g, x, filter, y, done);
}

StatusOr<bool> DnnlConvBackwardInput(const ConvGeometry& g, const float* filter,
                                     const float* dy, float* dx) {
  if (WinogradTakes(GradientAsConv(g))) {
    HR_RETURN_IF_ERROR(WinogradBackwardInput(g, filter, dy, dx));
    return true;
  }
  const ConvTasks tasks = SplitConv(g, InputCuts());
  const Primitives primitives = PrimitivesOf(ConvPass::kInput, g, tasks);
  if (primitives.empty()) return false;
  PackedFilters packed;
  HR_RETURN_IF_ERROR(packed.Pack(tasks, primitives, filter));
  return RunTasks(tasks, [&](int64_t i) {
    const ConvTask& t = tasks.tasks[i];
    const ConvPrimitive& p = *primitives[i];
    ExecuteConv(
        p, {{DNNL_ARG_DIFF_SRC, ConvMemory(p.x, dx + t.x_at)},
            {DNNL_ARG_WEIGHTS, ConvMemory(p.filter, packed.Of(i, t, filter))},
            {DNNL_ARG_DIFF_DST, ConvMemory(p.y, dy + t.y_at)}});
  });
}

StatusOr<bool> DnnlConvBackwardFilter(const ConvGeometry& g, const float* x,
                                      const float* dy, float* dfilter) {
  const ConvTasks tasks = SplitConv(g, FilterCuts(g));
  const Primitives primitives = PrimitivesOf(ConvPass::kFilter, g, tasks);
  if (primitives.empty()) return false;
  const int64_t n = g.filter_elements(), count = tasks.count();
  Tensor parts;
  float* to = dfilter;
  // One task writes the filter at once; several each write a part, which are
  // added in order.
  if (count > 1) {
    HR_ASSIGN_OR_RETURN(parts,
                        Tensor::Allocate(DType::kFloat, Shape{count, n}));
    to = parts.data<float>();
  }
  const bool ok = RunTasks(tasks, [&](int64_t i) {
    const ConvTask& t = tasks.tasks[i];
    const ConvPrimitive& p = *primitives[i];
    Tensor room;
    void* made = to + i * n;
    if (p.packs) {
      // oneDNN's own layout of the filter, put in ours behind it.
      auto r = ConvRoom(p.filter);
      if (!r.ok()) throw std::bad_alloc();
      room = *std::move(r);
      made = room.raw();
    }
    ExecuteConv(p, {{DNNL_ARG_SRC, ConvMemory(p.x, x + t.x_at)},
                    {DNNL_ARG_DIFF_WEIGHTS, ConvMemory(p.filter, made)},
                    {DNNL_ARG_DIFF_DST, ConvMemory(p.y, dy + t.y_at)}});
    if (!p.packs) return;
    PackConv(p, ConvMemory(p.filter, made),
             ConvMemory(p.plain_filter, to + i * n));
  });
  if (!ok || count == 1) return ok;
  ParallelFor(n, 0.1 * count, [&](int64_t begin, int64_t end) {
    // Parts are added in their order, by whichever thread: the bits do not
    // depend on it.
    std::copy(to + begin, to + end, dfilter + begin);
    for (int64_t part = 1; part < count; ++part) {
      const float* from = to + part * n;
      for (int64_t i = begin; i < end; ++i) dfilter[i] += from[i];
    }
  });
  return true;
}

}  // namespace headrace
