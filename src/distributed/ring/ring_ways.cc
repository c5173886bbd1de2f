#include "distributed/ring/ring_ways.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/string/hash.h"

namespace headrace::distributed {
namespace {

// Chunks begin at multiples of so many bytes. As 2.21's tasks cut them, those
// that would are longer by as much again.
constexpr int64_t kAlignment = 64;

// A tensor cut into one chunk a member, of whole elements. The last ones may be
// empty: nobody asks for those.
class Chunks {
 public:
  Chunks(int64_t count, int64_t element, int size)
      : bytes_(count * element), size_(size) {
    const int64_t chunk = (count + size - 1) / size * element;
    each_ = chunk + kAlignment - chunk % kAlignment;
  }
  int64_t Begin(int64_t of) const {
    return std::min(Mod(of, size_) * each_, bytes_);
  }
  int64_t Size(int64_t of) const {
    return std::min(Begin(of) + each_, bytes_) - Begin(of);
  }

 private:
  const int64_t bytes_;
  int64_t each_ = 0;
  const int size_;
};

// What goes from member to member, each of which asks the one before it.
class RingWay {
 public:
  explicit RingWay(const RingMeeting& m)
      : m_(m), left_(static_cast<int>(Mod(m.rank - 1, m.size))) {}

 protected:
  // What the member `sender` hands on of a chunk in one of two rounds.
  std::string Name(int round, int64_t chunk, int sender) const {
    return absl::StrCat(":", round, ":", Mod(chunk, m_.size), ":", sender);
  }
  StatusOr<RingMeeting::Take> Ask(int round, int64_t chunk, int64_t size) {
    if (size == 0) return RingMeeting::Take();
    return m_.ask(left_, Name(round, chunk, left_), size);
  }
  void Give(int round, int64_t chunk, Bytes content) {
    if (content.size() == 0) return;
    m_.give(Name(round, chunk, m_.rank), std::move(content));
  }

  const RingMeeting& m_;
  const int left_;
};

// Each chunk's sum begins at the member of its number, is whole at the one
// before it, and goes round once more.
class ReduceWay : RingWay {
 public:
  explicit ReduceWay(const RingMeeting& m)
      : RingWay(m),
        element_(static_cast<int64_t>(DTypeSize(m.call.dtype))),
        chunks_(m.call.input.num_elements(), element_, m.size) {}

  StatusOr<Tensor> Run() {
    HR_ASSIGN_OR_RETURN(result_,
                        Tensor::Allocate(m_.call.dtype, m_.call.input.shape()));
    const int64_t mine = chunks_.Begin(m_.rank);
    const int64_t end = mine + chunks_.Size(m_.rank);
    HR_ASSIGN_OR_RETURN(const Source own,
                        KeptSource(m_.call.input, {mine, end}));
    std::vector<RingMeeting::Take> sums, wholes;
    for (int step = 0; step < m_.size - 1; ++step) {
      const int chunk = m_.rank - 1 - step;
      HR_ASSIGN_OR_RETURN(sums.emplace_back(),
                          Ask(0, chunk, chunks_.Size(chunk)));
    }
    Give(0, m_.rank, own.Part(mine, end - mine));
    for (int step = 0; step < m_.size - 1; ++step) {
      // Asked for when nothing more is before it, so that what has come and
      // waits is no more than a tensor.
      if (step == m_.size - 2) {
        for (int s = 0; s < m_.size - 1; ++s) {
          HR_ASSIGN_OR_RETURN(wholes.emplace_back(),
                              Ask(1, m_.rank - s, chunks_.Size(m_.rank - s)));
        }
      }
      HR_RETURN_IF_ERROR(Merge(sums[step], m_.rank - 1 - step,
                               /*last=*/step == m_.size - 2));
    }
    for (int step = 0; step < m_.size - 1; ++step) {
      HR_RETURN_IF_ERROR(Collect(wholes[step], m_.rank - step,
                                 /*hands_on=*/step < m_.size - 2));
    }
    return std::move(result_);
  }

 private:
  char* At(int64_t chunk) {
    return static_cast<char*>(result_.raw()) + chunks_.Begin(chunk);
  }
  void HandOn(int round, int64_t chunk) {
    Give(round, chunk,
         SourceOf(result_).Part(chunks_.Begin(chunk), chunks_.Size(chunk)));
  }
  Status Merge(const RingMeeting::Take& take, int64_t chunk, bool last) {
    if (!take) return OkStatus();
    HR_ASSIGN_OR_RETURN(const Bytes part, take());
    char* at = At(chunk);
    const char* own =
        static_cast<const char*>(m_.call.input.raw()) + chunks_.Begin(chunk);
    ForBlocks(part, element_, [&](const char* came, int64_t n) {
      MergeElements(m_.call, came, own, at, n);
      if (last) FinishElements(m_.call, m_.size, at, n);
      at += n * element_;
      own += n * element_;
    });
    HandOn(last ? 1 : 0, chunk);
    return OkStatus();
  }
  Status Collect(const RingMeeting::Take& take, int64_t chunk, bool hands_on) {
    if (!take) return OkStatus();
    HR_ASSIGN_OR_RETURN(const Bytes part, take());
    CopyTo(part, At(chunk));
    if (hands_on) HandOn(1, chunk);
    return OkStatus();
  }

