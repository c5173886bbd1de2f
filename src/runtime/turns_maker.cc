// From a turn's tree to lists of bound calls: which value lies where, what
// branches jump over, what is copied.
#include <algorithm>
#include <cstring>

#include "runtime/bound_turns.h"
#include "runtime/turn_tree.h"

namespace headrace {
namespace {

// Of all values together, so that they stay in a core's second cache.
constexpr int64_t kMostBytes = 256 << 10;
constexpr int64_t kPlaceBytes = 64;  // bytes

// Nanoseconds, far too many rather than too few: a loop's turns of so long a
// time are made between looks at whether to stop.
constexpr double kChunkNs = 100'000, kCallNs = 5, kKernelNs = 1000,
                 kElementNs = 20;

// Bytes of `n` elements up to the end of their last block, in whole lines.
int64_t RoomFor(int64_t n, size_t size) {
  const int64_t padded = (n + kBoundBlock - 1) / kBoundBlock * kBoundBlock;
  return (padded * static_cast<int64_t>(size) + kPlaceBytes - 1) / kPlaceBytes *
         kPlaceBytes;
}

void CopyBytes(BoundCall& c) {
  std::memcpy(c.out, c.in[0], c.n);
  RunNext(c);
}
template <typename T>
void CopyOne(BoundCall& c) {
  std::memcpy(c.out, c.in[0], sizeof(T));
  RunNext(c);
}

// Goes on `n` calls farther.
void Jump(BoundCall& c) {
  BoundCall& next = (&c)[c.n];
  return next.run(next);
}
// Goes on with the next call, or `n` calls farther.
void Choose(BoundCall& c) {
  BoundCall& next = (&c)[*static_cast<const bool*>(c.in[0]) ? 1 : c.n];
  return next.run(next);
}
// Goes on as far as the way of that number says; the last way is for all
// others.
void ChooseByIndex(BoundCall& c) {
  const int64_t i = *static_cast<const int32_t*>(c.in[0]);
  const auto* jumps = static_cast<const int64_t*>(c.loop);
  BoundCall& next = (&c)[jumps[i < 0 || i >= c.n ? c.n - 1 : i]];
  return next.run(next);
}

}  // namespace

class BoundTurnsMaker {
 public:
  explicit BoundTurnsMaker(TurnTree& tree)
      : tree_(tree), p_(tree.program), known_(p_.values.size(), -1) {}

  std::unique_ptr<BoundTurns> Run() {
    const size_t n = made_->num_variables_ = p_.feeds.size();
    Variables v;
    std::vector<int> feeds;
    for (size_t i = 0; i < n; ++i) {
      if (tree_.IsSteadyVariable(i) || tree_.list_of[p_.feeds[i]] >= 0) {
        continue;
      }
      feeds.push_back(static_cast<int>(i));
      v.values.push_back(p_.feeds[i]);
      v.next.push_back(p_.fetches[i]);
    }
    AddTurn(v, tree_.turn, p_.fetches[n], &made_->loop_);
    for (size_t i = 0; i < feeds.size(); ++i) {
      made_->variables_.push_back({feeds[i], known_[v.values[i]]});
    }
    for (const TurnTree::List& list : tree_.lists) {
      made_->lists_.push_back({list.feed, list.kernel, list.calls, list.dtype,
                               list.shape, list.writes,
                               tree_.IsSteadyVariable(list.feed)});
    }
    if (!ok_ || !AddSteady() || made_->memory_bytes_ > kMostBytes) {
      return nullptr;
    }
    return std::move(made_);
  }

 private:
  using Value = BoundTurns::Value;
  using TurnCall = BoundTurns::TurnCall;
  using Calls = BoundTurns::Calls;
  using Loop = BoundTurns::Loop;
  // Of a loop: those that change.
  struct Variables {
    std::vector<ValueId> values, next;
  };

