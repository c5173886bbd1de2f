#include "runtime/product_chain.h"

#include <algorithm>
#include <optional>

#include "base/thread_pool.h"

namespace headrace {
namespace {

using Pointers = absl::InlinedVector<Tensor*, 8>;

// A context's tensors as pointers; kernels only read their inputs.
Pointers InputsOf(const KernelContext& c, int count) {
  Pointers p;
  for (int i = 0; i < count; ++i) p.push_back(const_cast<Tensor*>(&c.input(i)));
  return p;
}

// The register that the instruction reads besides `r`, -1 where it does not
// read that.
int OtherOperand(const FusedKernel::Instruction& i, int r) {
  if (i.kind != ElementwiseLoop::kBinary) return -1;
  return i.a == r ? i.b : i.b == r ? i.a : -1;
}

// The step that an instruction is to a product in register `r`.
std::optional<FinishStep> StepOf(const FusedKernel& chain,
                                 const FusedKernel::Instruction& i, int r) {
  using Step = FinishStep;
  if (i.reducer != nullptr || i.column || i.bytes != sizeof(float)) return {};
  if (i.role == OpRole::kRelu || i.role == OpRole::kRelu6) {
    if (i.a != r) return {};
    return Step{i.role == OpRole::kRelu ? Step::kRelu : Step::kRelu6};
  }
  const int other = OtherOperand(i, r);
  if (other < 0 || other >= static_cast<int>(chain.inputs().size())) return {};
  const Layout layout = chain.inputs()[other].layout;
  if (i.role == OpRole::kAdd && layout == Layout::kFull && other != r) {
    return Step{Step::kPlusOutput, other};
  }
  if (layout != Layout::kRow) return {};
  if (i.role == OpRole::kAdd) return Step{Step::kPlusRow, other};
  if (i.role == OpRole::kMultiply) return Step{Step::kTimesRow, other};
  return {};
}

}  // namespace

FinishSteps FinishOf(const FusedKernel& chain, int product,
                     absl::FunctionRef<bool(int)> steady) {
  FinishSteps steps;
  int r = product, added = 0;
  for (const FusedKernel::Instruction& i : chain.code()) {
    const bool last = &i == &chain.code().back();
    const std::optional<FinishStep> step = StepOf(chain, i, r);
    // Only the end of the chain is kept, and output 0 holds one tensor to add.
    if (!step || i.joined >= 0 || (i.output >= 0) != last) return {};
    if (step->kind == FinishStep::kPlusOutput && ++added > 1) return {};
    steps.push_back(*step);
    steps.back().steady =
        step->kind == FinishStep::kTimesRow && steady(step->input);
    r = i.y;
  }
  return steps;
}

StatusOr<std::shared_ptr<const void>> ProductChain::Prepare(
    const KernelContext& c) const {
  Tensor made(DType::kFloat, p_.shape);
  Tensor* out = &made;
  Pointers in = InputsOf(c, p_.op->num_inputs());
  const KernelContext inner(*p_.op, in.data(), &out, c.services());
  return p_.finished ? p_.finished->Prepare(inner, RowsOf(c))
                     : p_.product->Prepare(inner);
}

bool ProductChain::Fits(const KernelContext& c, const void* prepared) const {
  // (Where the product alone was prepared nothing else was taken in.)
  return !p_.finished || p_.finished->Fits(prepared, RowsOf(c));
}

absl::InlinedVector<const float*, 4> ProductChain::RowsOf(
    const KernelContext& c) const {
  absl::InlinedVector<const float*, 4> rows;
  for (const FinishStep& s : p_.steps) {
    const bool row =
        s.kind == FinishStep::kTimesRow || s.kind == FinishStep::kPlusRow;
    rows.push_back(row ? c.input(p_.chain_inputs[s.input]).data<float>()
                       : nullptr);
  }
  return rows;
}

uint32_t ProductChain::in_place_inputs() const {
  if (!p_.hands) return 0;
  const uint32_t of_chain = p_.chain->in_place_inputs();
  uint32_t may = 0;
  for (size_t r = 0; r < p_.chain_inputs.size() && r < 32; ++r) {
    const int i = p_.chain_inputs[r];
    if ((of_chain >> r & 1) && i >= 0 && i < 32) may |= 1u << i;
  }
  return may;
}

CallWork ProductChain::WorkOf(absl::Span<const Shape* const> inputs,
                              absl::Span<const Shape* const>) const {
  CallWork work;
  const Shape* const made[] = {&p_.shape};
  if (const auto* known = dynamic_cast<const KnowsWork*>(p_.product.get())) {
    work = known->WorkOf(inputs.first(p_.op->num_inputs()), made);
  }
  // The chain is cut with the product.
  work.ns += p_.chain->WorkOf({}, {}).ns;
  return work;
}

StatusOr<bool> ProductChain::RunFinished(KernelContext& c,
                                         const void* prepared) const {
  const Tensor& out = c.output(0);
  for (const FinishStep& s : p_.steps) {
    if (s.kind != FinishStep::kPlusOutput) continue;
    const float* from = c.input(p_.chain_inputs[s.input]).data<float>();
    // Output 0 may have taken over the memory of what is added.
    if (from == out.raw()) continue;
    ParallelFor(out.num_elements(), 0.3, [&](int64_t begin, int64_t end) {
      std::copy(from + begin, from + end, out.data<float>() + begin);
    });
  }
  Tensor product = out.WithShape(p_.shape);
  Tensor* made = &product;
  Pointers in = InputsOf(c, p_.op->num_inputs());
  KernelContext inner(*p_.op, in.data(), &made, c.services());
  return p_.finished->Run(inner, prepared, RowsOf(c));
}

Status ProductChain::RunPrepared(KernelContext& c, const void* prepared,
                                 const Tail*) const {
  if (p_.finished) {
    HR_ASSIGN_OR_RETURN(const bool done, RunFinished(c, prepared));
    if (done) return OkStatus();
    prepared = nullptr;  // it was for the finished product
  }
  Tensor product(DType::kFloat, p_.shape);
  if (p_.hands) {
    // (Its rows come with the calls of the tail.)
  } else if (p_.host >= 0) {
    product = c.output(p_.host).WithShape(p_.shape);
  } else {
    HR_ASSIGN_OR_RETURN(product, c.Temporary(DType::kFloat, p_.shape));
  }
  Tensor* out = &product;
  Pointers in = InputsOf(c, p_.op->num_inputs());
  KernelContext inner(*p_.op, in.data(), &out, c.services());

  Pointers loaded, stored;
  int product_input = -1;
  for (int i : p_.chain_inputs) {
    if (i < 0) product_input = static_cast<int>(loaded.size());
    loaded.push_back(i < 0 ? &product : const_cast<Tensor*>(&c.input(i)));
  }
  for (int o = 0; o < c.num_outputs(); ++o) stored.push_back(&c.output(o));
  const KernelContext outer(c.op(), loaded.data(), stored.data(), c.services());

  const int64_t n = p_.shape[p_.shape.rank() - 1];
  auto done = [&](int64_t begin, int64_t end, const void* rows) {
    p_.chain->RunRange(outer, begin * n, end * n, {product_input, rows});
  };
  const Tail tail{done, p_.hands};
  return p_.product->RunPrepared(inner, prepared, &tail);
}

}  // namespace headrace
