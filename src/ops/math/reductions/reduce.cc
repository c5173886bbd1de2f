#include "ops/math/reductions/reduce.h"

#include <algorithm>
#include <atomic>

#include "base/thread_pool.h"

namespace headrace {
namespace {

// 20 GB/s, a core's pace over the cache: an estimate that decides how work is
// shared out.
constexpr double kNsPerByte = 0.05;

// The reduction that joins results of `r`.
Reduction Joining(Reduction r) {
  return r == Reduction::kSumSquares || r == Reduction::kWideSum
             ? Reduction::kSum
             : r;
}

struct Step {
  Reduction r;
  DType dtype;
  ReduceLoops loops;
  int64_t in_size, out_size;
  Step(Reduction reduction, DType type)
      : r(reduction),
        dtype(type),
        loops(LoopsForReduction(reduction, type)),
        in_size(DTypeSize(type)),
        out_size(DTypeSize(loops.out)) {}
};

// [outer, n] over n.
Status ReduceRunsOf(const Step& s, const char* in, int64_t outer, int64_t n,
                    char* out) {
  const int64_t block = FixedBlockSize(n), blocks = FixedBlocks(n);
  // Enough rows to share out, or rows too short to cut: a row is one task.
  if (IsOneRun(outer, n)) {
    ParallelFor(outer, n * s.in_size * kNsPerByte,
                [&](int64_t begin, int64_t end) {
                  s.loops.runs(in + begin * n * s.in_size, n, end - begin,
                               out + begin * s.out_size);
                });
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(Tensor parts,
                      Tensor::Allocate(s.loops.out, Shape{outer, blocks}));
  char* to = static_cast<char*>(parts.raw());
  ParallelFor(outer * blocks, block * s.in_size * kNsPerByte,
              [&](int64_t begin, int64_t end) {
                // Blocks of fixed size whatever the number of threads: the
                // order of additions is theirs.
                for (int64_t i = begin; i < end;) {
                  const int64_t row = i / blocks, at = i % blocks;
                  // Whole blocks behind one another are runs of one call.
                  const int64_t whole = std::min(end - i, n / block - at);
                  s.loops.runs(in + (row * n + at * block) * s.in_size,
                               whole > 0 ? block : n % block,
                               std::max<int64_t>(whole, 1),
                               to + i * s.out_size);
                  i += std::max<int64_t>(whole, 1);
                }
              });
  // Squares are joined as sums.
  return ReduceRunsOf(Step(Joining(s.r), s.loops.out), to, outer, blocks, out);
}

// [outer, n, inner] over n, by strips of columns and chunks of rows.
Status ReduceRowsOf(const Step& s, const char* in, int64_t outer, int64_t n,
                    int64_t inner, char* out) {
  const int64_t strips = (inner + kReduceStrip - 1) / kReduceStrip;
  // Strips of equal width.
  const int64_t strip = (inner + strips - 1) / strips;
  // Row chunks only where outer and strips give too few tasks.
  int64_t chunk = std::max<int64_t>(n, 1);
  if (outer * strips < 16 && n * inner > 1 << 15) {
    // About 32 tasks, of 16,384 elements at least.
    const int64_t wanted = std::min<int64_t>(
        (32 + outer * strips - 1) / (outer * strips), n * inner >> 14);
    chunk = std::max<int64_t>(kReduceRows, (n + wanted - 1) / wanted);
    // Whole blocks of rows, so that blocks lie the same with one chunk as with
    // many.
    chunk = (chunk + kReduceRows - 1) / kReduceRows * kReduceRows;
  }
  const int64_t chunks = n == 0 ? 1 : (n + chunk - 1) / chunk;
  Tensor parts;
  char* to = out;
  if (chunks > 1) {
    HR_ASSIGN_OR_RETURN(
        parts, Tensor::Allocate(s.loops.out, Shape{outer, chunks, inner}));
    to = static_cast<char*>(parts.raw());
  }
  const int64_t tasks = outer * chunks * strips;
  std::atomic<bool> failed{false};
  ParallelFor(
      tasks, chunk * strip * s.in_size * kNsPerByte,
      [&](int64_t begin, int64_t end) {
        // A task's own: levels of the tree of sums.
        auto scratch = Tensor::Allocate(s.loops.out, Shape{64, kReduceStrip});
        if (!scratch.ok()) {
          // Loops give no status: told behind it.
          failed = true;
          return;
        }
        for (int64_t t = begin; t < end; ++t) {
          const int64_t j = t % strips * strip, part = t / strips;
          const int64_t o = part / chunks, row = part % chunks * chunk;
          // Rounding up may leave the last strip empty.
          if (j >= inner) continue;
          s.loops.rows(in + ((o * n + row) * inner + j) * s.in_size, inner,
                       std::min(chunk, n - row), std::min(strip, inner - j),
                       to + (part * inner + j) * s.out_size, scratch->raw());
        }
      });
  if (failed) return ResourceExhausted("out of memory in a reduction");
  if (chunks == 1) return OkStatus();
  return ReduceRowsOf(Step(Joining(s.r), s.loops.out), to, outer, chunks, inner,
                      out);
}

// Few columns: several rows are taken as one, whose sums are then joined.
Status ReduceNarrow(const Step& s, const char* in, int64_t n, int64_t inner,
                    char* out) {
  // Several rows as one of 128 columns, a vector's width or more.
  const int64_t group = 128 / inner, whole = n / group, rest = n % group;
  HR_ASSIGN_OR_RETURN(Tensor parts,
                      Tensor::Allocate(s.loops.out, Shape{group + 1, inner}));
  char* to = static_cast<char*>(parts.raw());
  HR_RETURN_IF_ERROR(ReduceRowsOf(s, in, 1, whole, group * inner, to));
  HR_RETURN_IF_ERROR(ReduceRowsOf(s, in + whole * group * inner * s.in_size, 1,
                                  rest, inner,
                                  to + group * inner * s.out_size));
  return ReduceRowsOf(Step(Joining(s.r), s.loops.out), to, 1, group + 1, inner,
                      out);
}

}  // namespace

bool IsOneRun(int64_t outer, int64_t n) {
  return outer >= 16 || FixedBlocks(n) <= 4;
}

Status ReduceMiddle(Reduction r, DType dtype, const void* in, int64_t outer,
                    int64_t n, int64_t inner, void* out) {
  const Step s(r, dtype);
  if (s.loops.runs == nullptr) {
    return Unimplemented("no such reduction of ", DTypeName(dtype));
  }
  if (outer == 0 || inner == 0) return OkStatus();
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  // The neutral element for each result.
  if (n == 0) {
    s.loops.runs(from, 0, outer * inner, to);
    return OkStatus();
  }
  if (inner == 1) return ReduceRunsOf(s, from, outer, n, to);
  if (outer == 1 && inner < 32 && n >= 256) {
    return ReduceNarrow(s, from, n, inner, to);
  }
  return ReduceRowsOf(s, from, outer, n, inner, to);
}

Status Reduce(Reduction r, const Tensor& in, absl::Span<const bool> reduced,
              void* out) {
  // Neighbours of one kind are one dimension; sizes of 1 do not count.
  absl::InlinedVector<int64_t, 8> sizes;
  absl::InlinedVector<bool, 8> gone;
  for (int i = 0; i < in.rank(); ++i) {
    if (in.dim(i) == 1) continue;
    if (!gone.empty() && gone.back() == reduced[i]) {
      sizes.back() *= in.dim(i);
    } else {
      sizes.push_back(in.dim(i));
      gone.push_back(reduced[i]);
    }
  }
  DType dtype = in.dtype();
  const void* from = in.raw();
  Tensor part;
  while (true) {
    int last = static_cast<int>(gone.size()) - 1, others = 0;
    // The innermost group first: what it leaves is small.
    while (last >= 0 && !gone[last]) --last;
    for (int i = 0; i < last; ++i) others += gone[i];
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
      if (i < last) outer *= sizes[i];
      if (i > last) inner *= sizes[i];
    }
    const int64_t n = last >= 0 ? sizes[last] : 1;
    // Nothing to reduce: a copy, as runs of one element.
    if (last < 0) std::swap(outer, inner);
    if (others == 0) {
      return ReduceMiddle(r, dtype, from, outer, n, inner, out);
    }
    // Between two steps the wide type is kept.
    const DType next = LoopsForReduction(r, dtype).out;
    if (next == DType::kInvalid) {
      return Unimplemented("no such reduction of ", DTypeName(dtype));
    }
    HR_ASSIGN_OR_RETURN(Tensor to, Tensor::Allocate(next, Shape{outer, inner}));
    HR_RETURN_IF_ERROR(ReduceMiddle(r, dtype, from, outer, n, inner, to.raw()));
    part = std::move(to);
    from = part.raw();
    dtype = next;
    r = Joining(r);
    sizes.erase(sizes.begin() + last);
    gone.erase(gone.begin() + last);
    // The neighbours of what went are both kept: one dimension again.
    if (last > 0 && last < static_cast<int>(sizes.size())) {
      sizes[last - 1] *= sizes[last];
      sizes.erase(sizes.begin() + last);
      gone.erase(gone.begin() + last);
    }
  }
}

}  // namespace headrace
