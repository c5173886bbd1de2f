#include "ops/array/box_call.h"

#include <cstring>

#include "op/passes/copy_piece.h"

namespace headrace {
namespace {

// Returns the place behind what it wrote.
char* CopyBox(const BoxCall& b, size_t dim, const char* from, char* to) {
  if (dim == b.box.size()) {
    CopyPiece(to, from, b.run);
    return to + b.run;
  }
  const BoxCall::Dim& d = b.box[dim];
  for (int64_t i = 0; i < d.size; ++i) {
    to = CopyBox(b, dim + 1, from + i * d.step, to);
  }
  return to;
}

// The index in [0, limit), else false.
inline bool Inside(const BoxCall& b, int64_t limit, int64_t* index) {
  if (b.from_end && *index < 0) *index += limit;
  // As unsigned, a negative index is larger than any limit.
  return static_cast<uint64_t>(*index) < static_cast<uint64_t>(limit);
}

template <typename I>
void RunBox(BoundCall& c) {
  const BoxCall& b = *static_cast<const BoxCall*>(c.loop);
  const I* at = static_cast<const I*>(c.in[1]);
  int64_t offset = b.first;
  bool inside = true;
  for (const BoxCall::Index& i : b.indices) {
    auto index = static_cast<int64_t>(at[i.place]);
    if (!Inside(b, i.limit, &index)) {
      inside = false;
      break;
    }
    offset += index * i.step;
  }
  if (inside) [[likely]] {
    CopyBox(b, 0, static_cast<const char*>(c.in[0]) + offset,
            static_cast<char*>(c.out));
  } else {
    c.error = 1;
  }
  RunNext(c);
}

// One index, and one piece of `kBytes`, or of n.
template <typename I, int kBytes>
void RunPiece(BoundCall& c) {
  const BoxCall& b = *static_cast<const BoxCall*>(c.loop);
  const BoxCall::Index& i = b.indices[0];
  auto index = static_cast<int64_t>(static_cast<const I*>(c.in[1])[i.place]);
  if (Inside(b, i.limit, &index)) [[likely]] {
    std::memcpy(c.out,
                static_cast<const char*>(c.in[0]) + b.first + index * i.step,
                kBytes > 0 ? kBytes : c.n);
  } else {
    c.error = 1;
  }
  RunNext(c);
}

template <typename I>
void (*RunFor(const BoxCall& b))(BoundCall&) {
  if (b.indices.size() != 1 || !b.box.empty()) return RunBox<I>;
  return b.run == 4   ? RunPiece<I, 4>
         : b.run == 8 ? RunPiece<I, 8>
                      : RunPiece<I, 0>;
}

}  // namespace

void BoxCall::BindAs(DType index, BoundCall* call) {
  index_type_ = index;
  // What lies in one piece is copied as one.
  while (!box.empty() && (box.back().size == 1 || box.back().step == run)) {
    run *= box.back().size;
    box.pop_back();
  }
  call->n = run;
  call->loop = this;
  call->run = index == DType::kInt64   ? RunFor<int64_t>(*this)
              : index == DType::kInt16 ? RunFor<int16_t>(*this)
                                       : RunFor<int32_t>(*this);
}

Status BoxCall::Failure(const BoundCall& call) const {
  const Status s = Refusal(Tensor::Borrow(index_type_, indices_shape_,
                                          const_cast<void*>(call.in[1])));
  return s.ok() ? Internal("an index within its bounds was refused") : s;
}

}  // namespace headrace
