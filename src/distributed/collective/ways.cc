#include "distributed/collective/ways.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "distributed/group/parts.h"

namespace headrace::distributed {
namespace {

// gRPC sends messages of a megabyte fastest; a stream is cut into some parts,
// so that parts are worked on while others are on their way.
constexpr int64_t kLongestPart = 1 << 20, kShortestPart = 64 << 10,
                  kPartsAChunk = 4;

// Ends a turn for its member, whatever became of it.
class TurnScope {
 public:
  explicit TurnScope(std::shared_ptr<Turn> turn) : turn_(std::move(turn)) {}
  ~TurnScope() { turn_->Leave(); }
  TurnScope(const TurnScope&) = delete;
  Turn* operator->() const { return turn_.get(); }

 private:
  const std::shared_ptr<Turn> turn_;
};

// f(range, is_last) for each part of a range, of whole elements, until one
// fails.
template <typename F>
Status ForParts(Range range, int64_t element, F f) {
  int64_t part =
      std::clamp(range.size() / kPartsAChunk, kShortestPart, kLongestPart);
  part = std::max<int64_t>(part / element, 1) * element;
  for (int64_t at = range.begin; at < range.end; at += part) {
    const int64_t end = std::min(at + part, range.end);
    HR_RETURN_IF_ERROR(f(Range{at, end}, end == range.end));
  }
  return OkStatus();
}

Status GiveParts(Turn& turn, int to, const Source& source, Range range,
                 int64_t element, bool last) {
  return ForParts(range, element, [&](Range r, bool ends) {
    turn.Give(to, source.Part(r.begin, r.size()), last && ends);
    return OkStatus();
  });
}

// --- at once ---

// What each member brings, by rank.
StatusOr<std::vector<Bytes>> SwapWithAll(const Meeting& m, const Bytes& own) {
  std::set<int> lower;
  for (int q = 0; q < m.rank; ++q) lower.insert(q);
  HR_ASSIGN_OR_RETURN(auto begun, m.begin(0, lower));
  const TurnScope turn(begun);
  for (const int q : lower) turn->Give(q, own, true);
  for (int q = m.rank + 1; q < m.size; ++q) {
    turn->Ask(q, m.channel(q), /*swaps=*/true, own);
  }
  std::vector<Bytes> all(m.size);
  all[m.rank] = own;
  for (int q = 0; q < m.size; ++q) {
    if (q == m.rank) continue;
    HR_ASSIGN_OR_RETURN(all[q], turn->Take(q));
  }
  return all;
}

StatusOr<Tensor> TensorOf(const Bytes& bytes, DType dtype, const Shape& shape) {
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  HR_RETURN_IF_ERROR(CheckSize(bytes, static_cast<int64_t>(t.bytes())));
  CopyTo(bytes, static_cast<char*>(t.raw()));
  return t;
}

StatusOr<Tensor> AtOnce(const Meeting& m) {
  const Tensor& input = m.call.input;
  HR_ASSIGN_OR_RETURN(
      const std::vector<Bytes> all,
      SwapWithAll(m, Bytes(std::string(static_cast<const char*>(input.raw()),
                                       input.bytes()))));
  std::vector<Tensor> inputs(m.size);
  for (int q = 0; q < m.size; ++q) {
    HR_ASSIGN_OR_RETURN(inputs[q],
                        TensorOf(all[q], input.dtype(), input.shape()));
  }
  HR_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                      CollectiveResults(m.call, inputs));
  return std::move(results[m.rank]);
}

// --- round a ring ---

// Sums of one chunk a member, each begun by the one behind its own and handed
// on: the order is that of ranks, and one member computes what all get.
class Ring {
 public:
  explicit Ring(const Meeting& m)
      : m_(m),
        input_(static_cast<const char*>(m.call.input.raw())),
        element_(static_cast<int64_t>(DTypeSize(m.call.dtype))),
        count_(m.call.input.num_elements()),
        right_((m.rank + 1) % m.size),
        left_(static_cast<int>(Mod(m.rank - 1, m.size))) {}