  const int64_t element_;
  const Chunks chunks_;
  Tensor result_;
};

class GatherWay : RingWay {
 public:
  explicit GatherWay(const RingMeeting& m) : RingWay(m) {}

  StatusOr<Tensor> Run() {
    HR_ASSIGN_OR_RETURN(Tensor all,
                        Tensor::Allocate(m_.call.dtype, m_.call.shape));
    const auto each = static_cast<int64_t>(m_.call.input.bytes());
    if (each == 0) return all;
    char* const to = static_cast<char*>(all.raw());
    std::memcpy(to + m_.rank * each, m_.call.input.raw(), each);
    const Source source = SourceOf(all);
    Give(0, m_.rank, source.Part(m_.rank * each, each));
    std::vector<RingMeeting::Take> takes;
    for (int step = 1; step < m_.size; ++step) {
      HR_ASSIGN_OR_RETURN(takes.emplace_back(), Ask(0, m_.rank - step, each));
    }
    for (int step = 1; step < m_.size; ++step) {
      const int64_t chunk = Mod(m_.rank - step, m_.size);
      HR_ASSIGN_OR_RETURN(const Bytes part, takes[step - 1]());
      CopyTo(part, to + chunk * each);
      if (step < m_.size - 1) {
        Give(0, chunk, source.Part(chunk * each, each));
      }
    }
    return all;
  }
};

StatusOr<Tensor> Broadcast(const RingMeeting& m) {
  HR_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::Allocate(m.call.dtype, m.call.shape));
  char* const to = static_cast<char*>(result.raw());
  const auto size = static_cast<int64_t>(result.bytes());
  const auto name = [](int from, int target) {
    return absl::StrCat(":0:", from, ":", target);
  };
  if (m.rank == m.source) {
    if (size > 0) std::memcpy(to, m.call.input.raw(), size);
  } else if (size > 0) {
    int from = 0;
    for (int q = 0; q < m.size; ++q) {
      const std::vector<int> targets = BroadcastTargets(q, m.size, m.source);
      if (std::find(targets.begin(), targets.end(), m.rank) != targets.end()) {
        from = q;
      }
    }
    HR_ASSIGN_OR_RETURN(const auto take, m.ask(from, name(from, m.rank), size));
    HR_ASSIGN_OR_RETURN(const Bytes part, take());
    CopyTo(part, to);
  }
  if (size == 0) return result;
  for (const int target : BroadcastTargets(m.rank, m.size, m.source)) {
    m.give(name(m.rank, target), SourceOf(result).Part(0, size));
  }
  return result;
}

// Names of its parts have no separators.
StatusOr<Tensor> AllToAll(const RingMeeting& m) {
  HR_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::Allocate(m.call.dtype, m.call.shape));
  const int64_t each = static_cast<int64_t>(result.bytes()) / m.size;
  if (each == 0) return result;
  const auto name = [](int from, int to) { return absl::StrCat(from, to); };
  char* const to = static_cast<char*>(result.raw());
  HR_ASSIGN_OR_RETURN(
      const Source own,
      KeptSource(m.call.input, {0, static_cast<int64_t>(result.bytes())}));
  std::vector<RingMeeting::Take> takes(m.size);
  for (int q = 0; q < m.size; ++q) {
    if (q == m.rank) continue;
    m.give(name(m.rank, q), own.Part(q * each, each));
    HR_ASSIGN_OR_RETURN(takes[q], m.ask(q, name(q, m.rank), each));
  }
  std::memcpy(to + m.rank * each, own.data + m.rank * each, each);
  for (int q = 0; q < m.size; ++q) {
    if (q == m.rank) continue;
    HR_ASSIGN_OR_RETURN(const Bytes part, takes[q]());
    CopyTo(part, to + q * each);
  }
  return result;
}

}  // namespace

// A tree whose nodes have two below them. The ranks stand in it as they do with
// source 0; another source sends to the two first ones besides.
std::vector<int> BroadcastTargets(int rank, int size, int source) {
  std::vector<int> targets;
  const auto add = [&](int target) {
    if (target < size && target != source) targets.push_back(target);
  };
  if (source != 0 && rank == source) {
    add(0);
    add(1);
  }
  const int first = source == 0 ? 2 * rank + 1 : 2 * (rank + 1);
  add(first);
  add(first + 1);
  return targets;
}

uint64_t LoopFrame(StringView loop) {
  const auto of_both = [](uint64_t a, uint64_t b) {
    return a ^ (b + 0x9e3779b97f4a7800 + (a << 10) + (a >> 4));
  };
  constexpr uint64_t kRoot = 0, kTurn = 0;  // where the loop is entered
  return of_both(kRoot, of_both(kTurn, Hash64(loop)));
}

StatusOr<Tensor> GoRound(const RingMeeting& m) {
  switch (m.call.kind) {
    case CollectiveKind::kReduce:
      return ReduceWay(m).Run();
    case CollectiveKind::kGather:
      return GatherWay(m).Run();
    case CollectiveKind::kBroadcast:
      return Broadcast(m);
    case CollectiveKind::kAllToAll:
      return AllToAll(m);
    case CollectiveKind::kReduceScatter:
      break;
  }
  return Internal(
      "CollectiveRegistry::Lookup did not find collective implementation "
      "undef: "
      "TensorFlow's rings know no reduce-scatter");
}

}  // namespace headrace::distributed
