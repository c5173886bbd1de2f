#include "ops/nn/conv/onednn_primitives.h"

#include <algorithm>
#include <array>
#include <new>

#include "absl/strings/match.h"
#include "base/fork_mutex.h"
#include "base/hash_map.h"
#include "base/memory_guard.h"
#include "base/mutex.h"
#include "base/threads.h"

namespace headrace {
namespace {

using dnnl::memory;
using Desc = memory::desc;

const dnnl::engine& Engine() {
  // Never destroyed: primitives refer to it to the end of the process.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

using Key = std::array<int64_t, 30>;

// More steps than an integer has room for are not taken.
constexpr size_t kMostSteps = 16;

// Pass and steps as one number: octal digits, none of which is 0, so that the
// first one is always the pass.
int64_t CodeOf(ConvPass pass, const FinishSteps& steps) {
  int64_t code = static_cast<int64_t>(pass) + 1;
  for (const FinishStep& s : steps) code = code * 8 + s.kind + 1;
  return code;
}

Key KeyOf(ConvPass pass, const ConvGeometry& g, int64_t filter_channels,
          const FinishSteps& steps) {
  Key k{CodeOf(pass, steps), g.batch,  g.in_channels,
        g.out_channels,      g.groups, filter_channels};
  int at = 6;
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

Descs DescsOf(const ConvGeometry& g, int64_t filter_channels) {
  Descs d;
  const int first = FirstSpatial(g);
  memory::dims x{g.batch, g.in_channels}, y{g.batch, g.out_channels}, f, fs;
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups;
  if (g.groups > 1) {
    // Groups are a dimension of their own to oneDNN.
    f.push_back(g.groups);
    fs.push_back(out);
  }
  f.insert(f.end(), {out, in});
  // Filters lie as upstream's, windows first and channels last: oneDNN is told
  // by strides.
  fs.insert(fs.end(), {1, filter_channels});
  int64_t stride = in * filter_channels;
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
    // oneDNN counts the gaps between taps.
    d.dilations.push_back(w.dilation - 1);
    d.before.push_back(w.before);
    // What the last window really sees: VALID may leave rows unread, which are
    // no padding.
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
  // Ours, as oneDNN's own would be shared by threads or allocated at each call.
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// What a pass needs beyond the scratchpad that oneDNN 2.6 asks for. Its filter
// gradient of strided windows of one tap gathers the rows that count there, as
// many channels as a vector has (8, perhaps 16), but reckons with the image's.
size_t Overrun(ConvPass pass, const ConvGeometry& g) {
  constexpr int64_t kVector = 16;
  const bool strided = g.windows[0].stride > 1 || g.windows[1].stride > 1 ||
                       g.windows[2].stride > 1;
  if (pass != ConvPass::kFilter || !strided || g.filter_pixels() != 1 ||
      g.in_channels >= kVector) {
    return 0;
  }
  return g.out_pixels() * (kVector - g.in_channels) * sizeof(float);
}

// One number an output channel.
Desc RowOf(const ConvGeometry& g) {
  memory::dims dims(FirstSpatial(g) == 1 ? 4 : 5, 1);
  dims[1] = g.out_channels;
  return Desc(dims, memory::data_type::f32,
              FirstSpatial(g) == 1 ? memory::format_tag::nchw
                                   : memory::format_tag::ncdhw);
}

dnnl::post_ops PostOps(const FinishSteps& steps, const Desc& row) {
  dnnl::post_ops ops;
  for (size_t i = StepsBias(steps); i < steps.size(); ++i) {
    switch (steps[i].kind) {
      case FinishStep::kTimesRow:
        ops.append_binary(dnnl::algorithm::binary_mul, row);
        break;
      case FinishStep::kPlusRow:
        ops.append_binary(dnnl::algorithm::binary_add, row);
        break;
      case FinishStep::kPlusOutput:
        ops.append_sum(1.0f);
        break;
      case FinishStep::kRelu:
        ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
        break;
      case FinishStep::kRelu6:
        ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, 0.0f, 6.0f);
        break;
    }
  }
  return ops;
}

// Whether oneDNN's implementation of that name runs the steps well. Loops for
// any case would take a hundred times as long; convolutions by products make -0
// of negative numbers in a relu, where AVX2 is the most there is.
bool RunsSteps(StringView name, const FinishSteps& steps) {
  const bool relu = std::any_of(
      steps.begin(), steps.end(),
      [](const FinishStep& s) { return s.kind == FinishStep::kRelu; });
  return !absl::StartsWith(name, "ref") &&
         !(relu && absl::StrContains(name, "gemm"));
}

std::shared_ptr<ConvPrimitive> MakePrimitive(ConvPass pass,
                                             const ConvGeometry& g,
                                             int64_t filter_channels,
                                             const FinishSteps& steps) {
  namespace d = dnnl;
  const Descs s = DescsOf(g, filter_channels);
  auto p = std::make_shared<ConvPrimitive>();
  p->row = RowOf(g);
  auto attr = UserScratchpad();
  attr.set_post_ops(PostOps(steps, p->row));
  const auto direct = d::algorithm::convolution_direct;
  if (StepsBias(steps)) {
    p->bias = Desc({g.out_channels}, d::memory::data_type::f32,
                   d::memory::format_tag::x);
  }
  // Backward passes need a forward description as a hint. (A bias of nothing is
  // none.)
  d::convolution_forward::primitive_desc forward(
      {d::prop_kind::forward_training, direct, s.x, s.any_filter, p->bias, s.y,
       s.strides, s.dilations, s.before, s.after},
      attr, Engine());
  if (!steps.empty() && !RunsSteps(forward.impl_info_str(), steps)) {
    return nullptr;
  }
  p->x = s.x;
  p->y = s.y;
  p->plain_filter = s.filter;
  if (pass == ConvPass::kForward) {
    p->filter = forward.weights_desc();
    p->scratch = forward.scratchpad_desc();
    p->run = d::convolution_forward(forward);
  } else if (pass == ConvPass::kInput) {
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
  p->scratch_bytes = p->scratch.get_size();
  if (p->scratch_bytes > 0) p->scratch_bytes += Overrun(pass, g);
  // oneDNN may like the filter as it comes.
  p->packs = p->filter != p->plain_filter;
  if (p->packs) {
    const bool back = pass == ConvPass::kFilter;
    p->pack = d::reorder(d::reorder::primitive_desc(
        Engine(), back ? p->filter : p->plain_filter, Engine(),
        back ? p->plain_filter : p->filter));
  }
  return p;
}

StatusOr<Tensor> Room(size_t bytes) {
  return Tensor::Allocate(DType::kInt8,
                          Shape{static_cast<int64_t>(bytes) + 64});
}

struct OwnStream {
  dnnl::stream stream{Engine()};
};
// A stream a thread: they are not to be shared.
dnnl::stream& Stream() { return OwnObject<OwnStream>().stream; }

struct KeptPrimitives {
  ProcessMutex mutex;
  HashMap<Key, std::shared_ptr<const ConvPrimitive>> by_key
      ABSL_GUARDED_BY(mutex);
};

}  // namespace

bool StepsBias(const FinishSteps& steps) {
  return !steps.empty() && steps[0].kind == FinishStep::kPlusRow;
}

std::shared_ptr<const ConvPrimitive> ConvPrimitiveFor(
    ConvPass pass, const ConvGeometry& g, int64_t filter_channels,
    const FinishSteps& steps) {
  if (steps.size() > kMostSteps) return nullptr;
  static KeptPrimitives& kept = *new KeptPrimitives;
  const Key key = KeyOf(pass, g, filter_channels, steps);
  // Held while a primitive is made: threads that want the same wait for it
  // instead of writing the code again.
  MutexLock lock(kept.mutex);
  auto at = kept.by_key.find(key);
  if (at != kept.by_key.end()) return at->second;
  // Where the loops cannot be written oneDNN would not notice.
  if (!SystemHasRoom(size_t{64} << 20)) return nullptr;
  std::shared_ptr<const ConvPrimitive> p;
  try {
    p = MakePrimitive(pass, g, filter_channels, steps);
  } catch (const std::exception&) {
    // Kept as well: what cannot be made is not tried again.
    p = nullptr;
  }
  // Programs with ever new shapes must not keep code for ever; whoever uses a
  // primitive holds it.
  if (kept.by_key.size() >= 1024) kept.by_key.clear();
  return kept.by_key.emplace(key, std::move(p)).first->second;
}

void ExecuteConv(const ConvPrimitive& p,
                 std::unordered_map<int, dnnl::memory> args) {
  Tensor scratch;
  if (p.scratch_bytes > 0) {
    auto room = Room(p.scratch_bytes);
    if (!room.ok()) throw std::bad_alloc();
    scratch = *std::move(room);
    args.emplace(DNNL_ARG_SCRATCHPAD, ConvMemory(p.scratch, scratch.raw()));
  }
  p.run.execute(Stream(), args);
}

void PackConv(const ConvPrimitive& p, const dnnl::memory& from,
              const dnnl::memory& to) {
  p.pack.execute(Stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

dnnl::memory ConvMemory(const Desc& desc, const void* data) {
  return memory(desc, Engine(), const_cast<void*>(data));
}

StatusOr<Tensor> ConvRoom(const Desc& desc) { return Room(desc.get_size()); }

}  // namespace headrace