  int NewValue(ValueId v) {
    known_[v] = static_cast<int>(made_->values_.size());
    made_->values_.push_back({p_.values[v].dtype, p_.values[v].shape});
    return known_[v];
  }
  int64_t NewPlace(const Value& v) {
    const int64_t place = made_->memory_bytes_;
    made_->memory_bytes_ += RoomFor(v.shape.num_elements(), DTypeSize(v.dtype));
    return place;
  }
  static void LieAt(const Value& where, Value* v) {
    v->place[0] = where.place[0];
    v->place[1] = where.place[1];
    v->held = where.held;
    v->level = where.level;
  }
  static bool SamePlace(const Value& a, const Value& b) {
    return a.place[0] == b.place[0] && a.place[1] == b.place[1];
  }

  // Whether what `block` makes as `v` can be made where `where` says.
  bool Claim(ValueId v, const TurnBlock& block, const Value& where) {
    v = tree_.base[v];
    if (tree_.home[v] != block.id || tree_.steady[v] || known_[v] >= 0) {
      return false;
    }
    const Value place = where;  // `where` may move
    LieAt(place, &made_->values_[NewValue(v)]);
    return true;
  }

  // The value among the turns' own; steady ones are given before the turns.
  int ValueOf(ValueId v) {
    if (known_[v] >= 0) return known_[v];
    if (tree_.list_of[v] >= 0) {
      const int at = NewValue(v);
      made_->values_[at].list = tree_.list_of[v];
      return at;
    }
    if (tree_.base[v] != v) {
      const int from = ValueOf(tree_.base[v]);
      const int at = NewValue(v);
      LieAt(made_->values_[from], &made_->values_[at]);
      return at;
    }
    const int at = NewValue(v);
    Value& value = made_->values_[at];
    if (tree_.steady[v]) given_.push_back(v);
    if (!tree_.steady[v] || tree_.IsSmall(v)) {
      value.place[0] = value.place[1] = NewPlace(value);
    } else {
      value.held = made_->num_held_++;
    }
    return at;
  }

  // The turns of a loop; their variables' first values are to lie at place[0].
  void AddTurn(const Variables& v, const TurnBlock& turn, ValueId truth,
               Loop* loop) {
    for (ValueId variable : v.values) {
      Value& value = made_->values_[NewValue(variable)];
      value.level = loop->level;
      value.place[0] = NewPlace(value);
      value.place[1] = NewPlace(value);
    }
    // What a call makes for a variable it writes to the variable's other
    // memory; what is made for several, or not by a call, is copied.
    for (size_t i = 0; i < v.values.size(); ++i) {
      Claim(v.next[i], turn, Other(v.values[i]));
    }
    Add(turn, &loop->turn);
    for (size_t i = 0; i < v.values.size(); ++i) {
      AddCopy(v.next[i], Other(v.values[i]), &loop->turn);
    }
    loop->truth = ValueOf(truth);
    loop->turns_between_looks =
        static_cast<int64_t>(std::clamp(kChunkNs / loop->turn.ns, 1.0, 1024.0));
  }
  // Where a variable lies in the next turn.
  Value Other(ValueId variable) const {
    Value value = made_->values_[known_[variable]];
    std::swap(value.place[0], value.place[1]);
    return value;
  }

  // Copies `v` there, unless it lies there.
  void AddCopy(ValueId v, Value to, Calls* list) {
    const int from = ValueOf(v);
    if (SamePlace(made_->values_[from], to)) return;
    TurnCall copy;
    copy.inputs = {from};
    copy.outputs = {static_cast<int>(made_->values_.size())};
    const size_t bytes = to.bytes();
    made_->values_.push_back(std::move(to));
    copy.bound.n = static_cast<int64_t>(bytes);
    copy.bound.run = bytes == 4   ? CopyOne<uint32_t>
                     : bytes == 8 ? CopyOne<uint64_t>
                                  : CopyBytes;
    Push(std::move(copy), list);
  }

  void Push(TurnCall call, Calls* list) {
    if (call.may_fail()) {
      list->may_fail.push_back(static_cast<int>(list->calls.size()));
    }
    ++made_->num_calls_;
    if (call.kernel_call()) ++made_->num_kernel_calls_;
    list->ns += call.kernel_call() ? kKernelNs : kCallNs;
    for (int v : call.outputs) {
      list->ns += kElementNs *
                  static_cast<double>(made_->values_[v].shape.num_elements());
    }
    call.names.insert(call.names.end(), around_.rbegin(), around_.rend());
    list->calls.push_back(std::move(call));
  }

