#include "runtime/deferred_sums.h"

#include <cstring>

#include "base/hash_map.h"
#include "op/registry.h"
#include "op/run_once.h"

namespace headrace {
namespace {

// Rows of a stack before they are multiplied and the stack begins anew: enough
// for a product to run at full speed, and bounded, as loops may have any number
// of turns. Functions of shapes alone, so that the bits are.
constexpr int64_t kRoomRows = 2048;
constexpr int64_t kRoomBytes = 16 << 20;

bool IsSum(const Call& call) {
  const OpDef& def = call.op->def();
  return def.Is(OpRole::kAdd) || def.Is(OpRole::kAddN);
}

// Finds the sums of a turn.
class Finder {
 public:
  explicit Finder(Program& turn)
      : p_(turn), uses_(turn.values.size()), maker_(turn.values.size(), -1) {
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      for (ValueId v : p_.calls[c].inputs) ++uses_[v];
      for (ValueId v : p_.calls[c].outputs) maker_[v] = static_cast<int>(c);
    }
    for (ValueId v : p_.fetches) ++uses_[v];
  }

  DeferredSums Run() {
    std::vector<int> others;
    for (size_t i = 0; i < p_.feeds.size(); ++i) {
      if (!Defer(static_cast<int>(i), /*products=*/true)) {
        others.push_back(static_cast<int>(i));
      }
    }
    // Sums of rows that are kept for a product anyhow.
    for (int i : others) Defer(i, /*products=*/false);
    return std::move(found_);
  }

 private:
  bool Defer(int variable, bool products) {
    const ValueId feed = p_.feeds[variable], next = p_.fetches[variable];
    // The running sum must be nobody's business but the next turn's.
    if (feed == next || uses_[feed] != 1 || uses_[next] != 1) return false;
    const DType dtype = p_.values[feed].dtype;
    if (dtype != DType::kFloat && dtype != DType::kDouble) return false;
    std::vector<ValueId> terms;
    const OpDef* add = nullptr;
    if (!Terms(next, feed, &terms, &add)) return false;
    std::vector<DeferredSum> sums;
    for (ValueId v : terms) {
      DeferredSum sum;
      sum.variable = variable;
      if (!(products ? IsProduct(v, &sum) : IsRowSum(v, &sum)) ||
          !Bind(*add, dtype, &sum)) {
        return false;
      }
      sums.push_back(std::move(sum));
    }
    if (sums.empty()) return false;
    for (size_t t = 0; t < terms.size(); ++t) {
      const Call& call = p_.calls[maker_[terms[t]]];
      const size_t operands = products ? 2 : 1;
      for (size_t i = 0; i < operands; ++i) {
        sums[t].operands.push_back(Stacked(call.inputs[i]));
      }
      found_.sums.push_back(std::move(sums[t]));
    }
    p_.fetches[variable] = feed;
    return true;
  }

  // What `v` is a sum of, besides one `feed`, to which *add adds.
  bool Terms(ValueId v, ValueId feed, std::vector<ValueId>* terms,
             const OpDef** add) {
    int feeds = 0;
    std::vector<ValueId> left = {v};
    while (!left.empty()) {
      const ValueId sum = left.back();
      left.pop_back();
      if (maker_[sum] < 0) return false;
      const Call& call = p_.calls[maker_[sum]];
      if (call.effect || !IsSum(call)) {
        terms->push_back(sum);
        continue;
      }
      for (ValueId in : call.inputs) {
        if (in == feed) {
          ++feeds;
          *add = &call.op->def();
        } else if (uses_[in] != 1) {
          return false;
        } else {
          left.push_back(in);
        }
      }
    }
    return feeds == 1;
  }

  // A^T B, where keeping rows of A and B costs less than a sum of the size of
  // the product.
  bool IsProduct(ValueId v, DeferredSum* sum) {
    if (maker_[v] < 0) return false;
    const Call& call = p_.calls[maker_[v]];
    if (!call.op->def().Is(OpRole::kMatMul) || call.effect ||
        !call.op->bool_attr("transpose_a") ||
        call.op->bool_attr("transpose_b")) {
      return false;
    }
    const Shape& a = p_.values[call.inputs[0]].shape;
    const Shape& b = p_.values[call.inputs[1]].shape;
    if (a.fully_known() && b.fully_known() && a.rank() == 2 && b.rank() == 2 &&
        // Reading and writing the sum (m x n) costs less than storing the rows
        // of both operands.
        2.0 * a[1] * b[1] < static_cast<double>(a[0]) * (a[1] + b[1])) {
      return false;
    }
    sum->op = call.op;
    return true;
  }

  // The sum of the first dimension of what is stacked already.
  bool IsRowSum(ValueId v, DeferredSum* sum) {
    if (maker_[v] < 0) return false;
    const Call& call = p_.calls[maker_[v]];
    if (!call.op->def().Is(OpRole::kSum) || call.op->bool_attr("keep_dims") ||
        !stack_of_.contains(call.inputs[0])) {
      return false;
    }
    const Tensor& axis = p_.values[call.inputs[1]].constant;
    if (!axis.has_buffer() || axis.num_elements() != 1 || axis.IntAt(0) != 0) {
      return false;
    }
    sum->op = call.op;
    sum->constants = {axis};
    return true;
  }

  // Binds the kernels; `add`: an op that adds two tensors.
  bool Bind(const OpDef& add, DType dtype, DeferredSum* sum) {
    auto resolved = ResolveOp(add, {dtype, dtype}, {});
    if (!resolved.ok()) return false;
    sum->add = *std::move(resolved);
    auto kernel = BindKernel(*sum->op), add_kernel = BindKernel(*sum->add);
    if (!kernel.ok() || !add_kernel.ok()) return false;
    sum->kernel = *std::move(kernel);
    sum->add_kernel = *std::move(add_kernel);
    return true;
  }

