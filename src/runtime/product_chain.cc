#include "runtime/product_chain.h"

namespace headrace {
namespace {

using Pointers = absl::InlinedVector<Tensor*, 8>;

// A context's tensors as pointers; kernels only read their inputs.
Pointers InputsOf(const KernelContext& c, int count) {
  Pointers p;
  for (int i = 0; i < count; ++i) p.push_back(const_cast<Tensor*>(&c.input(i)));
  return p;
}

}  // namespace

StatusOr<std::shared_ptr<const void>> ProductChain::Prepare(
    const KernelContext& c) const {
  Tensor made(DType::kFloat, p_.shape);
  Tensor* out = &made;
  Pointers in = InputsOf(c, p_.op->num_inputs());
  return p_.product->Prepare(
      KernelContext(*p_.op, in.data(), &out, c.services()));
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

Status ProductChain::RunPrepared(KernelContext& c, const void* prepared,
                                 const Tail*) const {
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