  void Add(const TurnBlock& block, Calls* list) {
    for (const TurnItem& item : block.items) {
      if (!ok_) return;
      if (item.loop) {
        AddLoop(item, list);
      } else if (!item.ways.empty()) {
        AddBranch(item, list);
      } else {
        AddCall(item.call, list);
      }
    }
  }

  void AddCall(Call call, Calls* list) {
    ok_ = ok_ && BindCall(call).ok();
    for (ValueId v : call.inputs) {
      ok_ = ok_ && (tree_.list_of[v] >= 0 || p_.values[v].shape.fully_known());
    }
    if (!ok_) return;
    const Kernel* kernel = call.kernel.get();
    // They have ways of their own: prepared weights, and chains behind them.
    if (dynamic_cast<const ProductKernel*>(kernel) != nullptr) {
      ok_ = false;
      return;
    }
    TurnCall made;
    made.kernel = call.kernel;
    made.op = call.op;
    made.names = {call.name};
    made.guess = IsGuess(p_, call);
    const int list_number =
        call.inputs.empty() ? -1 : tree_.list_of[call.inputs[0]];
    for (ValueId v : call.inputs) made.inputs.push_back(ValueOf(v));
    for (ValueId v : call.outputs) {
      if (tree_.list_of[v] < 0) made.outputs.push_back(ValueOf(v));
    }
    const Shape& out = list_number < 0 ? p_.values[call.outputs[0]].shape
                                       : tree_.lists[list_number].shape;
    const bool bound = (list_number < 0 && BindIndexed(call, out, &made)) ||
                       Bind(call, out, list_number >= 0, &made);
    // Kernels would want the list.
    ok_ = ok_ && (bound || list_number < 0);
    if (!bound) made.bound = {};
    Push(std::move(made), list);
  }

  // What is known of its inputs.
  absl::InlinedVector<BoundInput, 3> InputsOf(const Call& call) const {
    absl::InlinedVector<BoundInput, 3> inputs;
    for (ValueId v : call.inputs) {
      const ProgramValue& value = p_.values[v];
      inputs.push_back({&value.shape,
                        value.constant.has_buffer() ? &value.constant : nullptr,
                        tree_.steady[v]});
    }
    return inputs;
  }

  // By indices, where the kernel's calls can: they check what a rule would.
  bool BindIndexed(const Call& call, const Shape& out, TurnCall* made) const {
    const auto* binds = dynamic_cast<const BindsIndexed*>(call.kernel.get());
    if (binds == nullptr || made->outputs.size() != 1) return false;
    made->indexed = binds->BindIndexed(InputsOf(call), out, &made->bound);
    if (!made->indexed) return false;
    absl::InlinedVector<int, 3> operands;
    for (int i : made->indexed->operands) operands.push_back(made->inputs[i]);
    made->inputs = std::move(operands);
    return true;
  }

  bool Bind(const Call& call, const Shape& out, bool of_list,
            TurnCall* made) const {
    const auto* binds = dynamic_cast<const BindsCalls*>(call.kernel.get());
    // What lists hold was looked at before the turns.
    if (binds == nullptr || (made->guess && !of_list) ||
        call.inputs.size() > 3 || made->outputs.size() > 1) {
      return false;
    }
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      // Nobody reads what has no elements.
      if (made_->values_[made->inputs[i]].held >= 0 &&
          p_.values[call.inputs[i]].shape.num_elements() != 0) {
        return false;
      }
    }
    const auto inputs = InputsOf(call);
    if (!binds->BindTo(inputs, out, &made->bound)) return false;
    if (binds->may_fail(inputs)) made->binds = binds;
    return true;
  }

