#include "ops/image/taps.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "ops/image/taps_loops.h"

namespace headrace {

// The first of the errors of several threads.
class FirstError {
 public:
  void Set(const Status& s) {
    MutexLock lock(mutex_);
    if (status_.ok()) status_ = s;
  }
  Status Get() const {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  mutable Mutex mutex_;
  Status status_ ABSL_GUARDED_BY(mutex_);
};

namespace {

// Resampled rows kept at least: what bicubic sums need.
constexpr int kKept = 4;

// Resampled rows of one image, made when first asked for.
template <typename T>
class Rows {
 public:
  // `most`: the rows that one row of outputs is made of at most.
  Rows(const ResizeSizes& s, const AxisTaps& columns, int64_t most)
      : s_(s), columns_(columns), held_(KeptOf(std::min(most, s.in_h))) {}
  Status MakeRoom() {
    const auto kept = static_cast<int64_t>(held_.size());
    HR_ASSIGN_OR_RETURN(
        room_,
        Tensor::Allocate(DType::kFloat, Shape{kept, s_.out_w, s_.channels}));
    if constexpr (!std::is_same_v<T, float>) {
      HR_ASSIGN_OR_RETURN(
          floats_,
          Tensor::Allocate(DType::kFloat, Shape{s_.in_w, s_.channels}));
    }
    return OkStatus();
  }
  void Begin(const T* image) {
    image_ = image;
    std::fill(held_.begin(), held_.end(), -1);
  }
  const float* Get(int64_t row) {
    const int64_t slot = row & (static_cast<int64_t>(held_.size()) - 1);
    float* to = room_.data<float>() + slot * s_.out_w * s_.channels;
    if (held_[slot] != row) {
      AtLevel(level_, [&](auto level) {
        return ResampleColumns<level>(columns_.rows(), s_.out_w, s_.in_w,
                                      s_.channels, Row(row), to);
      });
      held_[slot] = row;
    }
    return to;
  }

 private:
  // A power of two.
  static size_t KeptOf(int64_t most) {
    return std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(most, kKept)));
  }
  // Row `row` of the image, as floats.
  const float* Row(int64_t row) {
    const int64_t width = s_.in_w * s_.channels;
    const T* in = image_ + row * width;
    if constexpr (std::is_same_v<T, float>) {
      return in;
    } else {
      float* to = floats_.data<float>();
      for (int64_t i = 0; i < width; ++i) to[i] = static_cast<float>(in[i]);
      return to;
    }
  }

  const ResizeSizes& s_;
  const AxisTaps& columns_;
  const CpuLevel level_ = ActiveCpuLevel();
  Tensor room_, floats_;
  const T* image_ = nullptr;
  std::vector<int64_t> held_;
};

// One output row from resampled rows, few at a time: of more than kKept, each
// is added while it is there.
template <typename T>
void MixInto(const AxisTaps& taps, int64_t o, int64_t width, Rows<T>& from,
             float* out) {
  const int32_t* index = taps.index(o);
  const float* weight = taps.weight(o);
  const int64_t count = taps.count(o);
  const CpuLevel level = ActiveCpuLevel();
  if (count == 0 || (count <= kKept && index[count - 1] - index[0] < kKept)) {
    const float* rows[kKept];
    for (int64_t t = 0; t < count; ++t) rows[t] = from.Get(index[t]);
    AtLevel(level, [&](auto level) {
      return MixRows<level>(rows, weight, count, taps.lerps(), width, out);
    });
    return;
  }
  AtLevel(level, [&](auto level) {
    return MixRows<level>(nullptr, nullptr, 0, false, width, out);
  });
  for (int64_t t = 0; t < count; ++t) {
    AtLevel(level, [&](auto level) {
      return AddRow<level>(from.Get(index[t]), weight[t], width, out);
    });
  }
}

}  // namespace

