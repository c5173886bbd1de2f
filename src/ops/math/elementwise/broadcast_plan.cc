#include "ops/math/elementwise/broadcast_plan.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"

namespace headrace {
namespace {

// Rows below this many elements are gathered into tiles of about kTile.
constexpr int64_t kShortRow = 48;
// Elements: a tile of each operand and of the result lie in the first cache (16
// KiB each for the largest elements, complex128).
constexpr int64_t kTile = 1024;
constexpr size_t kLargestElement = 16;

// Strides of `s` in the dimensions of `out`: 0 where repeated.
absl::InlinedVector<int64_t, 6> StridesIn(const Shape& s, const Shape& out) {
  absl::InlinedVector<int64_t, 6> strides(out.rank(), 0);
  int64_t step = 1;
  for (int i = s.rank() - 1, o = out.rank() - 1; i >= 0; --i, --o) {
    // A stride of 0 repeats the one element.
    strides[o] = s[i] == 1 ? 0 : step;
    step *= s[i];
  }
  return strides;
}

// Lays `rows` rows, `step` elements apart, out one after another.
template <typename Word, int kInner>
void SpreadRows(const Word* from, int64_t step, int64_t rows, Word* to) {
  for (int64_t r = 0; r < rows; ++r, from += step, to += kInner) {
    for (int i = 0; i < kInner; ++i) to[i] = from[0];
  }
}

// The same for the rows that `walker` names.
template <typename Word>
void GatherRows(const BroadcastPlan& plan, int operand, const char* data,
                RowWalker walker, int64_t rows, char* tile) {
  const int64_t inner = plan.inner();
  // A row of one element repeated: the tile has it laid out.
  const bool repeat = plan.inner_stride(operand) == 0;
  const Word* from = reinterpret_cast<const Word*>(data);
  Word* to = reinterpret_cast<Word*>(tile);
  // Rows of 2 to 4 elements come from channels of images, coordinates, pairs:
  // their loops are unrolled by the constant.
  if (repeat && plan.rank() == 2 && inner <= 4) {
    const int64_t step = plan.stride(operand, 0);
    from += walker.offset(operand);
    if (inner == 2) return SpreadRows<Word, 2>(from, step, rows, to);
    if (inner == 3) return SpreadRows<Word, 3>(from, step, rows, to);
    if (inner == 4) return SpreadRows<Word, 4>(from, step, rows, to);
  }
  for (int64_t r = 0; r < rows; ++r, to += inner) {
    const Word* row = from + walker.offset(operand);
    if (repeat) {
      for (int64_t i = 0; i < inner; ++i) to[i] = row[0];
    } else {
      for (int64_t i = 0; i < inner; ++i) to[i] = row[i];
    }
    walker.Next();
  }
}

struct Word16 {
  uint64_t a, b;
};

void Gather(const BroadcastPlan& plan, int operand, const BroadcastOperand& o,
            const RowWalker& walker, int64_t rows, char* tile) {
  const char* data = static_cast<const char*>(o.data);
  // Only bytes are moved, so one loop a size serves all types.
  switch (o.element_size) {
    case 1:
      return GatherRows<uint8_t>(plan, operand, data, walker, rows, tile);
    case 2:
      return GatherRows<uint16_t>(plan, operand, data, walker, rows, tile);
    case 4:
      return GatherRows<uint32_t>(plan, operand, data, walker, rows, tile);
    case 8:
      return GatherRows<uint64_t>(plan, operand, data, walker, rows, tile);
    default:
      return GatherRows<Word16>(plan, operand, data, walker, rows, tile);
  }
}

class Runner {
 public:
  Runner(const BroadcastPlan& plan, absl::Span<const BroadcastOperand> operands,
         void* out, size_t out_size,
         absl::FunctionRef<void(const BroadcastSpan&)> loop)
      : plan_(plan),
        operands_(operands),
        out_(static_cast<char*>(out)),
        out_size_(out_size),
        loop_(loop) {}

  // Elements [begin, end) of the output, row by row.
  void Rows(int64_t begin, int64_t end) const {
    const int64_t inner = plan_.inner();
    int64_t row = begin / inner, column = begin % inner;
    RowWalker walker(plan_, row);
    BroadcastSpan span;
    span.repeated = 0;
    for (int k = 0; k < plan_.num_operands(); ++k) {
      // The same for all rows: whether an operand is one element within a row
      // depends on its stride alone.
      if (plan_.inner_stride(k) == 0) span.repeated |= 1 << k;
    }
    while (begin < end) {
      // A thread's part may begin and end amid a row.
      span.n = std::min(inner - column, end - begin);
      span.out = out_ + begin * out_size_;
      for (int k = 0; k < plan_.num_operands(); ++k) {
        span.operands[k] =
            At(k, walker.offset(k) + column * plan_.inner_stride(k));
      }
      loop_(span);
      begin += span.n;
      column = 0;
      walker.Next();
    }
  }

