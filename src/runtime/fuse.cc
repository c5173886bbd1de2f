// The fusing pass: chains of element-wise calls become one call.
#include "absl/container/flat_hash_map.h"
#include "op/op.h"
#include "op/registry.h"
#include "runtime/fused_kernel.h"
#include "runtime/program.h"

namespace headrace {
namespace {

constexpr int kMostInstructions = 96;

HR_OP(_FusedElementwise)
    .Input("inputs: Tin")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 1")
    .Doc("A chain of element-wise ops, made by the fusing pass.");

// The shape as rows x inner against which operands are rows or columns;
// inner 0: not decided yet (all operands full or scalar so far).
struct Group {
  Shape shape;
  int64_t inner = 0;
  std::vector<int> calls;
  bool open = true;
  int merged_into = -1;
};

// The operand's layout in a group of `shape`; false when there is none. Sets
// *inner for rows and columns.
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

class Fuser {
 public:
  explicit Fuser(Program& p)
      : p_(p), group_of_value_(p.values.size(), -1), uses_(p.values.size()) {}

  Status Run() {
    for (const Call& call : p_.calls) {
      for (ValueId v : call.inputs) ++uses_[v];
    }
    for (ValueId v : p_.fetches) ++uses_[v];
    for (size_t i = 0; i < p_.calls.size(); ++i) {
      HR_RETURN_IF_ERROR(Visit(static_cast<int>(i)));
    }
    for (Group& g : groups_) {
      if (g.merged_into < 0 && g.calls.size() > 1) {
        HR_RETURN_IF_ERROR(Build(g));
      }
    }
    std::erase_if(p_.calls, [](const Call& c) { return c.dead; });
    return OkStatus();
  }

 private:
  int Find(int g) {
    while (g >= 0 && groups_[g].merged_into >= 0) g = groups_[g].merged_into;
    return g;
  }

  // Binds the kernel where it may be element-wise.
  Status Candidate(Call& call, bool* yes) {
    *yes = false;
    if (call.outputs.size() != 1 || call.effect) return OkStatus();
    const Shape& shape = p_.values[call.outputs[0]].shape;
    if (!shape.fully_known() || shape.num_elements() == 0) return OkStatus();
    if (!IsPlain(p_.values[call.outputs[0]].dtype)) return OkStatus();
    if (!call.op->def().in_place_inputs) return OkStatus();
    for (ValueId v : call.inputs) {
      if (!p_.values[v].shape.fully_known()) return OkStatus();
    }
    StatusOr<std::unique_ptr<Kernel>> kernel = BindKernel(*call.op);
    if (!kernel.ok()) return OkStatus();  // reported when all are bound
    call.kernel = *std::move(kernel);
    const ElementwiseLoop* loop = call.kernel->elementwise();
    *yes =
        loop != nullptr && loop->fn != nullptr &&
        call.inputs.size() == (loop->kind == ElementwiseLoop::kUnary ? 1u : 2u);
    return OkStatus();
  }

  // True when every operand of the call fits `g`; *inner is what it needs.
  bool Fits(const Call& call, const Group& g, int64_t* inner) {
    if (p_.values[call.outputs[0]].shape != g.shape) return false;
    *inner = g.inner;
    for (ValueId v : call.inputs) {
      Layout layout;
      int64_t wanted;
      if (!LayoutOf(p_.values[v].shape, g.shape, &layout, &wanted)) {
        return false;
      }
      if (wanted == 0) continue;
      if (*inner != 0 && *inner != wanted) return false;
      *inner = wanted;
    }
    return true;
  }

  Status Visit(int index) {
    Call& call = p_.calls[index];
    bool candidate;
    HR_RETURN_IF_ERROR(Candidate(call, &candidate));
    int joined = -1;
    int64_t inner = 0;
    if (candidate) {
      for (ValueId v : call.inputs) {
        int g = Find(group_of_value_[v]);
        if (g < 0 || !groups_[g].open || g == joined) continue;
        if (joined < 0) {
          if (groups_[g].calls.size() < kMostInstructions &&
              Fits(call, groups_[g], &inner)) {
            joined = g;
            groups_[g].inner = inner;
          }
        } else {
          Merge(joined, g);
        }
      }
      if (joined < 0) {
        Group fresh;
        fresh.shape = p_.values[call.outputs[0]].shape;
        if (Fits(call, fresh, &inner)) {
          fresh.inner = inner;
          joined = static_cast<int>(groups_.size());
          groups_.push_back(std::move(fresh));
        }
      }
    }
    // Who is read from outside must be done by now: nothing joins it later.
    for (ValueId v : call.inputs) {
      int g = Find(group_of_value_[v]);
      if (g >= 0 && g != joined) groups_[g].open = false;
    }
    if (joined >= 0) {
      groups_[joined].calls.push_back(index);
      group_of_value_[call.outputs[0]] = joined;
    }
    return OkStatus();
  }

