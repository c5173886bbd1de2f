#include "runtime/side_by_side.h"

#include <algorithm>

#include "op/passes/call_work.h"
#include "op/registry.h"

namespace headrace {
namespace {

// Handing a strand to a worker that spins and waiting for its end: 1 us. Below
// a few times that a guess that is off by a factor decides, so it must gain
// more, and a tenth, as strands share caches and memory.
constexpr double kShareNs = 1000, kLeastGainNs = 4000, kLeastGain = 0.1;
// What a kernel's own cut costs beside the work.
constexpr double kCutNs = 500;
// Shorter loops are not cut (base/thread_pool.cc).
constexpr double kWorthCuttingNs = 4000;
// A call this short does not begin or end a group.
constexpr double kCountsNs = 1000;
// Nanoseconds a byte that is read or written, where the kernel does not say
// more; 16 KiB or more a task.
constexpr double kByteNs = 0.1;
constexpr double kTaskBytes = 16384;
// Calls of a group: bounds the search.
constexpr int kLongest = 128;
// Strands a thread: with some more than threads, those that end early take what
// is left.
constexpr int kStrands = 4;

bool IsPlainAndKnown(const ProgramValue& v) {
  return IsPlain(v.dtype) && !IsRef(v.dtype) && v.shape.fully_known();
}

class Search {
 public:
  // No call of [begin, end) joins a group.
  Search(const Program& p, const std::vector<bool>& guess, int threads,
         int begin, int end)
      : p_(p),
        guess_(guess),
        threads_(threads),
        begin_(begin),
        end_(end),
        times_(p.calls.size()),
        maker_(p.values.size(), -1),
        parent_(p.calls.size()),
        sum_(p.calls.size()) {}

  std::vector<SideGroup> Run() {
    const int n = static_cast<int>(p_.calls.size());
    for (int c = 0; c < n; ++c) {
      for (ValueId v : p_.calls[c].outputs) maker_[v] = c;
    }
    for (int begin = 0; begin < n;) {
      if (!MayJoin(begin)) {
        ++begin;
        continue;
      }
      int end = begin;
      double cut = 0, alone = 0;
      for (; end < n && MayJoin(end); ++end) {
        times_[end] = TimeOf(p_.calls[end]);
        cut += times_[end].cut;
        alone += times_[end].alone;
      }
      // At best all threads work all the time.
      if (Pays(cut, alone / threads_)) Divide(begin, end);
      begin = end;
    }
    return std::move(groups_);
  }

 private:
  // Nanoseconds of a call: as it runs by itself, cut over all threads, and on
  // one.
  struct Time {
    double cut = 0, alone = 0;
  };

  static bool Pays(double before, double after) {
    return before - after >= std::max(kLeastGainNs, before * kLeastGain);
  }

  bool MayJoin(int c) const {
    const Call& call = p_.calls[c];
    const OpDef& def = call.op->def();
    if (call.effect || guess_[c] || (c >= begin_ && c < end_)) return false;
    // Reads and random numbers: what they do is seen in their outputs alone.
    if (def.is_stateful && !def.Has(OpTrait::kNoEffect)) return false;
    // A function may do anything, and takes nobody knows how long.
    if (CallsFunctions(def)) return false;
    const bool reads = def.Is(OpRole::kReadVariable);
    // What else makes its outputs itself may do anything: run Python, or wait.
    if (call.kernel->own_outputs() && def.view_input < 0 && !reads) {
      return false;
    }
    for (ValueId v : call.inputs) {
      const ProgramValue& in = p_.values[v];
      if (in.dtype == DType::kResource && reads) continue;
      if (!IsPlainAndKnown(in)) return false;
    }
    return std::all_of(
        call.outputs.begin(), call.outputs.end(),
        [this](ValueId v) { return IsPlainAndKnown(p_.values[v]); });
  }
  Time TimeOf(const Call& call) const {
    const CallWork work = WorkOf(p_, call);
    const auto parts =
        static_cast<double>(std::clamp<int64_t>(work.tasks, 1, threads_));
    if (work.ns < kWorthCuttingNs || parts == 1) return {work.ns, work.ns};
    return {work.ns / parts + kCutNs, work.ns};
  }

  int Find(int c) {
    while (parent_[c] != c) c = parent_[c] = parent_[parent_[c]];
    return c;
  }

