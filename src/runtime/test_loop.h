// Turns of a loop that tests write call by call, run by a plan and bound.
#pragma once

#include <cstring>
#include <limits>

#include "gtest/gtest.h"
#include "op/registry.h"
#include "runtime/bound_turns.h"
#include "runtime/turns.h"

namespace headrace {

// Few values and all kinds of them; integers may be 0, so that divisions fail.
inline Tensor FilledTensor(DType dtype, const Shape& shape, int seed) {
  Tensor t = *Tensor::Allocate(dtype, shape);
  DispatchDType(dtype, NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      const int64_t k = (i * 7 + seed * 5) % 19 - 9;
      t.data<T>()[i] = static_cast<T>(static_cast<float>(k) / 2);
    }
  });
  if (dtype == DType::kBool) {
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.data<bool>()[i] = (i * 5 + seed) % 3 == 0;
    }
  }
  if (dtype == DType::kFloat && t.num_elements() > 4) {
    t.data<float>()[1] = std::numeric_limits<float>::infinity();
    t.data<float>()[2] = std::numeric_limits<float>::quiet_NaN();
    t.data<float>()[3] = -0.0f;
    t.data<float>()[4] = 1e-42f;
  }
  return t;
}

// The same bits; a NaN's sign and payload are no part of a result, as they
// depend on which operand the compiler put first.
template <typename T>
bool SameElements(const void* a, const void* b, int64_t n) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (int64_t i = 0; i < n; ++i) {
    const bool nans = x[i] != x[i] && y[i] != y[i];
    if (!nans && std::memcmp(&x[i], &y[i], sizeof(T)) != 0) return false;
  }
  return true;
}
inline bool SameBits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const int64_t n = a.num_elements();
  switch (a.dtype()) {
    case DType::kFloat:
      return SameElements<float>(a.raw(), b.raw(), n);
    case DType::kDouble:
      return SameElements<double>(a.raw(), b.raw(), n);
    case DType::kComplex64:
      return SameElements<float>(a.raw(), b.raw(), 2 * n);
    case DType::kComplex128:
      return SameElements<double>(a.raw(), b.raw(), 2 * n);
    default:
      return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }
}

// A turn that is written call by call. Variables come with what they are first;
// the counter is the first of them.
struct LoopOfCalls {
  explicit LoopOfCalls(int turns) {
    const ValueId i = Variable(Tensor::Scalar<int32_t>(0));
    const ValueId n = Constant(Tensor::Scalar<int32_t>(turns));
    Next(i, Call("AddV2", {i, Constant(Tensor::Scalar<int32_t>(1))}));
    truth = Call("Less", {p.fetches[0], n});
  }
  ValueId Variable(const Tensor& first) {
    const ValueId v = p.NewValue(first.dtype(), first.shape());
    p.feeds.push_back(v);
    p.fetches.push_back(v);
    state.push_back(first);
    return v;
  }
  ValueId Constant(const Tensor& t) {
    const ValueId v = p.NewValue(t.dtype(), t.shape());
    p.values[v].constant = t;
    return v;
  }
  // kNoValue where the op does not take these.
  ValueId Call(const char* op, const std::vector<ValueId>& in,
               const AttrMap& attrs = {}) {
    std::vector<DType> types;
    for (ValueId v : in) types.push_back(p.values[v].dtype);
    auto resolved = ResolveOp(*FindOp(op), types, attrs);
    if (!resolved.ok() || (*resolved)->num_outputs() == 0) return kNoValue;
    headrace::Call call;
    call.op = *std::move(resolved);
    call.name = op;
    call.inputs.assign(in.begin(), in.end());
    for (DType d : call.op->output_types()) {
      call.outputs.push_back(p.NewValue(d, Shape::UnknownRank()));
    }
    p.calls.push_back(call);
    return call.outputs[0];
  }
  void Next(ValueId variable, ValueId next) {
    for (size_t i = 0; i < p.feeds.size(); ++i) {
      if (p.feeds[i] == variable) p.fetches[i] = next;
    }
  }
  // What calls make, as far as it is known.
  Shape ShapeOf(ValueId v) const {
    Program copy = p;
    copy.fetches = {v};
    if (!Optimise(copy).ok()) return Shape::UnknownRank();
    return copy.values[copy.fetches[0]].shape;
  }

  Program Turn() const {
    Program turn = p;
    turn.fetches.push_back(truth);
    EXPECT_TRUE(Optimise(turn).ok());
    return turn;
  }
  std::unique_ptr<BoundTurns> Bound() const {
    Program turn = Turn();
    return BoundTurns::Make(turn);
  }
  // By a plan's turns.
  Status RunPlan(std::vector<Tensor>* out) const {
    HR_ASSIGN_OR_RETURN(auto plan, TurnPlan::Make(Turn()));
    RunServices services;
    HR_ASSIGN_OR_RETURN(auto turns, Turns::Begin(*plan, services));
    *out = state;
    HR_RETURN_IF_ERROR(turns->Set(absl::MakeSpan(*out)));
    for (bool more = true; more;) {
      HR_RETURN_IF_ERROR(turns->Run());
      more = turns->fetch(plan->num_variables()).scalar<bool>();
      HR_RETURN_IF_ERROR(turns->Advance(more));
    }
    turns->Take(out);
    return OkStatus();
  }

  // Both ways, bound turns twice, as memory is used again; the same bits or the
  // same error. False where the turn cannot be bound.
  bool Compare(const std::string& what) const {
    const std::unique_ptr<BoundTurns> bound = Bound();
    if (!bound) return false;
    EXPECT_TRUE(bound->Fit(state)) << what;
    std::vector<Tensor> want;
    const Status wanted = RunPlan(&want);
    for (int run = 0; run < 2; ++run) {
      std::vector<Tensor> got = state;
      const Status s = bound->Run({}, &got);
      EXPECT_EQ(s, wanted) << what;
      for (size_t i = 0; s.ok() && wanted.ok() && i < got.size(); ++i) {
        EXPECT_TRUE(SameBits(got[i], want[i])) << what << ": variable " << i;
      }
    }
    return true;
  }

  Program p;
  std::vector<Tensor> state;
  ValueId truth = kNoValue;
};

}  // namespace headrace