  void Merge(int into, int g) {
    Group &a = groups_[into], &b = groups_[g];
    if (a.shape != b.shape ||
        a.calls.size() + b.calls.size() > kMostInstructions ||
        (a.inner && b.inner && a.inner != b.inner)) {
      return;
    }
    if (b.inner) a.inner = b.inner;
    a.calls.insert(a.calls.end(), b.calls.begin(), b.calls.end());
    std::sort(a.calls.begin(), a.calls.end());
    b.calls.clear();
    b.merged_into = into;
  }

  // Replaces the group's last call by the fused one; the others are dead.
  Status Build(Group& g) {
    absl::flat_hash_map<ValueId, int> inside;  // uses by the group itself
    for (int i : g.calls) {
      for (ValueId v : p_.calls[i].inputs) ++inside[v];
    }
    absl::flat_hash_map<ValueId, int16_t> reg;
    std::vector<FusedKernel::Input> inputs;
    Call fused;
    std::vector<DType> in_types, out_types;
    std::vector<bool> mine(p_.calls.size());
    for (int i : g.calls) mine[i] = true;
    absl::flat_hash_map<ValueId, bool> made;
    for (int i : g.calls) made[p_.calls[i].outputs[0]] = true;
    for (int i : g.calls) {
      for (ValueId v : p_.calls[i].inputs) {
        if (made.contains(v) || reg.contains(v)) continue;
        Layout layout;
        int64_t inner;
        LayoutOf(p_.values[v].shape, g.shape, &layout, &inner);
        reg[v] = static_cast<int16_t>(fused.inputs.size());
        fused.inputs.push_back(v);
        in_types.push_back(p_.values[v].dtype);
        inputs.push_back(
            {layout, static_cast<uint8_t>(DTypeSize(p_.values[v].dtype))});
      }
    }
    int registers = static_cast<int>(fused.inputs.size());
    std::vector<FusedKernel::Instruction> code;
    double cost = 0;
    for (int i : g.calls) {
      Call& call = p_.calls[i];
      ValueId out = call.outputs[0];
      const ElementwiseLoop* loop = call.kernel->elementwise();
      bool binary = loop->kind == ElementwiseLoop::kBinary;
      FusedKernel::Instruction ins;
      ins.fn = loop->fn;
      ins.kind = loop->kind;
      ins.a = reg.at(call.inputs[0]);
      ins.b = binary ? reg.at(call.inputs[1]) : ins.a;
      ins.y = reg[out] = static_cast<int16_t>(registers++);
      ins.bytes = static_cast<uint8_t>(DTypeSize(p_.values[out].dtype));
      ins.output = -1;
      if (uses_[out] > inside[out]) {
        ins.output = static_cast<int16_t>(fused.outputs.size());
        fused.outputs.push_back(out);
        out_types.push_back(p_.values[out].dtype);
      }
      cost += loop->cost;
      ins.kernel = std::move(call.kernel);
      code.push_back(std::move(ins));
      call.dead = true;
    }
    if (fused.outputs.empty()) return OkStatus();
    HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("_FusedElementwise"));
    HR_ASSIGN_OR_RETURN(fused.op,
                        ResolveOp(*def, in_types, {{"Tout", out_types}}));
    int64_t all = g.shape.num_elements();
    int64_t inner = g.inner ? g.inner : all;
    fused.name = p_.calls[g.calls.back()].name;
    fused.kernel =
        std::make_shared<FusedKernel>(std::move(inputs), std::move(code),
                                      registers, all / inner, inner, cost);
    p_.calls[g.calls.back()] = std::move(fused);
    return OkStatus();
  }

  Program& p_;
  std::vector<Group> groups_;
  std::vector<int> group_of_value_;
  std::vector<int> uses_;
};

}  // namespace

Status FuseElementwise(Program& p) { return Fuser(p).Run(); }

}  // namespace headrace