  // Adds call c to what begins at `begin`: it joins the calls whose results it
  // reads. The time of all of them.
  double Add(int begin, int c) {
    parent_[c] = c;
    sum_[c] = times_[c].alone;
    for (ValueId v : p_.calls[c].inputs) {
      if (maker_[v] < begin) continue;
      const int other = Find(maker_[v]);
      if (other == c) continue;
      parent_[other] = c;
      sum_[c] += sum_[other];
    }
    return sum_[c];
  }

  // Calls [begin, end), all of which may join: those groups, and calls between
  // them, that take the least time together.
  void Divide(int begin, int end) {
    const int n = end - begin;
    std::vector<double> best(n + 1, 1e300);  // of the calls before
    std::vector<int> from(n + 1);            // where the last group began
    best[0] = 0;
    for (int i = 0; i < n; ++i) {
      if (const double t = best[i] + times_[begin + i].cut; t < best[i + 1]) {
        best[i + 1] = t;
        from[i + 1] = i;
      }
      if (times_[begin + i].alone < kCountsNs) continue;
      double cut = 0, alone = 0, longest = 0;
      for (int j = i; j < std::min(n, i + kLongest); ++j) {
        const Time& time = times_[begin + j];
        cut += time.cut;
        alone += time.alone;
        longest = std::max(longest, Add(begin + i, begin + j));
        if (time.alone < kCountsNs) continue;
        const double t = std::max(longest, alone / threads_) + kShareNs;
        if (Pays(cut, t) && best[i] + t < best[j + 1]) {
          best[j + 1] = best[i] + t;
          from[j + 1] = i;
        }
      }
    }
    const size_t before = groups_.size();
    for (int j = n; j > 0; j = from[j]) {
      if (j - from[j] > 1) Make(begin + from[j], begin + j);
    }
    std::reverse(groups_.begin() + static_cast<int64_t>(before), groups_.end());
  }

  void Make(int begin, int end) {
    SideGroup g{begin, end};
    for (int c = begin; c < end; ++c) {
      Add(begin, c);
      g.ns += times_[c].alone;
    }
    std::vector<int> roots;
    for (int c = begin; c < end; ++c) {
      if (Find(c) == c) roots.push_back(c);
    }
    std::stable_sort(roots.begin(), roots.end(),
                     [this](int a, int b) { return sum_[a] > sum_[b]; });
    // The longest first, each to the strand that has the least.
    const size_t most = static_cast<size_t>(kStrands) * threads_;
    std::vector<double> load(std::min(roots.size(), most));
    std::vector<int> strand(end - begin);
    for (int r : roots) {
      const auto least = std::min_element(load.begin(), load.end());
      *least += std::max(sum_[r], 1.0);
      strand[r - begin] = static_cast<int>(least - load.begin());
    }
    g.strands.resize(load.size());
    for (int c = begin; c < end; ++c) {
      g.strands[strand[Find(c) - begin]].push_back(c);
    }
    groups_.push_back(std::move(g));
  }

  const Program& p_;
  const std::vector<bool>& guess_;
  const int threads_;
  const int begin_, end_;
  std::vector<Time> times_;  // per call
  std::vector<int> maker_;   // per value: its call, or -1
  std::vector<int> parent_;  // per call: towards the root of what it is part of
  std::vector<double> sum_;  // per root: of its calls
  std::vector<SideGroup> groups_;
};

}  // namespace

CallWork WorkOf(const Program& p, const Call& call) {
  absl::InlinedVector<const Shape*, 8> in, out;
  double bytes = 0;
  bool known = true;
  auto add = [&](const absl::Span<const ValueId> values, auto* shapes) {
    for (ValueId v : values) {
      const ProgramValue& value = p.values[v];
      shapes->push_back(&value.shape);
      known = known && value.shape.fully_known();
      if (!IsPlainAndKnown(value)) continue;
      bytes += static_cast<double>(value.shape.num_elements()) *
               static_cast<double>(DTypeSize(value.dtype));
    }
  };
  add(call.inputs, &in);
  add(call.outputs, &out);
  const auto* k = dynamic_cast<const KnowsWork*>(call.kernel.get());
  if (k != nullptr && known) return k->WorkOf(in, out);
  // Views of what is there, and values handed on.
  if (call.kernel->own_outputs()) return {};
  return {bytes * kByteNs, 1 + static_cast<int64_t>(bytes / kTaskBytes)};
}

std::vector<SideGroup> FindSideGroups(const Program& p,
                                      const std::vector<bool>& guess,
                                      int threads, int begin, int end) {
  if (threads < 2) return {};
  return Search(p, guess, threads, begin, end).Run();
}

}  // namespace headrace