StatusOr<AxisTaps> AxisTaps::Make(int64_t outputs, int64_t most) {
  AxisTaps t;
  t.most_ = most;
  HR_ASSIGN_OR_RETURN(Shape all, Shape::Make({outputs, most}));
  HR_ASSIGN_OR_RETURN(t.count_,
                      Tensor::Allocate(DType::kInt32, Shape{outputs}));
  std::fill_n(t.count_.data<int32_t>(), outputs, 0);
  HR_ASSIGN_OR_RETURN(t.index_, Tensor::Allocate(DType::kInt32, all));
  HR_ASSIGN_OR_RETURN(t.weight_, Tensor::Allocate(DType::kFloat, all));
  return t;
}

template <typename T>
Status Resample(const ResizeSizes& s, const AxisTaps& rows,
                const AxisTaps& columns, const T* images, float* out) {
  const int64_t width = s.out_w * s.channels;
  const int64_t image = s.in_h * s.in_w * s.channels;
  FirstError error;
  ParallelFor(s.batch * s.out_h, width * 3.0, [&](int64_t begin, int64_t end) {
    Rows<T> from(s, columns, rows.rows().most);
    if (Status room = from.MakeRoom(); !room.ok()) return error.Set(room);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t o = r % s.out_h;
      if (r == begin || o == 0) from.Begin(images + r / s.out_h * image);
      MixInto(rows, o, width, from, out + r * width);
    }
  });
  return error.Get();
}

template <typename T>
Status ResampleBack(const ResizeSizes& s, const AxisTaps& rows,
                    const AxisTaps& columns, const float* grads, T* images) {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr DType kWide = DTypeOf<W>;
  const int64_t width = s.in_w * s.channels;
  HR_ASSIGN_OR_RETURN(Tensor room,
                      Tensor::Allocate(kWide, Shape{s.batch, s.in_h * width}));
  const double cost = 3.0 * (s.out_h * s.out_w + s.in_h * s.in_w) * s.channels;
  FirstError error;
  ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    auto one = Tensor::Allocate(kWide, Shape{width});
    if (!one.ok()) return error.Set(one.status());
    W* row = one->data<W>();
    for (int64_t b = begin; b < end; ++b) {
      W* sums = room.data<W>() + b * s.in_h * width;
      std::fill_n(sums, s.in_h * width, W(0));
      for (int64_t y = 0; y < s.out_h; ++y) {
        std::fill_n(row, width, W(0));
        const float* g = grads + (b * s.out_h + y) * s.out_w * s.channels;
        for (int64_t x = 0; x < s.out_w; ++x, g += s.channels) {
          for (int64_t t = 0; t < columns.count(x); ++t) {
            W* to = row + columns.index(x)[t] * s.channels;
            const W w = columns.weight(x)[t];
            for (int64_t c = 0; c < s.channels; ++c) to[c] += g[c] * w;
          }
        }
        for (int64_t t = 0; t < rows.count(y); ++t) {
          W* to = sums + rows.index(y)[t] * width;
          const W w = rows.weight(y)[t];
          for (int64_t i = 0; i < width; ++i) to[i] += row[i] * w;
        }
      }
      T* made = images + b * s.in_h * width;
      for (int64_t i = 0; i < s.in_h * width; ++i) {
        made[i] = static_cast<T>(sums[i]);
      }
    }
  });
  return error.Get();
}

template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const float*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const double*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const half*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const bfloat16*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const int8_t*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const uint8_t*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const int16_t*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const uint16_t*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const int32_t*, float*);
template Status Resample(const ResizeSizes&, const AxisTaps&, const AxisTaps&,
                         const int64_t*, float*);
template Status ResampleBack(const ResizeSizes&, const AxisTaps&,
                             const AxisTaps&, const float*, float*);
template Status ResampleBack(const ResizeSizes&, const AxisTaps&,
                             const AxisTaps&, const float*, double*);
template Status ResampleBack(const ResizeSizes&, const AxisTaps&,
                             const AxisTaps&, const float*, half*);
template Status ResampleBack(const ResizeSizes&, const AxisTaps&,
                             const AxisTaps&, const float*, bfloat16*);

}  // namespace headrace
