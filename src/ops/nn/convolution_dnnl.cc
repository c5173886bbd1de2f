// Convolutions by oneDNN, split over our own threads: its OpenMP is set to one
// thread, and a task is a chunk of images or a band of rows of one. The split
// depends on the sizes alone. Primitives are kept by their sizes.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "absl/container/flat_hash_map.h"
#include "base/thread_pool.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "ops/math/one_omp_thread.h"
#include "ops/nn/convolution.h"

namespace headrace {
namespace {

using dnnl::memory;
using Desc = memory::desc;

enum class Pass : int64_t { kForward, kInput, kFilter };

const dnnl::engine& Engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// A primitive with the layouts that it wants.
struct Primitive {
  dnnl::primitive run, pack;  // pack: the filter to or from its own layout
  Desc x, filter, y, plain_filter, scratch;
  bool packs = false;
};

using Key = std::array<int64_t, 29>;

Key KeyOf(Pass pass, const ConvGeometry& g) {
  Key k{static_cast<int64_t>(pass), g.batch, g.in_channels, g.out_channels,
        g.groups};
  int at = 5;
  for (const Window& w : g.windows) {
    for (int64_t v :
         {w.in, w.out, w.size, w.stride, w.dilation, w.before, w.after}) {
      k[at++] = v;
    }
  }
  return k;
}

// The spatial dimensions that oneDNN is told of: two where the first is 1.
int FirstSpatial(const ConvGeometry& g) {
  const Window& w = g.windows[0];
  const bool flat =
      w.in == 1 && w.out == 1 && w.size == 1 && w.before == 0 && w.after == 0;
  return flat ? 1 : 0;
}

struct Descs {
  Desc x, y, filter, any_filter;
  memory::dims strides, dilations, before, after;
};

Descs DescsOf(const ConvGeometry& g) {
  Descs d;
  const int first = FirstSpatial(g);
  memory::dims x{g.batch, g.in_channels}, y{g.batch, g.out_channels}, f, fs;
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups;
  if (g.groups > 1) {
    f.push_back(g.groups);
    fs.push_back(out);
  }
  f.insert(f.end(), {out, in});
  fs.insert(fs.end(), {1, g.out_channels});
  int64_t stride = in * g.out_channels;
  memory::dims window_strides;
  for (int i = 2; i >= first; --i) {
    window_strides.insert(window_strides.begin(), stride);
    stride *= g.windows[i].size;
  }
  fs.insert(fs.end(), window_strides.begin(), window_strides.end());
  for (int i = first; i < 3; ++i) {
    const Window& w = g.windows[i];
    x.push_back(w.in);
    y.push_back(w.out);
    f.push_back(w.size);
    d.strides.push_back(w.stride);
    d.dilations.push_back(w.dilation - 1);
    d.before.push_back(w.before);
    d.after.push_back(std::max<int64_t>(
        0, w.begin(w.out - 1) + (w.size - 1) * w.dilation + 1 - w.in));
  }
  const auto type = memory::data_type::f32;
  const auto last =
      first == 1 ? memory::format_tag::nhwc : memory::format_tag::ndhwc;
  d.x = Desc(x, type, last);
  d.y = Desc(y, type, last);
  d.filter = Desc(f, type, fs);
  d.any_filter = Desc(f, type, memory::format_tag::any);
  return d;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

std::shared_ptr<Primitive> MakePrimitive(Pass pass, const ConvGeometry& g) {
  namespace d = dnnl;
  const Descs s = DescsOf(g);
  auto p = std::make_shared<Primitive>();
  const auto attr = UserScratchpad();
  const auto direct = d::algorithm::convolution_direct;
  d::convolution_forward::primitive_desc forward(
      {d::prop_kind::forward_training, direct, s.x, s.any_filter, s.y,
       s.strides, s.dilations, s.before, s.after},
      attr, Engine());
  p->x = s.x;
  p->y = s.y;
  p->plain_filter = s.filter;
  if (pass == Pass::kForward) {
    p->filter = forward.weights_desc();
    p->scratch = forward.scratchpad_desc();
    p->run = d::convolution_forward(forward);
  } else if (pass == Pass::kInput) {
    d::convolution_backward_data::primitive_desc pd(
        {direct, s.x, s.any_filter, s.y, s.strides, s.dilations, s.before,
         s.after},
        attr, Engine(), forward);
    p->filter = pd.weights_desc();
    p->scratch = pd.scratchpad_desc();
    p->run = d::convolution_backward_data(pd);
  } else {
    d::convolution_backward_weights::primitive_desc pd(
        {direct, s.x, s.any_filter, s.y, s.strides, s.dilations, s.before,
         s.after},
        attr, Engine(), forward);
    p->filter = pd.diff_weights_desc();
    p->scratch = pd.scratchpad_desc();
    p->run = d::convolution_backward_weights(pd);
  }
  p->packs = p->filter != p->plain_filter;
  if (p->packs) {
    const bool back = pass == Pass::kFilter;
    p->pack = d::reorder(d::reorder::primitive_desc(
        Engine(), back ? p->filter : p->plain_filter, Engine(),
        back ? p->plain_filter : p->filter));
  }
  return p;
}

// The primitive, from those kept or made anew; null when oneDNN has none.
std::shared_ptr<Primitive> PrimitiveFor(Pass pass, const ConvGeometry& g) {
  static std::mutex mutex;
  static auto* kept =
      new absl::flat_hash_map<Key, std::shared_ptr<Primitive>>();
  const Key key = KeyOf(pass, g);
  std::lock_guard<std::mutex> lock(mutex);
  auto at = kept->find(key);
  if (at != kept->end()) return at->second;
  std::shared_ptr<Primitive> p;
  try {
    p = MakePrimitive(pass, g);
  } catch (const std::exception&) {
    p = nullptr;
  }
  if (kept->size() >= 1024) kept->clear();
  return kept->emplace(key, std::move(p)).first->second;
}

dnnl::stream& Stream() {
  static thread_local dnnl::stream stream(Engine());
  return stream;
}

memory MemoryOf(const Desc& desc, const void* data) {
  return memory(desc, Engine(), const_cast<void*>(data));
}

StatusOr<Tensor> Room(const Desc& desc) {
  return Tensor::Allocate(DType::kInt8,
                          Shape{static_cast<int64_t>(desc.get_size()) + 64});
}

// Nanoseconds on one thread, about: arithmetic, or memory where filters are
// small.
double Cost(const ConvGeometry& g) {
  const double elements =
      1.0 * g.batch *
      (g.in_pixels() * g.in_channels + g.out_pixels() * g.out_channels);
  return std::max(g.multiplications() / 40, elements * 0.2);
}

// A part of the work: images [image, image + geometry.batch), output rows that
// begin at y_at, input rows at x_at (elements).
struct Task {
  ConvGeometry geometry;
  int64_t x_at, y_at;
};

// Bands of output rows of every image, or chunks of whole images.
std::vector<Task> Split(const ConvGeometry& g, bool bands, int64_t most) {
  std::vector<Task> tasks;
  const int64_t wanted =
      std::clamp<int64_t>(static_cast<int64_t>(Cost(g) / 1e5), 1, most);
  const int64_t x_image = g.in_pixels() * g.in_channels;
  const int64_t y_image = g.out_pixels() * g.out_channels;
  const int axis = FirstSpatial(g);
  const Window& w = g.windows[axis];
  const int64_t cut =
      bands ? std::min(w.out, (wanted + g.batch - 1) / g.batch) : 1;
  if (cut <= 1) {
    const int64_t chunks = std::min(g.batch, wanted);
    for (int64_t c = 0; c < chunks; ++c) {
      const int64_t begin = c * g.batch / chunks;
      Task t{g, begin * x_image, begin * y_image};
      t.geometry.batch = (c + 1) * g.batch / chunks - begin;
      tasks.push_back(t);
    }
    return tasks;
  }
  const int64_t x_row = x_image / w.in, y_row = y_image / w.out;
  for (int64_t image = 0; image < g.batch; ++image) {
    for (int64_t c = 0; c < cut; ++c) {
      const int64_t first = c * w.out / cut, last = (c + 1) * w.out / cut;
      const int64_t begin = w.begin(first);
      const int64_t end = w.begin(last - 1) + (w.size - 1) * w.dilation + 1;
      const int64_t low = std::max<int64_t>(begin, 0),
                    high = std::min(end, w.in);
      if (low >= high) return Split(g, false, most);
      Task t{g, image * x_image + low * x_row, image * y_image + first * y_row};
      t.geometry.batch = 1;
      Window& part = t.geometry.windows[axis];
      part.in = high - low;
      part.out = last - first;
      part.before = low - begin;
      part.after = end - high;
      tasks.push_back(t);
    }
  }
  return tasks;
}

void Execute(const Primitive& p, const std::unordered_map<int, memory>& args) {
  auto all = args;
  Tensor scratch;
  if (p.scratch.get_size() > 0) {
    auto room = Room(p.scratch);
    if (!room.ok()) throw std::bad_alloc();
    scratch = *std::move(room);
    all.emplace(DNNL_ARG_SCRATCHPAD, MemoryOf(p.scratch, scratch.raw()));
  }
  p.run.execute(Stream(), all);
}

// Runs f(task index) for all on our threads; false when oneDNN failed.
bool RunTasks(int64_t count, double ns, absl::FunctionRef<void(int64_t)> f) {
  std::atomic<bool> failed{false};
  ParallelFor(count, ns, [&](int64_t begin, int64_t end) {
    OneOmpThread one;
    for (int64_t i = begin; i < end && !failed; ++i) {
      try {
        f(i);
      } catch (const std::exception&) {
        failed = true;
      }
    }
  });
  return !failed;
}

// The primitives of all tasks; empty when one is missing.
std::vector<std::shared_ptr<Primitive>> PrimitivesOf(
    Pass pass, const std::vector<Task>& tasks) {
  OneOmpThread one;
  std::vector<std::shared_ptr<Primitive>> found;
  for (const Task& t : tasks) {
    found.push_back(PrimitiveFor(pass, t.geometry));
    if (!found.back()) return {};
  }
  return found;
}

// The filter in the layout of each primitive: tasks that agree share one.
StatusOr<std::vector<std::pair<const Primitive*, Tensor>>> PackFilters(
    const std::vector<std::shared_ptr<Primitive>>& primitives,
    const float* filter) {
  OneOmpThread one;
  std::vector<std::pair<const Primitive*, Tensor>> packed;
  for (const auto& p : primitives) {
    bool done = !p->packs;
    for (const auto& [other, t] : packed) done |= other->filter == p->filter;
    if (done) continue;
    HR_ASSIGN_OR_RETURN(Tensor room, Room(p->filter));
    memory from = MemoryOf(p->plain_filter, filter);
    memory to = MemoryOf(p->filter, room.raw());
    p->pack.execute(Stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
    packed.emplace_back(p.get(), std::move(room));
  }
  return packed;
}

const void* PackedFor(
    const Primitive& p, const float* filter,
    const std::vector<std::pair<const Primitive*, Tensor>>& packed) {
  if (!p.packs) return filter;
  for (const auto& [other, t] : packed) {
    if (other->filter == p.filter) return t.raw();
  }
  return nullptr;
}

class DnnlPreparedConv : public PreparedConv {
 public:
  explicit DnnlPreparedConv(const ConvGeometry& g)
      : key_(KeyOf(Pass::kForward, g)), tasks_(Split(g, true, 32)) {}

  // False when there is no such convolution.
  StatusOr<bool> Prepare(const float* filter) {
    primitives_ = PrimitivesOf(Pass::kForward, tasks_);
    if (primitives_.empty()) return false;
    HR_ASSIGN_OR_RETURN(packed_, PackFilters(primitives_, filter));
    return true;
  }

  bool Run(const ConvGeometry& g, const float* x, const float* filter, float* y,
           const ConvPixelsDone* done) const override {
    if (KeyOf(Pass::kForward, g) != key_) return false;
    return RunTasks(tasks_.size(), Cost(g) / tasks_.size(), [&](int64_t i) {
      const Task& t = tasks_[i];
      const Primitive& p = *primitives_[i];
      Execute(p, {{DNNL_ARG_SRC, MemoryOf(p.x, x + t.x_at)},
                  {DNNL_ARG_WEIGHTS,
                   MemoryOf(p.filter, PackedFor(p, filter, packed_))},
                  {DNNL_ARG_DST, MemoryOf(p.y, y + t.y_at)}});
      if (!done) return;
      const int64_t first = t.y_at / g.out_channels;
      (*done)(first, first + t.geometry.batch * t.geometry.out_pixels());
    });
  }

 private:
  const Key key_;
  const std::vector<Task> tasks_;
  std::vector<std::shared_ptr<Primitive>> primitives_;
  std::vector<std::pair<const Primitive*, Tensor>> packed_;
};

}  // namespace

StatusOr<std::shared_ptr<const PreparedConv>> PreparedConv::Make(
    const ConvGeometry& g, const float* filter) {
  auto made = std::make_shared<DnnlPreparedConv>(g);
  HR_ASSIGN_OR_RETURN(bool ok, made->Prepare(filter));
  if (!ok) return std::shared_ptr<const PreparedConv>();
  return std::shared_ptr<const PreparedConv>(std::move(made));
}

StatusOr<bool> DnnlConvForward(const ConvGeometry& g, const float* x,
                               const float* filter, float* y,
                               const ConvPixelsDone* done) {
  DnnlPreparedConv conv(g);
  HR_ASSIGN_OR_RETURN(bool ok, conv.Prepare(filter));
  return ok && conv.Run(g, x, filter, y, done);
}

StatusOr<bool> DnnlConvBackwardInput(const ConvGeometry& g, const float* filter,
                                     const float* dy, float* dx) {
  const std::vector<Task> tasks = Split(g, false, 64);
  const auto primitives = PrimitivesOf(Pass::kInput, tasks);
  if (primitives.empty()) return false;
  HR_ASSIGN_OR_RETURN(auto packed, PackFilters(primitives, filter));
  return RunTasks(tasks.size(), Cost(g) / tasks.size(), [&](int64_t i) {
    const Task& t = tasks[i];
    const Primitive& p = *primitives[i];
    Execute(p, {{DNNL_ARG_DIFF_SRC, MemoryOf(p.x, dx + t.x_at)},
                {DNNL_ARG_WEIGHTS,
                 MemoryOf(p.filter, PackedFor(p, filter, packed))},
                {DNNL_ARG_DIFF_DST, MemoryOf(p.y, dy + t.y_at)}});
  });
}

StatusOr<bool> DnnlConvBackwardFilter(const ConvGeometry& g, const float* x,
                                      const float* dy, float* dfilter) {
  // Every task makes a whole filter, so there are few where filters are large.
  const int64_t most = std::clamp<int64_t>(g.batch * g.out_pixels() / 64, 1, 8);
  const std::vector<Task> tasks = Split(g, true, most);
  const auto primitives = PrimitivesOf(Pass::kFilter, tasks);
  if (primitives.empty()) return false;
  const int64_t n = g.filter_elements(), count = tasks.size();
  Tensor parts;
  float* to = dfilter;
  if (count > 1) {
    HR_ASSIGN_OR_RETURN(parts,
                        Tensor::Allocate(DType::kFloat, Shape{count, n}));
    to = parts.data<float>();
  }
  const bool ok = RunTasks(count, Cost(g) / count, [&](int64_t i) {
    const Task& t = tasks[i];
    const Primitive& p = *primitives[i];
    Tensor room;
    void* made = to + i * n;
    if (p.packs) {
      auto r = Room(p.filter);
      if (!r.ok()) throw std::bad_alloc();
      room = *std::move(r);
      made = room.raw();
    }
    Execute(p, {{DNNL_ARG_SRC, MemoryOf(p.x, x + t.x_at)},
                {DNNL_ARG_DIFF_WEIGHTS, MemoryOf(p.filter, made)},
                {DNNL_ARG_DIFF_DST, MemoryOf(p.y, dy + t.y_at)}});
    if (!p.packs) return;
    memory from = MemoryOf(p.filter, made);
    memory plain = MemoryOf(p.plain_filter, to + i * n);
    p.pack.execute(Stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, plain}});
  });
  if (!ok || count == 1) return ok;
  ParallelFor(n, 0.1 * count, [&](int64_t begin, int64_t end) {
    std::copy(to + begin, to + end, dfilter + begin);
    for (int64_t part = 1; part < count; ++part) {
      const float* from = to + part * n;
      for (int64_t i = begin; i < end; ++i) dfilter[i] += from[i];
    }
  });
  return true;
}

}  // namespace headrace