  int Stacked(ValueId v) {
    auto [it, added] =
        stack_of_.emplace(v, static_cast<int>(found_.stacked.size()));
    if (added) {
      found_.stacked.push_back(static_cast<int>(p_.fetches.size()));
      p_.fetches.push_back(v);
    }
    return it->second;
  }

  Program& p_;
  std::vector<int> uses_, maker_;
  HashMap<ValueId, int> stack_of_;
  DeferredSums found_;
};

StatusOr<Tensor> RunOp(const ResolvedOp& op, Kernel* kernel,
                       absl::Span<const Tensor> inputs,
                       const RunServices& services) {
  absl::InlinedVector<Tensor*, 3> in;
  for (const Tensor& t : inputs) in.push_back(const_cast<Tensor*>(&t));
  Tensor result;
  Tensor* out = &result;
  HR_RETURN_IF_ERROR(RunOnce(op, *kernel, in, {&out, 1}, services));
  return result;
}

// The shape of a row.
Shape RowShape(const Tensor& t) { return t.shape().Sub(1, t.rank()); }

}  // namespace

DeferredSums DeferSums(Program& turn) {
  DeferredSums found = Finder(turn).Run();
  if (!found.sums.empty()) DropUnused(turn);
  return found;
}

LoopSums::LoopSums(const DeferredSums& plan, const RunServices& services)
    : plan_(plan),
      services_(services),
      stacks_(plan.stacked.size()),
      sums_(plan.sums.size()) {}

bool LoopSums::Fits(absl::Span<const Tensor* const> values) const {
  for (size_t i = 0; i < stacks_.size(); ++i) {
    const Stack& s = stacks_[i];
    if (!s.memory.has_buffer() ||
        s.rows + values[i]->dim(0) > s.memory.dim(0) ||
        RowShape(s.memory) != RowShape(*values[i])) {
      return false;
    }
  }
  return true;
}

Status LoopSums::MakeRoom(absl::Span<const Tensor* const> values) {
  HR_RETURN_IF_ERROR(Flush());
  for (size_t i = 0; i < stacks_.size(); ++i) {
    const Tensor& t = *values[i];
    const Shape row = RowShape(t);
    int64_t bytes;
    if (!MultiplyChecked(std::max<int64_t>(row.num_elements(), 1),
                         static_cast<int64_t>(DTypeSize(t.dtype())), &bytes)) {
      return ResourceExhausted("rows too large to keep");
    }
    Shape room = t.shape();
    room.set_dim(0,
                 std::max(t.dim(0), std::min(kRoomRows, kRoomBytes / bytes)));
    if (stacks_[i].memory.shape() == room) continue;
    HR_ASSIGN_OR_RETURN(stacks_[i].memory, Tensor::Allocate(t.dtype(), room));
  }
  return OkStatus();
}

Status LoopSums::Push(absl::Span<const Tensor* const> values) {
  for (const Tensor* t : values) {
    if (t->rank() < 1) {
      return InvalidArgument("a matrix was expected, got shape ", t->shape());
    }
  }
  // Products of a turn that do not fit together.
  for (const DeferredSum& s : plan_.sums) {
    if (s.operands.size() != 2) continue;
    const Tensor &a = *values[s.operands[0]], &b = *values[s.operands[1]];
    if (a.rank() != 2 || b.rank() != 2 || a.dim(0) != b.dim(0)) {
      return InvalidArgument("Matrix size-incompatible: In[0]: ", a.shape(),
                             ", In[1]: ", b.shape());
    }
  }
  if (!Fits(values)) HR_RETURN_IF_ERROR(MakeRoom(values));
  for (size_t i = 0; i < stacks_.size(); ++i) {
    Stack& s = stacks_[i];
    const size_t row = s.memory.dim(0) ? s.memory.bytes() / s.memory.dim(0) : 0;
    std::memcpy(static_cast<char*>(s.memory.raw()) + s.rows * row,
                values[i]->raw(), values[i]->bytes());
    s.rows += values[i]->dim(0);
  }
  return OkStatus();
}

Status LoopSums::Flush() {
  if (stacks_.empty() || !stacks_[0].memory.has_buffer()) return OkStatus();
  for (size_t i = 0; i < sums_.size(); ++i) {
    const DeferredSum& sum = plan_.sums[i];
    std::vector<Tensor> in;
    for (int o : sum.operands) {
      in.push_back(stacks_[o].memory.Rows(0, stacks_[o].rows));
    }
    for (const Tensor& t : sum.constants) in.push_back(t);
    HR_ASSIGN_OR_RETURN(Tensor part,
                        RunOp(*sum.op, sum.kernel.get(), in, services_));
    if (sums_[i].has_buffer()) {
      HR_ASSIGN_OR_RETURN(part, RunOp(*sum.add, sum.add_kernel.get(),
                                      {sums_[i], part}, services_));
    }
    sums_[i] = std::move(part);
  }
  for (Stack& s : stacks_) s.rows = 0;
  return OkStatus();
}

Status LoopSums::Finish(std::vector<Tensor>* variables) {
  HR_RETURN_IF_ERROR(Flush());
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (!sums_[i].has_buffer()) continue;
    const DeferredSum& sum = plan_.sums[i];
    Tensor& variable = (*variables)[sum.variable];
    HR_ASSIGN_OR_RETURN(variable, RunOp(*sum.add, sum.add_kernel.get(),
                                        {variable, sums_[i]}, services_));
  }
  return OkStatus();
}

}  // namespace headrace