  // Tiles [begin, end) of `tile_rows` rows each.
  void Tiles(int64_t tile_rows, int64_t begin, int64_t end) const {
    // On the stack: the tiles of all operands together are 48 KiB at most for
    // three.
    alignas(
        64) char memory[BroadcastPlan::kMaxOperands][kTile * kLargestElement];
    const int64_t inner = plan_.inner();
    bool filled[BroadcastPlan::kMaxOperands] = {};
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t * tile_rows;
      const int64_t rows = std::min(tile_rows, plan_.rows() - row);
      const RowWalker walker(plan_, row);
      BroadcastSpan span;
      span.n = rows * inner;
      span.out = out_ + row * inner * out_size_;
      span.repeated = 0;
      for (int k = 0; k < plan_.num_operands(); ++k) {
        // An operand that is not broadcast is read where it lies.
        if (plan_.whole(k)) {
          span.operands[k] = At(k, row * inner);
          continue;
        }
        span.operands[k] = memory[k];
        // One element for everything needs no tile, nor does the loop.
        if (plan_.same_rows(k) && plan_.inner_stride(k) == 0) {
          span.repeated |= 1 << k;
          span.operands[k] = At(k, 0);
        } else if (!plan_.same_rows(k) || !filled[k]) {
          // An operand that is the same for every row is laid out once; the
          // last tile may have fewer rows, which are a part of it.
          Gather(plan_, k, operands_[k], walker, rows, memory[k]);
          filled[k] = true;
        }
      }
      loop_(span);
    }
  }

 private:
  const char* At(int k, int64_t element) const {
    return static_cast<const char*>(operands_[k].data) +
           element * operands_[k].element_size;
  }

  const BroadcastPlan& plan_;
  absl::Span<const BroadcastOperand> operands_;
  char* const out_;
  const size_t out_size_;
  const absl::FunctionRef<void(const BroadcastSpan&)> loop_;
};

}  // namespace

BroadcastPlan::BroadcastPlan(const Shape& out,
                             absl::Span<const Shape* const> operands)
    : num_operands_(static_cast<int>(operands.size())) {
  std::array<absl::InlinedVector<int64_t, 6>, kMaxOperands> all;
  for (int k = 0; k < num_operands_; ++k) all[k] = StridesIn(*operands[k], out);
  // Innermost first, merging a dimension into the one inside it where every
  // operand goes on from it in one stride.
  for (int i = out.rank() - 1; i >= 0; --i) {
    // Dimensions of one element change nothing.
    if (out[i] == 1) continue;
    bool merge = !dims_.empty();
    for (int k = 0; merge && k < num_operands_; ++k) {
      merge = all[k][i] == strides_[k].back() * dims_.back();
    }
    if (merge) {
      // The merged dimension keeps the inner stride.
      dims_.back() *= out[i];
      continue;
    }
    dims_.push_back(out[i]);
    for (int k = 0; k < num_operands_; ++k) strides_[k].push_back(all[k][i]);
  }
  // One element in all: a row of one.
  if (dims_.empty()) {
    dims_.push_back(1);
    for (int k = 0; k < num_operands_; ++k) strides_[k].push_back(1);
  }
  std::reverse(dims_.begin(), dims_.end());
  for (int i = 0; i + 1 < rank(); ++i) rows_ *= dims_[i];
  for (int k = 0; k < num_operands_; ++k) {
    std::reverse(strides_[k].begin(), strides_[k].end());
    int64_t step = 1;
    whole_[k] = same_rows_[k] = true;
    for (int i = rank() - 1; i >= 0; --i) {
      whole_[k] &= strides_[k][i] == step;
      // Without a stride in any outer dimension all rows are the same.
      if (i + 1 < rank()) same_rows_[k] &= strides_[k][i] == 0;
      step *= dims_[i];
    }
  }
}

RowWalker::RowWalker(const BroadcastPlan& plan, int64_t row)
    : plan_(plan), at_(plan.rank() - 1, 0) {
  for (int i = plan.rank() - 2; i >= 0; --i) {
    at_[i] = row % plan.dim(i);
    row /= plan.dim(i);
    for (int k = 0; k < plan.num_operands(); ++k) {
      offsets_[k] += at_[i] * plan.stride(k, i);
    }
  }
}

void RowWalker::Next() {
  for (int i = plan_.rank() - 2; i >= 0; --i) {
    const bool wraps = ++at_[i] == plan_.dim(i);
    for (int k = 0; k < plan_.num_operands(); ++k) {
      // On wrapping the offset goes back by all steps but the one not taken.
      offsets_[k] +=
          plan_.stride(k, i) * (wraps ? 1 - plan_.dim(i) : int64_t{1});
    }
    if (!wraps) return;
    at_[i] = 0;
  }
}

void RunBroadcast(const BroadcastPlan& plan,
                  absl::Span<const BroadcastOperand> operands, void* out,
                  size_t out_element_size, bool plain, double ns_per_element,
                  absl::FunctionRef<void(const BroadcastSpan&)> loop) {
  const Runner runner(plan, operands, out, out_element_size, loop);
  // Calling a loop a row costs more than short rows themselves; tiles make long
  // rows of many. Objects (strings) cannot be gathered as bytes.
  if (plain && plan.inner() < kShortRow && plan.rows() > 1) {
    const int64_t tile_rows = kTile / plan.inner();
    const int64_t tiles = (plan.rows() + tile_rows - 1) / tile_rows;
    // The copy into tiles costs about as much again as a cheap op.
    ParallelFor(tiles, (ns_per_element + 1) * tile_rows * plan.inner(),
                [&](int64_t begin, int64_t end) {
                  runner.Tiles(tile_rows, begin, end);
                });
    return;
  }
  // About 5 ns a row for the walker and the call.
  ParallelFor(plan.rows() * plan.inner(), ns_per_element + 5.0 / plan.inner(),
              [&](int64_t begin, int64_t end) { runner.Rows(begin, end); });
}

}  // namespace headrace