  void AddBranch(const TurnItem& item, Calls* list) {
    const size_t choice = list->calls.size(), ways = item.ways.size();
    TurnCall choose;
    choose.inputs = {ValueOf(item.call.inputs[0])};
    choose.bound.run = Choose;
    const bool by_index = ChoosesByIndex(*item.call.op);
    std::vector<int64_t> begins, ends;
    Push(std::move(choose), list);
    around_.push_back(item.call.name);
    for (size_t w = 0; w < ways; ++w) {
      const TurnWay& way = item.ways[w];
      begins.push_back(static_cast<int64_t>(list->calls.size() - choice));
      AddWay(item.call, way, list);
      if (w + 1 == ways) break;
      ends.push_back(static_cast<int64_t>(list->calls.size()));
      TurnCall jump;
      jump.bound.run = Jump;
      Push(std::move(jump), list);
    }
    around_.pop_back();
    for (int64_t e : ends) {
      list->calls[e].bound.n = static_cast<int64_t>(list->calls.size()) - e;
    }
    BoundCall& bound = list->calls[choice].bound;
    bound.n = begins.back();
    if (!by_index) return;
    bound.run = ChooseByIndex;
    bound.n = static_cast<int64_t>(ways);
    bound.loop = made_->jumps_.emplace_back(std::move(begins)).data();
  }
  // The calls of one way, which leave its results in the branch's outputs.
  void AddWay(const Call& branch, const TurnWay& way, Calls* list) {
    for (size_t o = 0; o < way.results.size(); ++o) {
      Claim(way.results[o], way.block,
            made_->values_[ValueOf(branch.outputs[o])]);
    }
    Add(way.block, list);
    for (size_t o = 0; o < way.results.size(); ++o) {
      AddCopy(way.results[o], made_->values_[ValueOf(branch.outputs[o])], list);
    }
  }

  void AddLoop(const TurnItem& item, Calls* list) {
    const TurnLoop& from = *item.loop;
    auto loop = std::make_shared<Loop>();
    loop->level = level_ + 1;
    around_.push_back(item.call.name);
    Add(from.test, list);
    around_.pop_back();
    // Errors of a turn name the loop where the loop's call has failed.
    std::vector<std::string> around;
    around.swap(around_);
    ++level_;
    Add(from.once, &loop->once);
    AddTurn({from.variables, from.next}, from.turn, from.truth, loop.get());
    --level_;
    around.swap(around_);
    for (size_t i = 0; i < from.variables.size(); ++i) {
      const int variable = ValueOf(from.variables[i]);
      AddCopy(from.first[i], made_->values_[variable], list);
      loop->results.push_back({variable, ValueOf(from.last[i])});
    }
    TurnCall call;
    call.names = {item.call.name};
    call.inputs = {ValueOf(from.first_truth)};
    call.loop = std::move(loop);
    Push(std::move(call), list);
  }

  // Where the steady values that the turns read come from.
  bool AddSteady() {
    Program& moved = p_;
    std::vector<ValueId> fetches;
    for (ValueId v : given_) {
      BoundTurns::Steady s;
      s.value = known_[v];
      const auto feed = std::find(p_.feeds.begin(), p_.feeds.end(), v);
      if (p_.values[v].constant.has_buffer()) {
        s.constant = p_.values[v].constant;
      } else if (feed != p_.feeds.end()) {
        s.feed = static_cast<int>(feed - p_.feeds.begin());
      } else {
        s.moved = static_cast<int>(fetches.size());
        fetches.push_back(v);
      }
      made_->steady_.push_back(std::move(s));
    }
    for (const BoundTurns::Variable& v : made_->variables_) {
      made_->read_feeds_.push_back({v.feed, v.value});
    }
    for (const BoundTurns::Steady& s : made_->steady_) {
      if (s.feed >= 0) made_->read_feeds_.push_back({s.feed, s.value});
    }
    if (fetches.empty()) return true;
    moved.fetches = std::move(fetches);
    auto plan = Executable::FromProgram(std::move(moved));
    if (!plan.ok()) return false;
    made_->moved_out_ = *std::move(plan);
    return true;
  }

  TurnTree& tree_;
  Program& p_;
  std::vector<int> known_;           // per value: among made_->values_
  std::vector<ValueId> given_;       // steady values that turns read
  std::vector<std::string> around_;  // the branches that are being added
  int level_ = 0;
  bool ok_ = true;
  std::unique_ptr<BoundTurns> made_{new BoundTurns};
};

std::unique_ptr<BoundTurns> BoundTurns::Make(const Program& turn) {
  const std::unique_ptr<TurnTree> tree = TurnTree::Read(turn);
  return tree ? BoundTurnsMaker(*tree).Run() : nullptr;
}

}  // namespace headrace
