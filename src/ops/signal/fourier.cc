#include "ops/signal/fourier.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <list>

#include "base/cpu_level.h"
#include "base/fork_mutex.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace headrace {

template <>
const FourierLoops<float>& LoopsForFourier() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return FloatFourier<level>(); });
  return *loops;
}
template <>
const FourierLoops<double>& LoopsForFourier() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return DoubleFourier<level>(); });
  return *loops;
}

namespace {

// Below this many rows a row is transformed by itself.
constexpr int64_t kLeastRows = 3;
// From this length on even many rows are each cut in two: vectors of whole rows
// would leave the second cache.
constexpr int64_t kLeastLongOfMany = 16384;
// Of the transforms that are kept.
constexpr size_t kMostKept = 16;
// A plan holds about as many complex numbers as its length. The sum of the kept
// lengths is bounded, too (Add): some 64 MiB at the very worst.
constexpr int64_t kMostKeptLength = int64_t{1} << 22;

Status NoMemory(int64_t n) {
  return ResourceExhausted("no memory for a Fourier transform of length ", n);
}

double CostOf(int64_t n, bool vectors) {
  const double size = static_cast<double>(n);
  return size * std::log2(size + 1) * (vectors ? 0.1 : 0.7);
}

template <typename T>
struct TransformCache {
  ProcessMutex lock;
  struct Entry {
    int64_t n;
    bool real;
    std::shared_ptr<const Fourier<T>> transform;
  };
  std::list<Entry> entries ABSL_GUARDED_BY(lock);  // the last used first

  std::shared_ptr<const Fourier<T>> Find(int64_t n, bool real) {
    MutexLock hold(lock);
    for (auto e = entries.begin(); e != entries.end(); ++e) {
      if (e->n != n || e->real != real) continue;
      entries.splice(entries.begin(), entries, e);
      return entries.front().transform;
    }
    return nullptr;
  }
  void Add(int64_t n, bool real, std::shared_ptr<const Fourier<T>> transform) {
    if (n > kMostKeptLength) return;
    MutexLock hold(lock);
    entries.push_front({n, real, std::move(transform)});
    int64_t length = 0;
    size_t count = 0;
    for (auto e = entries.begin(); e != entries.end(); ++e) {
      length += e->n;
      if (++count <= kMostKept && length <= kMostKeptLength) continue;
      entries.erase(e, entries.end());
      break;
    }
  }
};

}  // namespace

template <typename T>
Fourier<T>::Fourier(int64_t n, bool real, void* plan)
    : loops_(LoopsForFourier<T>()), n_(n), real_(real), plan_(plan) {}
template <typename T>
Fourier<T>::~Fourier() {
  loops_.destroy(plan_);
}

template <typename T>
StatusOr<std::shared_ptr<const Fourier<T>>> Fourier<T>::Get(int64_t n,
                                                            bool real) {
  static TransformCache<T>& kept = *new TransformCache<T>;
  if (auto found = kept.Find(n, real)) return found;
  void* plan = LoopsForFourier<T>().make(n, real);
  if (plan == nullptr) return NoMemory(n);
  std::shared_ptr<const Fourier> made(new Fourier(n, real, plan));
  kept.Add(n, real, made);
  return made;
}

template <typename T>
Status Fourier<T>::Run(const FourierRows<T>& rows) const {
  const bool dense = rows.from_step == 2 && rows.to_step == 2;
  const bool few = rows.count < kLeastRows || n_ >= kLeastLongOfMany;
  if (!real_ && dense && few && loops_.is_long(plan_)) return RunLong(rows);
  return RunBatches(rows);
}

template <typename T>
Status Fourier<T>::RunBatches(const FourierRows<T>& rows) const {
  const bool alone = rows.count < kLeastRows;
  const int width = alone ? 1 : loops_.width;
  const int64_t batches = (rows.count + width - 1) / width;
  const double cost = CostOf(n_, !alone) * width;
  std::atomic<bool> failed{false};
  ParallelFor(batches, cost, [&](int64_t begin, int64_t end) {
    auto room = Tensor::Allocate(
        DTypeOf<T>,
        Shape{(alone ? loops_.alone_room : loops_.batch_room)(plan_)});
    if (!room.ok()) {
      failed = true;
      return;
    }
    FourierBatch<T> batch;
    batch.alone = alone;
    batch.from_step = rows.from_step;
    batch.to_step = rows.to_step;
    batch.inverse = rows.inverse;
    batch.scale = rows.scale;
    for (int64_t b = begin; b < end && !failed; ++b) {
      const int64_t row = b * width;
      batch.lanes =
          static_cast<int>(std::min<int64_t>(width, rows.count - row));
      for (int l = 0; l < batch.lanes; ++l) {
        int64_t from, to;
        rows.place(row + l, &from, &to);
        batch.from[l] = rows.from + from;
        batch.to[l] = rows.to + to;
      }
      if (!(real_ ? loops_.real_rows : loops_.complex_rows)(
              plan_, batch, room->template data<T>())) {
        failed = true;
      }
    }
  });
  return failed ? NoMemory(n_) : OkStatus();
}

template <typename T>
Status Fourier<T>::RunLong(const FourierRows<T>& rows) const {
  std::atomic<bool> failed{false};
  ParallelFor(rows.count, CostOf(n_, true), [&](int64_t begin, int64_t end) {
    auto middle = Tensor::Allocate(DTypeOf<T>, Shape{loops_.middle(plan_)});
    if (!middle.ok()) failed = true;
    for (int64_t r = begin; r < end && !failed; ++r) {
      int64_t from, to;
      rows.place(r, &from, &to);
      if (!RunLongRow(rows.from + from, rows.to + to, rows.inverse, rows.scale,
                      middle->template data<T>())) {
        failed = true;
      }
    }
  });
  return failed ? NoMemory(n_) : OkStatus();
}

template <typename T>
bool Fourier<T>::RunLongRow(const T* from, T* to, bool inverse, T scale,
                            T* middle) const {
  const int64_t columns = loops_.column_groups(plan_);
  const int64_t groups = loops_.row_groups(plan_);
  const double cost = CostOf(n_, true) / 2;
  std::atomic<bool> failed{false};
  ParallelFor(columns, cost / columns, [&](int64_t begin, int64_t end) {
    auto room = Tensor::Allocate(DTypeOf<T>, Shape{loops_.long_room(plan_)});
    if (!room.ok()) failed = true;
    for (int64_t g = begin; g < end && !failed; ++g) {
      if (!loops_.long_columns(plan_, from, middle, g, inverse,
                               room->template data<T>())) {
        failed = true;
      }
    }
  });
  if (failed) return false;
  ParallelFor(groups, cost / groups, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end && !failed; ++g) {
      if (!loops_.long_rows(plan_, middle, to, g, inverse, scale)) {
        failed = true;
      }
    }
  });
  return !failed;
}

template class Fourier<float>;
template class Fourier<double>;

}  // namespace headrace