  StatusOr<Tensor> Run(bool scatters) {
    Shape shape = m_.call.input.shape();
    if (scatters) shape.set_dim(0, shape[0] / m_.size);
    HR_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(m_.call.dtype, shape));
    HR_ASSIGN_OR_RETURN(auto begun, m_.begin(0, {right_}));
    const TurnScope turn(begun);
    turn->Ask(left_, m_.channel(left_), /*swaps=*/false, {});
    const Source all = SourceOf(result);
    char* const to = static_cast<char*>(result.raw());
    const Range first = Chunk(m_.rank - 1);
    HR_ASSIGN_OR_RETURN(const Source kept, KeptSource(m_.call.input, first));
    HR_RETURN_IF_ERROR(GiveParts(*begun, right_, kept, first, element_,
                                 scatters && m_.size == 2));
    for (int step = 0; step < m_.size - 1; ++step) {
      const Range chunk = Chunk(m_.rank - step - 2);
      const bool done = step == m_.size - 2;
      Source partial = all;
      char* into = to + chunk.begin;
      if (scatters) {
        into = to;
        if (!done) {
          HR_ASSIGN_OR_RETURN(
              const Tensor sums,
              Tensor::Allocate(m_.call.dtype, Shape{chunk.size() / element_}));
          partial = SourceOf(sums);
          into = static_cast<char*>(sums.raw());
        }
      }
      partial.data = into - chunk.begin;
      HR_RETURN_IF_ERROR(Merge(*begun, chunk, partial, into, done,
                               /*hands_on=*/!(scatters && done),
                               scatters && step == m_.size - 3));
    }
    if (scatters) return result;
    for (int step = 0; step < m_.size - 1; ++step) {
      HR_RETURN_IF_ERROR(Collect(*begun, Chunk(m_.rank - step - 1), all, to,
                                 /*hands_on=*/step < m_.size - 2,
                                 step == m_.size - 3));
    }
    return result;
  }

 private:
  Range Chunk(int64_t of) const {
    const int64_t c = Mod(of, m_.size);
    return {count_ * c / m_.size * element_,
            count_ * (c + 1) / m_.size * element_};
  }

  // What came of a chunk, merged with the member's own; handed on.
  Status Merge(Turn& turn, Range chunk, const Source& partial, char* into,
               bool done, bool hands_on, bool last) {
    return ForParts(chunk, element_, [&](Range r, bool ends) -> Status {
      HR_ASSIGN_OR_RETURN(const Bytes part, turn.Take(left_));
      HR_RETURN_IF_ERROR(CheckSize(part, r.size()));
      char* at = into + (r.begin - chunk.begin);
      const char* own = input_ + r.begin;
      ForBlocks(part, element_, [&](const char* came, int64_t n) {
        MergeElements(m_.call, came, own, at, n);
        if (done) FinishElements(m_.call, m_.size, at, n);
        at += n * element_;
        own += n * element_;
      });
      if (hands_on) {
        // With two members what follows is what the other collects.
        const bool closes = ends && (last || (done && m_.size == 2));
        turn.Give(right_, partial.Part(r.begin, r.size()), closes);
      }
      return OkStatus();
    });
  }

  Status Collect(Turn& turn, Range chunk, const Source& all, char* to,
                 bool hands_on, bool last) {
    return ForParts(chunk, element_, [&](Range r, bool ends) -> Status {
      HR_ASSIGN_OR_RETURN(const Bytes part, turn.Take(left_));
      HR_RETURN_IF_ERROR(CheckSize(part, r.size()));
      CopyTo(part, to + r.begin);
      if (hands_on) {
        turn.Give(right_, all.Part(r.begin, r.size()), last && ends);
      }
      return OkStatus();
    });
  }

  const Meeting& m_;
  const char* const input_;
  const int64_t element_, count_;
  const int right_, left_;
};

// --- in streams ---

// Each member sends each other one a range of bytes.
StatusOr<Tensor> InStreams(const Meeting& m) {
  const bool gathers = m.call.kind == CollectiveKind::kGather;
  const Tensor& input = m.call.input;
  HR_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::Allocate(m.call.dtype, m.call.shape));
  char* const to = static_cast<char*>(result.raw());
  const auto size =
      static_cast<int64_t>(input.bytes()) / (gathers ? 1 : m.size);
  const int64_t mine = size * m.rank;
  std::memcpy(to + mine,
              static_cast<const char*>(input.raw()) + (gathers ? 0 : mine),
              size);
  Source source = SourceOf(result);
  if (!gathers) {
    HR_ASSIGN_OR_RETURN(
        source, KeptSource(input, {0, static_cast<int64_t>(input.bytes())}));
  }
  std::set<int> others;
  for (int q = 0; q < m.size; ++q) {
    if (q != m.rank) others.insert(q);
  }
  HR_ASSIGN_OR_RETURN(auto begun, m.begin(0, others));
  const TurnScope turn(begun);
  constexpr int64_t kBytes = 1;  // of what is not looked at
  for (int i = 1; i < m.size; ++i) {
    const int q = (m.rank + i) % m.size;
    turn->Ask(q, m.channel(q), /*swaps=*/false, {});
    const int64_t at = gathers ? mine : size * q;
    HR_RETURN_IF_ERROR(
        GiveParts(*begun, q, source, {at, at + size}, kBytes, true));
  }
  for (int i = 1; i < m.size; ++i) {
    const int q = (m.rank + i) % m.size;
    HR_RETURN_IF_ERROR(ForParts(
        {size * q, size * (q + 1)}, kBytes, [&](Range r, bool) -> Status {
          HR_ASSIGN_OR_RETURN(const Bytes part, turn->Take(q));
          HR_RETURN_IF_ERROR(CheckSize(part, r.size()));
          CopyTo(part, to + r.begin);
          return OkStatus();
        }));
  }
  return result;
}

