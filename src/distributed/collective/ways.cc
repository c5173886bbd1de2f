#include "distributed/collective/ways.h"

#include <cstring>
#include <utility>

#include "distributed/collective/course.h"
#include "distributed/group/parts.h"

namespace headrace::distributed {
namespace {

// Ends a turn for its member, whatever became of it.
class TurnScope {
 public:
  explicit TurnScope(std::shared_ptr<Side> turn) : turn_(std::move(turn)) {}
  ~TurnScope() { turn_->Leave(); }
  TurnScope(const TurnScope&) = delete;
  Side* operator->() const { return turn_.get(); }

 private:
  const std::shared_ptr<Side> turn_;
};

// --- at once ---

// What each member brings, by rank.
StatusOr<std::vector<Bytes>> SwapWithAll(const Meeting& m, const Bytes& own) {
  Course course = SwapCourse(m.rank, m.size, static_cast<int64_t>(own.size()));
  HR_ASSIGN_OR_RETURN(auto begun, m.begin(0, course.askers));
  const TurnScope turn(begun);
  std::vector<Bytes> all(m.size);
  all[m.rank] = own;
  Moves moves(std::move(course));
  for (Move move; moves.Next(&move);) {
    const int q = move.peer;
    if (move.what == Move::What::kGive) {
      turn->Give(q, own, move.last);
    } else if (move.what == Move::What::kSwap) {
      turn->Ask(q, /*swaps=*/true, own);
    } else {
      HR_ASSIGN_OR_RETURN(all[q], turn->Take(q));
    }
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

class Ring {
 public:
  Ring(const Meeting& m, bool scatters)
      : m_(m),
        scatters_(scatters),
        input_(static_cast<const char*>(m.call.input.raw())),
        element_(static_cast<int64_t>(DTypeSize(m.call.dtype))) {}

  StatusOr<Tensor> Run() {
    Shape shape = m_.call.input.shape();
    if (scatters_) shape.set_dim(0, shape[0] / m_.size);
    HR_ASSIGN_OR_RETURN(result_, Tensor::Allocate(m_.call.dtype, shape));
    all_ = SourceOf(result_);
    Course course = RingCourse(m_.rank, m_.size, m_.call.input.num_elements(),
                               element_, scatters_);
    HR_ASSIGN_OR_RETURN(auto begun, m_.begin(0, course.askers));
    const TurnScope turn(begun);
    Moves moves(std::move(course));
    for (Move move; moves.Next(&move);) HR_RETURN_IF_ERROR(Do(*begun, move));
    return result_;
  }

 private:
  using What = Move::What;

  Status Do(Side& turn, const Move& move) {
    const Range r = move.range;
    if (move.what == What::kAsk) {
      turn.Ask(move.peer, /*swaps=*/false, {});
      return OkStatus();
    }
    if (r.begin == move.chunk.begin) HR_RETURN_IF_ERROR(BeginChunk(move));
    if (move.what == What::kGive) {
      turn.Give(move.peer, kept_.Part(r.begin, r.size()), move.last);
      return OkStatus();
    }
    HR_ASSIGN_OR_RETURN(const Bytes part, turn.Take(move.peer));
    HR_RETURN_IF_ERROR(CheckSize(part, r.size()));
    char* const at = into_ + (r.begin - move.chunk.begin);
    if (move.what == What::kTake) {
      CopyTo(part, at);
    } else {
      Merge(part, input_ + r.begin, move.what == What::kFinish, at);
    }
    if (move.hands_on >= 0) {
      turn.Give(move.hands_on, kept_.Part(r.begin, r.size()), move.last);
    }
    return OkStatus();
  }

  // Where what comes of a chunk lies, and is handed on from: in the result, but
  // for sums that are another member's to keep.
  Status BeginChunk(const Move& move) {
    if (move.what == What::kGive) {
      HR_ASSIGN_OR_RETURN(kept_, KeptSource(m_.call.input, move.chunk));
      return OkStatus();
    }
    into_ = static_cast<char*>(result_.raw());
    kept_ = all_;
    if (!scatters_) {
      into_ += move.chunk.begin;
    } else if (move.what == What::kMerge) {
      HR_ASSIGN_OR_RETURN(
          const Tensor sums,
          Tensor::Allocate(m_.call.dtype, Shape{move.chunk.size() / element_}));
      kept_ = SourceOf(sums);
      into_ = static_cast<char*>(sums.raw());
    }
    kept_.data = into_ - move.chunk.begin;
    return OkStatus();
  }

  void Merge(const Bytes& part, const char* own, bool finishes, char* at) {
    ForBlocks(part, element_, [&](const char* came, int64_t n) {
      MergeElements(m_.call, came, own, at, n);
      if (finishes) FinishElements(m_.call, m_.size, at, n);
      at += n * element_;
      own += n * element_;
    });
  }

  const Meeting& m_;
  const bool scatters_;
  const char* const input_;
  const int64_t element_;
  Tensor result_;
  Source all_;
  // Of the chunk under way.
  Source kept_;
  char* into_ = nullptr;
};

// --- in streams ---

// The moves of a course of which parts lie in one tensor's memory, where those
// that are given come from `source`.
Status Stream(const Meeting& m, int step, Course course, const Source& source,
              char* to) {
  HR_ASSIGN_OR_RETURN(auto begun, m.begin(step, course.askers));
  const TurnScope turn(begun);
  Moves moves(std::move(course));
  for (Move move; moves.Next(&move);) {
    const Range r = move.range;
    if (move.what == Move::What::kAsk) {
      turn->Ask(move.peer, /*swaps=*/false, {});
    } else if (move.what == Move::What::kGive) {
      turn->Give(move.peer, source.Part(r.begin, r.size()), move.last);
    } else {
      HR_ASSIGN_OR_RETURN(const Bytes part, turn->Take(move.peer));
      HR_RETURN_IF_ERROR(CheckSize(part, r.size()));
      CopyTo(part, to + r.begin);
      if (move.hands_on < 0) continue;
      turn->Give(move.hands_on, source.Part(r.begin, r.size()), move.last);
    }
  }
  return OkStatus();
}

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
  HR_RETURN_IF_ERROR(
      Stream(m, 0, StreamCourse(m.rank, m.size, size, gathers), source, to));
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
  HR_RETURN_IF_ERROR(Stream(m, 1,
                            HandOnCourse(m.rank, m.size, source,
                                         static_cast<int64_t>(result.bytes())),
                            SourceOf(result), to));
  return result;
}

}  // namespace

StatusOr<Tensor> GoTogether(const Meeting& m) {
  if (m.call.kind == CollectiveKind::kBroadcast) return FromOne(m);
  if (GoesAtOnce(m.call.input.bytes(), m.size)) return AtOnce(m);
  if (m.call.kind == CollectiveKind::kGather ||
      m.call.kind == CollectiveKind::kAllToAll) {
    return InStreams(m);
  }
  return Ring(m, m.call.kind == CollectiveKind::kReduceScatter).Run();
}

}  // namespace headrace::distributed
