#include "ops/image/taps.h"

#include <algorithm>
#include <mutex>

#include "base/thread_pool.h"

namespace headrace {
namespace {

constexpr int kKept = 4;  // resampled rows kept: what bicubic sums need

// The first of the errors of several threads.
class FirstError {
 public:
  void Set(const Status& s) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = s;
  }
  Status Get() const { return status_; }

 private:
  std::mutex mutex_;
  Status status_;
};

// One input row resampled along its columns.
template <typename T>
void ResampleRow(const AxisTaps& columns, int64_t out_w, int64_t channels,
                 const T* in, float* out) {
  for (int64_t o = 0; o < out_w; ++o, out += channels) {
    const int32_t* index = columns.index(o);
    const float* weight = columns.weight(o);
    if (columns.lerps()) {
      const T *a = in + index[0] * channels, *b = in + index[1] * channels;
      const float w = weight[1];
      for (int64_t c = 0; c < channels; ++c) {
        const float low = static_cast<float>(a[c]);
        out[c] = low + (static_cast<float>(b[c]) - low) * w;
      }
      continue;
    }
    std::fill_n(out, channels, 0.0f);
    const int64_t count = columns.count(o);
    for (int64_t t = 0; t < count; ++t) {
      const T* a = in + index[t] * channels;
      const float w = weight[t];
      for (int64_t c = 0; c < channels; ++c) {
        out[c] += static_cast<float>(a[c]) * w;
      }
    }
  }
}

// Resampled rows of one image, made when first asked for.
template <typename T>
class Rows {
 public:
  Rows(const ResizeSizes& s, const AxisTaps& columns)
      : s_(s), columns_(columns) {}
  Status MakeRoom() {
    HR_ASSIGN_OR_RETURN(
        room_,
        Tensor::Allocate(DType::kFloat, Shape{kKept, s_.out_w, s_.channels}));
    return OkStatus();
  }
  void Begin(const T* image) {
    image_ = image;
    std::fill_n(held_, kKept, -1);
  }
  const float* Get(int64_t row) {
    const int64_t slot = row % kKept;
    float* to = room_.data<float>() + slot * s_.out_w * s_.channels;
    if (held_[slot] != row) {
      ResampleRow(columns_, s_.out_w, s_.channels,
                  image_ + row * s_.in_w * s_.channels, to);
      held_[slot] = row;
    }
    return to;
  }

 private:
  const ResizeSizes& s_;
  const AxisTaps& columns_;
  Tensor room_;
  const T* image_ = nullptr;
  int64_t held_[kKept] = {-1, -1, -1, -1};
};

// One output row from resampled rows.
template <typename T>
void MixRows(const AxisTaps& rows, int64_t o, int64_t width, Rows<T>& from,
             float* out) {
  const int32_t* index = rows.index(o);
  const float* weight = rows.weight(o);
  if (rows.lerps()) {
    const float *a = from.Get(index[0]), *b = from.Get(index[1]);
    const float w = weight[1];
    for (int64_t i = 0; i < width; ++i) out[i] = a[i] + (b[i] - a[i]) * w;
    return;
  }
  std::fill_n(out, width, 0.0f);
  const int64_t count = rows.count(o);
  for (int64_t t = 0; t < count; ++t) {
    const float* a = from.Get(index[t]);
    const float w = weight[t];
    for (int64_t i = 0; i < width; ++i) out[i] += a[i] * w;
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
    Rows<T> from(s, columns);
    if (Status room = from.MakeRoom(); !room.ok()) return error.Set(room);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t o = r % s.out_h;
      if (r == begin || o == 0) from.Begin(images + r / s.out_h * image);
      MixRows(rows, o, width, from, out + r * width);
    }
  });
  return error.Get();
}

template <typename T>
Status ResampleBack(const ResizeSizes& s, const AxisTaps& rows,
                    const AxisTaps& columns, const float* grads, T* images) {
  const int64_t width = s.in_w * s.channels;
  HR_ASSIGN_OR_RETURN(
      Tensor room,
      Tensor::Allocate(DType::kFloat, Shape{s.batch, s.in_h * width}));
  const double cost = 3.0 * (s.out_h * s.out_w + s.in_h * s.in_w) * s.channels;
  FirstError error;
  ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    auto one = Tensor::Allocate(DType::kFloat, Shape{width});
    if (!one.ok()) return error.Set(one.status());
    float* row = one->data<float>();
    for (int64_t b = begin; b < end; ++b) {
      float* sums = room.data<float>() + b * s.in_h * width;
      std::fill_n(sums, s.in_h * width, 0.0f);
      for (int64_t y = 0; y < s.out_h; ++y) {
        std::fill_n(row, width, 0.0f);
        const float* g = grads + (b * s.out_h + y) * s.out_w * s.channels;
        for (int64_t x = 0; x < s.out_w; ++x, g += s.channels) {
          for (int64_t t = 0; t < columns.count(x); ++t) {
            float* to = row + columns.index(x)[t] * s.channels;
            const float w = columns.weight(x)[t];
            for (int64_t c = 0; c < s.channels; ++c) to[c] += g[c] * w;
          }
        }
        for (int64_t t = 0; t < rows.count(y); ++t) {
          float* to = sums + rows.index(y)[t] * width;
          const float w = rows.weight(y)[t];
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

#define HR_RESAMPLE(T)                                             \
  template Status Resample<T>(const ResizeSizes&, const AxisTaps&, \
                              const AxisTaps&, const T*, float*);
HR_RESAMPLE(float)
HR_RESAMPLE(double)
HR_RESAMPLE(half)
HR_RESAMPLE(bfloat16)
HR_RESAMPLE(int8_t)
HR_RESAMPLE(uint8_t)
HR_RESAMPLE(int16_t)
HR_RESAMPLE(uint16_t)
HR_RESAMPLE(int32_t)
HR_RESAMPLE(int64_t)
#undef HR_RESAMPLE
#define HR_RESAMPLE_BACK(T)                                            \
  template Status ResampleBack<T>(const ResizeSizes&, const AxisTaps&, \
                                  const AxisTaps&, const float*, T*);
HR_RESAMPLE_BACK(float)
HR_RESAMPLE_BACK(double)
HR_RESAMPLE_BACK(half)
HR_RESAMPLE_BACK(bfloat16)
#undef HR_RESAMPLE_BACK

}  // namespace headrace