// --- from one to all ---

// First who gives, and the tensor where it goes at once; else it is handed on
// from rank to rank.
StatusOr<Tensor> FromOne(const Meeting& m) {
  const Tensor& input = m.call.input;
  const bool gives = input.has_buffer();
  const Tensor described(m.call.dtype, m.call.shape);
  const bool at_once = GoesAtOnce(described.bytes(), m.size);
  std::string own(gives ? "S" : "R");
  if (gives && at_once) {
    own.append(static_cast<const char*>(input.raw()), input.bytes());
  }
  HR_ASSIGN_OR_RETURN(const std::vector<Bytes> all,
                      SwapWithAll(m, Bytes(std::move(own))));
  std::vector<int> sources;
  for (int q = 0; q < m.size; ++q) {
    if (all[q].size() > 0 && all[q].pieces()[0].data[0] == 'S') {
      sources.push_back(q);
    }
  }
  HR_RETURN_IF_ERROR(CheckSources(m.call.instance_key, sources, m.size));
  const int source = sources[0];
  HR_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::Allocate(m.call.dtype, m.call.shape));
  char* const to = static_cast<char*>(result.raw());
  if (gives) std::memcpy(to, input.raw(), input.bytes());
  if (at_once) {
    if (gives) return result;
    const std::string flat = all[source].Flat();
    HR_RETURN_IF_ERROR(
        CheckSize(all[source], static_cast<int64_t>(result.bytes()) + 1));
    std::memcpy(to, flat.data() + 1, result.bytes());
    return result;
  }
  const int place = static_cast<int>(Mod(m.rank - source, m.size));
  const bool hands_on = place < m.size - 1;
  const int next = (m.rank + 1) % m.size;
  const int before = static_cast<int>(Mod(m.rank - 1, m.size));
  HR_ASSIGN_OR_RETURN(
      auto begun, m.begin(1, hands_on ? std::set<int>{next} : std::set<int>{}));
  const TurnScope turn(begun);
  const Range whole{0, static_cast<int64_t>(result.bytes())};
  const Source kept = SourceOf(result);
  constexpr int64_t kBytes = 1;
  if (gives) {
    HR_RETURN_IF_ERROR(GiveParts(*begun, next, kept, whole, kBytes, true));
    return result;
  }
  turn->Ask(before, m.channel(before), /*swaps=*/false, {});
  HR_RETURN_IF_ERROR(ForParts(whole, kBytes, [&](Range r, bool ends) -> Status {
    HR_ASSIGN_OR_RETURN(const Bytes part, turn->Take(before));
    HR_RETURN_IF_ERROR(CheckSize(part, r.size()));
    CopyTo(part, to + r.begin);
    if (hands_on) turn->Give(next, kept.Part(r.begin, r.size()), ends);
    return OkStatus();
  }));
  return result;
}

}  // namespace

bool GoesAtOnce(size_t bytes, int size) {
  return bytes * static_cast<size_t>(size - 1) <= kSwapped;
}

StatusOr<Tensor> GoTogether(const Meeting& m) {
  if (m.call.kind == CollectiveKind::kBroadcast) return FromOne(m);
  if (GoesAtOnce(m.call.input.bytes(), m.size)) return AtOnce(m);
  if (m.call.kind == CollectiveKind::kGather ||
      m.call.kind == CollectiveKind::kAllToAll) {
    return InStreams(m);
  }
  return Ring(m).Run(m.call.kind == CollectiveKind::kReduceScatter);
}

}  // namespace headrace::distributed
