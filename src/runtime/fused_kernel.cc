#include "runtime/fused_kernel.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "base/threads.h"

namespace headrace {
namespace {

using UnaryFn = void (*)(const void*, void*, int64_t);
using BinaryFn = void (*)(const void*, const void*, void*, int64_t, int);

// Elements: 2 KiB of floats a register, so that a chain of ten lies in the
// first cache, and the call of a loop is paid once for 512.
constexpr int64_t kTile = 512;
constexpr int64_t kShortRow = 96;  // elements; shorter rows share a tile
constexpr int64_t kLine = 64;      // bytes of a cache line

template <typename T>
void Repeat(const void* x, void* y, int64_t n) {
  T v;
  std::memcpy(&v, x, sizeof v);
  std::fill_n(static_cast<T*>(y), n, v);
}

struct Wide {
  uint64_t a, b;
};

// n copies of one element.
void RepeatElement(const void* x, void* y, int64_t n, int bytes) {
  switch (bytes) {
    case 1:
      return Repeat<uint8_t>(x, y, n);
    case 2:
      return Repeat<uint16_t>(x, y, n);
    case 4:
      return Repeat<uint32_t>(x, y, n);
    case 8:
      return Repeat<uint64_t>(x, y, n);
    default:
      return Repeat<Wide>(x, y, n);
  }
}

}  // namespace

bool LayoutOf(const Shape& operand, const Shape& shape, Layout* layout,
              int64_t* inner) {
  int64_t count = operand.num_elements(), all = shape.num_elements();
  *inner = 0;
  int lead = shape.rank() - operand.rank();
  if (lead < 0) return false;
  if (count == all) {
    *layout = Layout::kFull;
    return true;
  }
  if (count == 1) {
    *layout = Layout::kScalar;
    return true;
  }
  // A row: equal trailing dims behind ones. A column: equal leading dims
  // before ones.
  auto dim = [&](int i) { return i < lead ? 1 : operand[i - lead]; };
  int first = 0, last = shape.rank();
  while (first < shape.rank() && dim(first) == 1) ++first;
  while (last > 0 && dim(last - 1) == 1) --last;
  bool row = true, column = true;
  for (int i = first; i < shape.rank(); ++i) row = row && dim(i) == shape[i];
  for (int i = 0; i < last; ++i) column = column && dim(i) == shape[i];
  if (row) {
    *layout = Layout::kRow;
    *inner = count;
    return true;
  }
  if (column) {
    *layout = Layout::kColumn;
    *inner = all / count;
    return true;
  }
  return false;
}

// One thread's registers and where each currently points.
struct FusedKernel::Tile {
  std::vector<const char*> at;  // per register
  std::vector<char> scalar;     // per register, for this tile
  std::vector<char> memory;     // all registers' own space
  const int64_t* place;
  Given given;
  int64_t given_begin;
  char* own(int r) { return memory.data() + place[r]; }
};

FusedKernel::FusedKernel(std::vector<Input> inputs,
                         std::vector<Instruction> code, int registers,
                         int64_t rows, int64_t inner, double cost)
    : inputs_(std::move(inputs)),
      code_(std::move(code)),
      registers_(registers),
      rows_(rows),
      inner_(inner),
      cost_(cost) {
  for (const Input& in : inputs_) {
    by_rows_ = by_rows_ || in.layout == Layout::kRow ||
               in.layout == Layout::kColumn || in.layout == Layout::kPart;
  }
  for (const Instruction& i : code_) {
    reduces_ = reduces_ || i.reducer;
    by_rows_ = by_rows_ || i.joined >= 0;
  }
  by_rows_ = by_rows_ || reduces_;
  expands_ = by_rows_ && !reduces_ && inner_ < kShortRow;
  tile_ = reduces_   ? inner_
          : expands_ ? std::max<int64_t>(1, kTile / inner_) * inner_
                     : kTile;
  AssignPlaces();
}

void FusedKernel::AssignPlaces() {
  int64_t widest = 1;
  for (const Input& in : inputs_) widest = std::max<int64_t>(widest, in.bytes);
  for (const Instruction& i : code_) {
    widest = std::max<int64_t>(widest, i.bytes);
  }
  // A line more than needed: places a power of two apart share cache sets.
  const int64_t elements = expands_ ? tile_ : std::min(tile_, rows_ * inner_);
  const int64_t stride =
      (elements * widest + kLine - 1) / kLine * kLine + kLine;
  std::vector<int> last_use(registers_, -1);
  for (size_t i = 0; i < code_.size(); ++i) {
    last_use[code_[i].a] = last_use[code_[i].b] = static_cast<int>(i);
  }
  place_.assign(registers_, -1);
  std::vector<int64_t> free;
  auto take = [&](int r) {
    if (free.empty()) {
      place_[r] = tile_bytes_;
      tile_bytes_ += stride;
    } else {
      place_[r] = free.back();
      free.pop_back();
    }
  };
  const int inputs = static_cast<int>(inputs_.size());
  for (int r = 0; r < inputs; ++r) {
    const Layout layout = inputs_[r].layout;
    if (expands_ && layout != Layout::kFull && layout != Layout::kScalar) {
      take(r);
    }
  }
  for (size_t i = 0; i < code_.size(); ++i) {
    take(code_[i].y);
    for (int16_t r : {code_[i].a, code_[i].b}) {
      if (r < inputs || last_use[r] != static_cast<int>(i)) continue;
      free.push_back(place_[r]);
      last_use[r] = -1;  // once, where a and b are the same
    }
    if (last_use[code_[i].y] < 0) free.push_back(place_[code_[i].y]);
  }
}

uint32_t FusedKernel::in_place_inputs() const {
  size_t stored = 0;
  while (stored < code_.size() && code_[stored].output != 0) ++stored;
  if (stored == code_.size() || code_[stored].column) return 0;
  uint32_t may = 0;
  for (size_t r = 0; r < inputs_.size() && r < 32; ++r) {
    bool read_later = false;
    for (size_t i = stored + 1; i < code_.size(); ++i) {
      read_later = read_later || code_[i].a == static_cast<int16_t>(r) ||
                   code_[i].b == static_cast<int16_t>(r);
    }
    if (inputs_[r].layout == Layout::kFull && !read_later &&
        inputs_[r].bytes == code_[stored].bytes) {
      may |= 1u << r;
    }
  }
  return may;
}

void FusedKernel::LoadInput(const KernelContext& c, Tile& t, int r,
                            int64_t begin, int64_t n) const {
  const Input& in = inputs_[r];
  const char* base = static_cast<const char*>(c.input(r).raw());
  t.scalar[r] = in.layout == Layout::kScalar;
  switch (in.layout) {
    case Layout::kFull:
      t.at[r] = r == t.given.input
                    ? static_cast<const char*>(t.given.elements) +
                          (begin - t.given_begin) * in.bytes
                    : base + begin * in.bytes;
      return;
    case Layout::kScalar:
      t.at[r] = base;
      return;
    case Layout::kRow:
      // A short row was repeated over the whole tile when the range began.
      if (!expands_) t.at[r] = base + begin % inner_ * in.bytes;
      return;
    case Layout::kColumn:
      if (!expands_) {
        t.at[r] = base + begin / inner_ * in.bytes;
        t.scalar[r] = true;
        return;
      }
      for (int64_t i = 0; i < n; i += inner_) {
        RepeatElement(base + (begin + i) / inner_ * in.bytes,
                      t.own(r) + i * in.bytes, inner_, in.bytes);
      }
      t.at[r] = t.own(r);
      return;
    case Layout::kPart: {
      const auto from = [&](int64_t i) {
        return base +
               (i / inner_ * in.width + in.first + i % inner_) * in.bytes;
      };
      if (!expands_) {
        t.at[r] = from(begin);
        return;
      }
      for (int64_t i = 0; i < n; i += inner_) {
        std::memcpy(t.own(r) + i * in.bytes, from(begin + i),
                    inner_ * in.bytes);
      }
      t.at[r] = t.own(r);
      return;
    }
  }
}

// y[0] from all of i.a's row.
void FusedKernel::Reduce(const Instruction& i, Tile& t, void* y,
                         int64_t n) const {
  if (t.scalar[i.a]) {
    // Made of single elements only, so the register has memory of its own.
    RepeatElement(t.at[i.a], t.own(i.a), n, i.bytes);
    t.at[i.a] = t.own(i.a);
    t.scalar[i.a] = false;
  }
  i.reducer->ReduceRow(t.at[i.a], n, y);
}

char* FusedKernel::JoinedAt(const KernelContext& c, const Instruction& i,
                            int64_t begin) const {
  return static_cast<char*>(c.output(i.joined).raw()) +
         (begin / inner_ * i.width + i.first + begin % inner_) * i.bytes;
}

void FusedKernel::Store(const KernelContext& c, const Instruction& i, Tile& t,
                        char* y, int64_t begin, int64_t n) const {
  t.at[i.y] = y;
  t.scalar[i.y] = false;
  if (i.joined < 0) return;
  for (int64_t e = 0; e < n; e += inner_) {
    char* to = JoinedAt(c, i, begin + e);
    if (to != y)
      std::memcpy(to, y + e * i.bytes, std::min(inner_, n) * i.bytes);
  }
}

void FusedKernel::RunTile(const KernelContext& c, Tile& t, int64_t begin,
                          int64_t n) const {
  int inputs = static_cast<int>(inputs_.size());
  for (int r = 0; r < inputs; ++r) LoadInput(c, t, r, begin, n);
  for (const Instruction& i : code_) {
    bool sa = t.scalar[i.a];
    bool sb = i.kind == ElementwiseLoop::kUnary || t.scalar[i.b];
    char* y = i.output >= 0 ? static_cast<char*>(c.output(i.output).raw()) +
                                  (i.column ? begin / inner_ : begin) * i.bytes
              : i.joined >= 0 && !expands_ ? JoinedAt(c, i, begin)
                                           : t.own(i.y);
    if (i.reducer) {
      Reduce(i, t, y, n);
      t.at[i.y] = y;
      t.scalar[i.y] = true;
      continue;
    }
    if (sa && sb) {
      // All operands are one element for this tile: so is the result, unless
      // all of them are to be stored.
      char* one = i.column ? y : t.own(i.y);
      if (i.kind == ElementwiseLoop::kUnary) {
        reinterpret_cast<UnaryFn>(i.fn)(t.at[i.a], one, 1);
      } else {
        reinterpret_cast<BinaryFn>(i.fn)(t.at[i.a], t.at[i.b], one, 1, 0);
      }
      if (i.column) {
        t.at[i.y] = one;
        t.scalar[i.y] = true;
        continue;
      }
      if (i.output >= 0 || i.joined >= 0) {
        RepeatElement(t.own(i.y), y, n, i.bytes);
        Store(c, i, t, y, begin, n);
      } else {
        t.at[i.y] = t.own(i.y);
        t.scalar[i.y] = true;
      }
      continue;
    }
    if (i.kind == ElementwiseLoop::kUnary) {
      reinterpret_cast<UnaryFn>(i.fn)(t.at[i.a], y, n);
    } else {
      reinterpret_cast<BinaryFn>(i.fn)(t.at[i.a], t.at[i.b], y, n,
                                       sa   ? 1
                                       : sb ? 2
                                            : 0);
    }
    Store(c, i, t, y, begin, n);
  }
}

void FusedKernel::RunRange(const KernelContext& c, int64_t begin, int64_t end,
                           Given given) const {
  Tile& t = OwnObject<Tile>();
  if (t.at.size() < static_cast<size_t>(registers_)) {
    t.at.resize(registers_);
    t.scalar.resize(registers_);
  }
  if (t.memory.size() < static_cast<size_t>(tile_bytes_)) {
    t.memory.resize(tile_bytes_);
  }
  t.place = place_.data();
  t.given = given;
  t.given_begin = begin;
  if (expands_) {
    for (size_t r = 0; r < inputs_.size(); ++r) {
      const Input& in = inputs_[r];
      if (in.layout != Layout::kRow) continue;
      for (int64_t i = 0; i < tile_; i += inner_) {
        std::memcpy(t.own(r) + i * in.bytes, c.input(r).raw(),
                    inner_ * in.bytes);
      }
      t.at[r] = t.own(r);
    }
  }
  bool whole_rows = by_rows_ && !expands_;
  for (int64_t i = begin; i < end;) {
    int64_t n = std::min(tile_, end - i);
    if (whole_rows) n = std::min(n, inner_ - i % inner_);
    RunTile(c, t, i, n);
    i += n;
  }
}

Status FusedKernel::Run(KernelContext& c) {
  int64_t total = rows_ * inner_;
  // One tile: handing it on would take longer than running it.
  if (total <= tile_ && !(by_rows_ && !expands_ && total > inner_)) {
    RunRange(c, 0, total, {});
    return OkStatus();
  }
  // Whole rows, so that a row that is reduced is seen by one thread, in one
  // order.
  int64_t unit = by_rows_ ? std::max(inner_, tile_ / inner_ * inner_) : tile_;
  int64_t units = (total + unit - 1) / unit;
  ParallelFor(units, cost_ * unit, [&](int64_t begin, int64_t end) {
    RunRange(c, begin * unit, std::min(total, end * unit), {});
  });
  return OkStatus();
}

}  // namespace headrace
